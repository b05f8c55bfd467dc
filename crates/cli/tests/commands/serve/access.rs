//! Access control: logins, and addresses that are refused.

use crate::folder::Folder;

const OPEN: &str = "this address is reachable by other machines and needs no login; expected a \
                    password, a users file with `user default off`, or `tls:` with \
                    tls-client-ca; --insecure allows it";
const PAST: &str = "mrcache has no login, so every client would be refused while a password or \
                    users are set; remove mrcache, or the password and users";

#[test]
fn addresses_that_other_machines_can_reach_need_a_password() {
    let folder = Folder::new();
    folder.file("open.acl", "user default on nopass allkeys +get");
    folder.file("a.toml", "\nresp = ['127.0.0.1:0', '0.0.0.0:0']");
    let open = |place: &str| format!("{place}: {OPEN}");
    folder.fails(&["--resp=0.0.0.0:0"], 2, &open("--resp 0.0.0.0:0"));
    folder.fails(&["--memcache=[::]:0"], 2, &open("--memcache [::]:0"));
    folder.fails(&["--pmc=0.0.0.0:0"], 2, &open("--pmc 0.0.0.0:0"));
    folder.fails(&["--mrcache=0.0.0.0:0"], 2, &open("--mrcache 0.0.0.0:0"));
    folder.fails(&["--config=a.toml"], 2, &open("a.toml:2: resp 0.0.0.0:0"));
    let variable = [("NUTHATCH_RESP", "0.0.0.0:0")];
    folder.fails_with(&[], &variable, 2, &open("NUTHATCH_RESP 0.0.0.0:0"));
    let users = ["--resp=0.0.0.0:0", "--users=open.acl"];
    folder.fails(&users, 2, &open("--resp 0.0.0.0:0"));
}

#[test]
fn with_a_password_or_closed_users_or_insecure_they_may_be_reached() {
    let folder = Folder::new();
    folder.file("password", "sesame\n");
    folder.file("closed.acl", "user default off\nuser ann on >sesame allkeys +@all");
    for more in [&["--password-file=password"], &["--users=closed.acl"], &["--insecure"]] {
        folder.serve(&[&["--resp=0.0.0.0:0", "--pmc=0.0.0.0:0"], &more[..]].concat(), &[]);
    }
    folder.serve(&["--resp=0.0.0.0:0"], &[("NUTHATCH_PASSWORD", "sesame")]);
}

#[test]
fn clients_who_cannot_log_in_do_not_get_past_a_password() {
    let folder = Folder::new();
    folder.file("password", "sesame\n");
    let local = ["--password-file=password", "--mrcache=127.0.0.1:0"];
    folder.fails(&local, 2, &format!("--mrcache 127.0.0.1:0: {PAST}"));
    let file = ["--password-file=password", "--mrcache=unix:m.sock"];
    folder.fails(&file, 2, &format!("--mrcache unix:m.sock: {PAST}"));
    let insecure = [&local[..], &["--insecure"]].concat();
    folder.fails(&insecure, 2, &format!("--mrcache 127.0.0.1:0: {PAST}"));
    folder.serve(&["--mrcache=127.0.0.1:0"], &[]);
}

#[test]
fn clients_log_in_with_the_password_of_a_file_or_the_environment() {
    let folder = Folder::new();
    folder.file("unix", "sesame\n").file("dos", "sesame\r\n").file("bare", "sesame");
    folder.file("a.toml", "password = 'sesame'");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let variable = [("NUTHATCH_PASSWORD", "sesame")];
    for (arguments, variables) in [
        (&["--password-file=unix"][..], &[][..]),
        (&["--password-file=dos"], &[]),
        (&["--password-file=bare"], &[]),
        (&["--config=a.toml"], &[]),
        (&[], &variable),
    ] {
        let server = folder.serve(&[arguments, &["--log=off"]].concat(), variables);
        assert_eq!(server.ask("GET a"), "-NOAUTH Authentication required.\r\n", "{arguments:?}");
        assert_eq!(server.ask("AUTH other\r\nGET a").lines().next(), Some(wrong.trim_end()));
        assert_eq!(server.ask("AUTH sesame\r\nGET a"), "+OK\r\n$-1\r\n", "{arguments:?}");
        assert_eq!(server.messages(), "");
    }
}

#[test]
fn a_password_that_keeps_others_out_stays() {
    let folder = Folder::new();
    let password = [("NUTHATCH_PASSWORD", "sesame")];
    let open = "AUTH sesame\r\nCONFIG SET requirepass \"\"";
    let exposed = folder.serve(&["--resp=0.0.0.0:0"], &password).ask(open);
    let problem = "other machines can reach this server, so it needs a password";
    assert!(exposed.ends_with(&format!("{problem}\r\n")), "{exposed}");
    assert_eq!(folder.serve(&[], &password).ask(open), "+OK\r\n+OK\r\n");
}

