//! Tests permissions of users, and that no output contains a password.

use crate::harness::Harness;
use nuthatch_server::state::{Debugging, Users};

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const KEY: &str =
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";

fn denied(command: &str) -> String {
    format!("-NOPERM this user has no permissions to run the '{command}' command\r\n")
}

/// The users of these tests; the hash is that of `r`.
const USERS: &str = "
# comments are skipped
user ann on >sesame >other ~app:* ~shared +get +set +mget +config|get +multi +exec +auth
user bob off >pw ~* +@all
user ros on #454349e422f05297191ead13e21d3db520e5abef52055e4964b82fb213f593a1 ~* +@read
user wyn on nopass allkeys +@write -del -@dangerous
user max on >m ~* +@all -@dangerous +info -client|kill
user dan on >d ~app:* +@all
";

#[test]
fn users_log_in_with_their_passwords_alone() {
    let harness = Harness::with_users(USERS);
    let mut client = harness.client();
    for (request, expected) in [
        ("AUTH bob pw", WRONG),
        ("AUTH ann wrong", WRONG),
        ("AUTH nobody sesame", WRONG),
        ("AUTH ann ", WRONG),
        ("ACL WHOAMI", "$7\r\ndefault\r\n"),
        ("AUTH ann sesame", "+OK\r\n"),
        ("AUTH ros r", "+OK\r\n"),
        ("AUTH wyn whatever", "+OK\r\n"),
        ("AUTH ann other", "+OK\r\n"),
        ("HELLO 2 AUTH ann wrong", WRONG),
    ] {
        assert_eq!(harness.ask(&mut client, request), expected, "{request}");
    }
    assert_eq!(harness.ask(&mut client, "RESET"), "+RESET\r\n");
    assert_eq!(harness.ask(&mut client, "ACL WHOAMI"), "$7\r\ndefault\r\n");
}

#[test]
fn debug_object_shows_only_permitted_keys() {
    let mut harness = Harness::with_users(USERS);
    harness.server.debug = Debugging::Yes;
    let mut client = harness.client();
    assert_eq!(harness.ask(&mut client, "AUTH dan d"), "+OK\r\n");
    assert_eq!(harness.ask(&mut client, "SET app:1 hello"), "+OK\r\n");
    let shown = harness.ask(&mut client, "DEBUG OBJECT app:1");
    assert!(shown.starts_with("+Value at:0x0 "), "{shown}");
    assert_eq!(harness.ask(&mut client, "DEBUG OBJECT other"), KEY);
}

#[test]
fn subcommands_that_change_nodes_of_a_cluster_are_dangerous() {
    let harness = Harness::with_users(USERS);
    let mut client = harness.client();
    assert_eq!(harness.ask(&mut client, "AUTH max m"), "+OK\r\n");
    for (request, name) in
        [("JOIN", "cluster|join"), ("DRAIN", "cluster|drain"), ("FORGET 1", "cluster|forget")]
    {
        assert_eq!(harness.ask(&mut client, &format!("CLUSTER {request}")), denied(name));
    }
    let permitted = harness.ask(&mut client, "CLUSTER MEMBERS");
    assert_eq!(permitted, "-ERR This instance has cluster support disabled\r\n");
}

