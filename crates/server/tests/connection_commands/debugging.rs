//! Tests `DEBUG` where it is allowed.

use crate::harness::Harness;
use nuthatch_server::resp::commands::Client;
use nuthatch_server::state::Debugging;
use nuthatch_server::state::Endpoints;

#[test]
fn debug_needs_permission_that_cannot_be_granted_later() {
    let mut harness = Harness::new();
    let client = &mut harness.client();
    let ask = |harness: &Harness, client: &mut Client, words: &str| harness.ask(client, words);
    let get = "CONFIG GET enable-debug-command";
    for (debug, name) in [(Debugging::No, "no"), (Debugging::Local, "local")] {
        harness.server.debug = debug;
        let answer = format!("*2\r\n$20\r\nenable-debug-command\r\n${}\r\n{name}\r\n", name.len());
        assert_eq!(ask(&harness, client, get), answer);
        let refused = "-ERR CONFIG SET failed (possibly related to argument \
                       'enable-debug-command') - can't set immutable config\r\n";
        assert_eq!(ask(&harness, client, "CONFIG SET enable-debug-command yes"), refused);
    }
    let endpoints = Endpoints { peer: "10.0.0.1:5".to_owned(), ..Endpoints::default() };
    let far = &mut harness.server.connect(&harness.metrics, endpoints, 0).expect("a connection");
    assert_eq!(ask(&harness, client, "DEBUG SLEEP 0"), "+OK\r\n");
    assert!(ask(&harness, far, "DEBUG SLEEP 0").starts_with("-ERR DEBUG command not allowed."));
    harness.server.debug = Debugging::Yes;
    assert_eq!(ask(&harness, far, "DEBUG SLEEP 0"), "+OK\r\n");
    for seconds in ["x", "NaN", "inf", "1e300"] {
        let answer = ask(&harness, far, &format!("DEBUG SLEEP {seconds}"));
        assert_eq!(answer, "-ERR value is not a valid float\r\n", "{seconds}");
    }
}

/// Regression test: the help had the text of Redis, which describes a logarithm and seconds.
#[test]
fn object_help_describes_freq_and_idletime() {
    let harness = Harness::new();
    let client = &mut harness.client();
    harness.ask(client, "SET k hello");
    for _ in 0..9 {
        harness.ask(client, "GET k");
    }
    assert_eq!(harness.ask(client, "OBJECT FREQ k"), ":3\r\n");
    assert_eq!(harness.ask(client, "OBJECT IDLETIME k"), ":0\r\n");
    let help = harness.ask(client, "OBJECT HELP");
    for line in [
        "Return the number of recent reads of the <key>, from 0 to 3.",
        "Return 0: the time of the last access is not recorded.",
    ] {
        assert!(help.contains(&format!("+    {line}\r\n")), "{help}");
    }
}

#[test]
fn debug_shows_values_and_types() {
    let mut harness = Harness::new();
    harness.server.debug = Debugging::Yes;
    let client = &mut harness.client();
    harness.ask(client, "SET k hello");
    let object = "+Value at:0x0 refcount:1 encoding:embstr serializedlength:5 lru:0 \
                  lru_seconds_idle:0\r\n";
    assert_eq!(harness.ask(client, "DEBUG OBJECT k"), object);
    harness.ask(client, "HELLO 3");
    for (name, answer) in [
        ("double", ",3.141\r\n"),
        ("bignum", "(1234567999999999999999999999999999999\r\n"),
        ("null", "_\r\n"),
        ("set", "~3\r\n:0\r\n:1\r\n:2\r\n"),
        ("map", "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"),
        (
            "attrib",
            "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n\
             $39\r\nSome real reply following the attribute\r\n",
        ),
        (
            "push",
            ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n\
             $40\r\nSome real reply following the push reply\r\n",
        ),
        ("verbatim", "=29\r\ntxt:This is a verbatim\nstring\r\n"),
        ("true", "#t\r\n"),
        ("false", "#f\r\n"),
    ] {
        assert_eq!(harness.ask(client, &format!("DEBUG PROTOCOL {name}")), answer, "{name}");
    }
}