#[test]
fn passwords_and_users_come_from_one_place() {
    let folder = Folder::new();
    folder.file("password", "sesame").file("users", "user default off");
    folder.file("a.toml", "\nusers = 'users'");
    let message = "expected one of password, password-file and users, found --password-file and \
                   a.toml:2: users";
    folder.fails(&["--password-file=password", "--config=a.toml"], 2, message);
    let message = "expected one of password, password-file and users, found NUTHATCH_PASSWORD and \
                   --users";
    folder.fails_with(&["--users=users"], &[("NUTHATCH_PASSWORD", "a")], 2, message);
}

#[test]
fn wrong_files_of_passwords_and_users_are_refused() {
    let folder = Folder::new();
    folder.file("empty", "\n").file("two", "a\nb\n").file("users", "user ann on +fly");
    for (argument, message) in [
        ("--password-file=empty", "empty: expected one line with a password, found nothing"),
        ("--password-file=two", "two: expected one line with a password, found several lines"),
        (
            "--password-file=absent",
            "absent: expected a file, but there is no such file; check the path",
        ),
        (
            "--users=users",
            "users: line 1, word 4 of the users: expected the name of a command, found none of \
             that name; COMMAND LIST has all names",
        ),
        ("--users=absent", "absent: expected a file, but there is no such file; check the path"),
    ] {
        folder.fails(&[argument], 3, message);
    }
}

#[test]
fn metrics_are_not_exported_beyond_this_machine() {
    let folder = Folder::new();
    let message = "--admin 0.0.0.0:0: this address is reachable by other machines, and the admin \
                   endpoint has no login; --admin-insecure allows it";
    folder.fails(&["--admin=0.0.0.0:0"], 2, message);
    // A password of the cache's clients is not a login of the admin endpoint.
    let password = [("NUTHATCH_PASSWORD", "sesame")];
    folder.fails_with(&["--admin=0.0.0.0:0"], &password, 2, message);
    folder.fails(&["--admin=tls:[::1]:0"], 2, "--admin tls:[::1]:0: the admin endpoint has no TLS");
    folder.serve(&["--admin=0.0.0.0:0", "--insecure"], &[]);
    folder.serve(&["--admin=0.0.0.0:0", "--admin-insecure"], &[]);
}

#[test]
fn secrets_that_all_users_can_read_are_warned_of() {
    let folder = Folder::new();
    folder.file("password", "sesame").mode("password", 0o644);
    folder.file("a.toml", "password = 'sesame'").mode("a.toml", 0o644);
    folder.file("b.toml", "timeout = '1s'").mode("b.toml", 0o644);
    let warning = |path: &str| {
        format!(
            "nuthatch: warning: {path}: all users of this machine can read it; run `chmod o-r \
             {path}`\n"
        )
    };
    let server = folder.serve(&["--password-file=password"], &[]);
    assert_eq!(server.messages(), warning("password"));
    assert_eq!(folder.serve(&["--config=a.toml"], &[]).messages(), warning("a.toml"));
    assert_eq!(folder.serve(&["--config=b.toml"], &[]).messages(), "");
    folder.mode("password", 0o640);
    assert_eq!(folder.serve(&["--password-file=password"], &[]).messages(), "");
}

#[test]
fn tls_needs_its_files() {
    let folder = Folder::new();
    folder.file("cert.pem", "").file("key.pem", "");
    let tls = "--resp=tls:127.0.0.1:0";
    let message = "--resp tls:127.0.0.1:0: expected tls-cert too, found none";
    folder.fails(&[tls], 2, message);
    folder.fails(&[tls, "--tls-cert=cert.pem"], 2, &message.replace("cert", "key"));
    let files = ["--tls-cert=absent.pem", "--tls-key=key.pem"];
    let absent = "absent.pem: expected a certificate chain in PEM (BEGIN CERTIFICATE), but there \
                  is no such file; check the path";
    folder.fails(&[&[tls], &files[..]].concat(), 3, absent);
    let server = folder.serve(&["--tls-cert=cert.pem", "--tls-key=key.pem"], &[]);
    let warning = "nuthatch: warning: --tls-cert is not used: no address begins with `tls:`\n";
    assert_eq!(server.messages(), warning);
    // A certificate that clients must show keeps others out as a password does.
    let open = ["--resp=tls:0.0.0.0:0", "--tls-cert=cert.pem", "--tls-key=absent.pem"];
    folder.fails(&open, 2, &format!("--resp tls:0.0.0.0:0: {OPEN}"));
    folder.fails(
        &[&open[..], &["--tls-client-ca=ca.pem"]].concat(),
        3,
        &absent.replace("absent", "ca"),
    );
}