#[test]
fn users_run_permitted_commands_on_permitted_keys() {
    let harness = Harness::with_users(USERS);
    let mut client = harness.client();
    for (request, expected) in [
        ("AUTH ann sesame", "+OK\r\n"),
        ("GET app:1", "$-1\r\n"),
        ("GET shared", "$-1\r\n"),
        ("GET other", KEY),
        ("GET app", KEY),
        ("MGET app:1 shared", "*2\r\n$-1\r\n$-1\r\n"),
        ("MGET app:1 other", KEY),
        ("DEL app:1", &denied("del")),
        ("PING", &denied("ping")),
        ("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"),
        ("CONFIG SET timeout 1", &denied("config|set")),
        ("FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("AUTH ros r", "+OK\r\n"),
        ("GET other", "$-1\r\n"),
        ("SET other 1", &denied("set")),
        ("DBSIZE", ":0\r\n"),
        ("CONFIG GET timeout", &denied("config|get")),
        ("AUTH wyn x", "+OK\r\n"),
        ("SET other 1", "+OK\r\n"),
        ("GET other", &denied("get")),
        ("DEL other", &denied("del")),
        ("FLUSHALL", &denied("flushall")),
        ("AUTH max m", "+OK\r\n"),
        ("GET other", "$1\r\n1\r\n"),
        ("KEYS *", &denied("keys")),
        ("CLIENT ID", ":1\r\n"),
        ("CLIENT LIST", &denied("client|list")),
        ("CLIENT KILL ID 9", &denied("client|kill")),
        ("NUTHATCH.DICT 1", &denied("nuthatch.dict")),
        // A dictionary contains parts of the values of all keys.
        ("AUTH dan d", "+OK\r\n"),
        ("NUTHATCH.GETZ app:1", "$-1\r\n"),
        ("NUTHATCH.GETZ other", KEY),
        ("NUTHATCH.DICT 1", KEY),
        ("AUTH max m", "+OK\r\n"),
    ] {
        assert_eq!(harness.ask(&mut client, request), expected, "{request}");
    }
    assert!(harness.ask(&mut client, "INFO server").contains("redis_version"));
}

#[test]
fn a_denied_command_aborts_a_transaction_and_a_login_within_one_applies() {
    let harness = Harness::with_users(USERS);
    let mut client = harness.client();
    let abort = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    harness.ask(&mut client, "AUTH ann sesame");
    harness.ask(&mut client, "MULTI");
    assert_eq!(harness.ask(&mut client, "DEL app:1"), denied("del"));
    assert_eq!(harness.ask(&mut client, "EXEC"), abort);
    harness.ask(&mut client, "MULTI");
    for request in ["SET app:1 x", "AUTH ros r", "SET app:1 y", "GET app:1"] {
        assert_eq!(harness.ask(&mut client, request), "+QUEUED\r\n");
    }
    let expected = "*4\r\n+OK\r\n+OK\r\n-NOPERM ACLs rules changed between the moment the \
                    transaction was accumulated and the EXEC call. This command is no longer \
                    allowed for the following reason: no permission to execute the command or \
                    subcommand\r\n$1\r\nx\r\n";
    // The user lost the permission for EXEC after MULTI.
    assert_eq!(harness.ask(&mut client, "EXEC"), expected);
}

#[test]
fn a_default_user_with_a_password_has_no_permissions_before_login() {
    let harness = Harness::with_users("user default on >sesame ~* +@all");
    let mut client = harness.client();
    assert!(!client.is_authenticated(&harness.server));
    assert_eq!(harness.ask(&mut client, "GET k"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(harness.ask(&mut client, "AUTH wrong"), WRONG);
    assert_eq!(harness.ask(&mut client, "AUTH sesame"), "+OK\r\n");
    assert!(client.is_authenticated(&harness.server));
    assert_eq!(harness.ask(&mut client, "GET k"), "$-1\r\n");
    let off = Harness::with_users("user default off\nuser ann on nopass ~* +@all");
    let mut client = off.client();
    assert_eq!(off.ask(&mut client, "GET k"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(off.ask(&mut client, "AUTH ann x"), "+OK\r\n");
    assert_eq!(off.ask(&mut client, "GET k"), "$-1\r\n");
}

#[test]
fn a_client_of_an_unknown_user_gets_no_permissions() {
    let harness = Harness::with_users("user default on >sesame ~* +@all");
    let mut client = nuthatch_server::resp::commands::Client::default();
    assert_eq!(harness.ask(&mut client, "GET k"), "-NOAUTH Authentication required.\r\n");
}

#[test]
fn errors_of_a_users_file_contain_no_secrets() {
    const RULES: &str = "expected a rule such as on, off, nopass, >PASSWORD, #SHA256, ~PATTERN, \
                         +COMMAND, -COMMAND, +@GROUP or -@GROUP, found another word";
    for (text, expected) in [
        (
            "user",
            "line 1, word 2 of the users: expected the name of a user, found the end \
         of the line",
        ),
        (
            "\n\nusr ann",
            "line 3, word 1 of the users: expected `user`, found another word; \
         a line is `user NAME RULE...`",
        ),
        (
            "user a on\nuser a on",
            "line 2, word 2 of the users: expected another name, \
         found one of a line above; give a user one line",
        ),
        ("user a on hunter2", &format!("line 1, word 4 of the users: {RULES}")),
        (
            "user a +nosuch",
            "line 1, word 3 of the users: expected the name of a command, \
         found none of that name; COMMAND LIST has all names",
        ),
        (
            "user a +@hash",
            "line 1, word 3 of the users: expected @all, @read, @write, @connection or \
             @dangerous, found another group",
        ),
        (
            "user a #12",
            "line 1, word 3 of the users: expected 64 hexadecimal digits after \
         #, found something else; `printf %s PASSWORD | sha256sum` prints them",
        ),
        ("user a é", &format!("line 1, word 3 of the users: {RULES}")),
    ] {
        let error = Users::parse(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn no_output_contains_a_password_or_its_hash() {
    let harness = Harness::with_users("user ann on >opensesame ~* +@all");
    let mut client = harness.client();
    let mut said = String::new();
    for request in [
        "CONFIG SET slowlog-log-slower-than 0",
        "CONFIG SET requirepass hunter2",
        "AUTH hunter2",
        "AUTH ann opensesame",
        "HELLO 3 AUTH ann opensesame",
        "AUTH ann wrongsecret",
        "MULTI",
        "AUTH ann opensesame",
        "EXEC",
        "SLOWLOG GET -1",
        "CONFIG GET *",
        "CLIENT LIST",
        "ACL USERS",
        "INFO everything",
        "COMMAND GETKEYS SET a b",
        "LATENCY HISTOGRAM",
    ] {
        said += &harness.ask(&mut client, request);
        said.extend([format!("{client:?}"), format!("{:?}", harness.server)]);
    }
    assert!(said.contains("(redacted)") && said.contains("(hidden)"), "{said}");
    let hashes = [
        "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7",
        "[245, 47, 189",
        "245, 47, 189, 50",
    ];
    for secret in ["hunter2", "opensesame", "wrongsecret"].into_iter().chain(hashes) {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}
