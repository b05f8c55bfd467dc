//! The sources of settings, their precedence, and `--show-config`.

use crate::folder::Folder;
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// Returns a setting of `--show-config --json`: its value and its source.
#[track_caller]
fn shown(
    folder: &Folder,
    name: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Value, String) {
    let arguments = [arguments, &["--show-config", "--json"]].concat();
    let run = folder.run_serve(&arguments, variables);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{arguments:?}");
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let setting = &json[name];
    (setting["value"].clone(), setting["from"].as_str().expect("an origin").to_owned())
}

#[test]
fn the_command_line_wins_over_the_environment_over_the_file() {
    let folder = Folder::new();
    folder.file("a.toml", "# comment\nmemory = '32MiB'\n");
    let (file, variable) = (["--config", "a.toml"], [("NUTHATCH_MEMORY", "64MiB")]);
    let flag = ["--config", "a.toml", "--memory", "128MiB"];
    let from = |text: &str, from: &str| (Value::from(text), from.to_owned());
    assert_eq!(shown(&folder, "memory", &[], &[]), from("1GiB", "default"));
    assert_eq!(shown(&folder, "memory", &file, &[]), from("32MiB", "a.toml:2"));
    assert_eq!(shown(&folder, "memory", &file, &variable), from("64MiB", "NUTHATCH_MEMORY"));
    assert_eq!(shown(&folder, "memory", &flag, &variable), from("128MiB", "--memory"));
}

#[test]
fn lists_are_replaced_whole() {
    let folder = Folder::new();
    folder.file("a.toml", "resp = ['127.0.0.1:1', '127.0.0.1:2']\ninsecure = true");
    let file = ["--config", "a.toml"];
    let list = |list: &[&str]| Value::from(list.to_vec());
    assert_eq!(shown(&folder, "resp", &file, &[]).0, list(&["127.0.0.1:1", "127.0.0.1:2"]));
    let variable = [("NUTHATCH_RESP", "127.0.0.1:3,127.0.0.1:4")];
    assert_eq!(shown(&folder, "resp", &file, &variable).0, list(&["127.0.0.1:3", "127.0.0.1:4"]));
    let flags = [&file[..], &["--resp", "127.0.0.1:5", "--resp", "127.0.0.1:6"]].concat();
    assert_eq!(shown(&folder, "resp", &flags, &variable).0, list(&["127.0.0.1:5", "127.0.0.1:6"]));
    let off = [&file[..], &["--resp", "off", "--insecure=false"]].concat();
    assert_eq!(shown(&folder, "resp", &off, &variable).0, list(&["off"]));
    assert_eq!(shown(&folder, "insecure", &off, &[]).0, Value::from(false));
    assert_eq!(shown(&folder, "insecure", &["--insecure"], &[]).0, Value::from(true));
}

#[test]
fn show_config_prints_a_settings_file_with_the_same_values() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("etc")).expect("a folder");
    let file = "users = \"u \\\" é.acl\"\nresp = ['unix:a.sock']\n[max]\nclients = 7";
    folder.file("etc/a.toml", file);
    let arguments = ["--config", "etc/a.toml", "--timeout", "90s", "--tls-cert", "cert.pem"];
    let variables = [("NUTHATCH_MAX_VALUE", "10000000"), ("NUTHATCH_THREADS", "3")];
    let show = |arguments: &[&str], variables: &[(&str, &str)]| {
        let run = folder.run_serve(&[arguments, &["--show-config"]].concat(), variables);
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
        run.stdout
    };
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| line.rsplit_once("  # ").expect("an origin").0.to_owned()).collect()
    };
    let first = show(&arguments, &variables);
    folder.file("etc/b.toml", &first);
    let second = show(&["--config", "etc/b.toml"], &[]);
    assert_eq!(values(&first), values(&second));
    let users = format!("users = '{}'", folder.text("etc/u \" é.acl"));
    assert!(values(&first).contains(&users), "{first}");
    assert!(first.contains("\nmax-clients = 7  # etc/a.toml:4\n"), "{first}");
    assert!(first.contains("\ntimeout = \"90s\"  # --timeout\n"), "{first}");
    let cert = format!("tls-cert = \"{}\"", folder.text("cert.pem"));
    assert!(values(&first).contains(&cert), "{first}");
}

/// The file has the defaults of the settings of a store, and was refused since there is no store.
#[test]
fn a_server_starts_with_the_file_that_show_config_prints() {
    let folder = Folder::new();
    let quiet = ["--memory=16MiB", "--resp=127.0.0.1:0", "--memcache=off", "--admin=off"];
    let shown = folder.run_serve(&[&quiet[..], &["--show-config"]].concat(), &[]);
    assert_eq!((shown.status, &shown.stderr[..]), (Some(0), ""));
    folder.file("a.toml", &shown.stdout);
    let server = folder.start(folder.serve_command(&["--config=a.toml"], &[]));
    assert_eq!(server.ask("PING"), "+PONG\r\n");
    let changed = shown.stdout.replace("127.0.0.1:7380", "127.0.0.1:7000");
    folder.file("a.toml", &changed);
    let run = folder.run_serve(&["--config=a.toml"], &[]);
    let expected = ": grpc: expected a store as well (--store), found none\n";
    assert!(run.status == Some(2) && run.stderr.ends_with(expected), "{run:?}");
}

#[test]
fn a_password_is_never_shown_and_has_no_flag() {
    let folder = Folder::new();
    folder.file("a.toml", "password = 'sesame'");
    for (arguments, variables, from) in [
        (&["--config", "a.toml"][..], &[][..], "a.toml:1"),
        (&[], &[("NUTHATCH_PASSWORD", "sesame")], "NUTHATCH_PASSWORD"),
    ] {
        let hidden = (Value::from("(hidden)"), from.to_owned());
        assert_eq!(shown(&folder, "password", arguments, variables), hidden);
        let run = folder.run_serve(&[arguments, &["--show-config"]].concat(), variables);
        assert!(!run.stdout.contains("sesame"));
        assert!(run.stdout.contains(&format!("# password = \"(hidden)\"  # {from}\n")));
    }
    let run = folder.run_serve(&["--password", "sesame"], &[]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("unexpected argument"), "{}", run.stderr);
}

#[test]
fn a_file_comes_from_standard_input_too() {
    let folder = Folder::new();
    let mut command = folder.serve_command(&["--config", "-", "--show-config", "--json"], &[]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a run");
    child.stdin.take().expect("its input").write_all(b"threads = 5").expect("written");
    let output = child.wait_with_output().expect("its end");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["threads"]["from"], "-:1");
}

#[test]
fn no_file_is_read_unless_it_is_named() {
    let folder = Folder::new();
    folder.file("nuthatch.toml", "memory = '32MiB'\n");
    assert_eq!(shown(&folder, "memory", &[], &[]).1, "default");
    let named = [("NUTHATCH_CONFIG", "nuthatch.toml")];
    assert_eq!(shown(&folder, "memory", &[], &named).1, "nuthatch.toml:2".replace(":2", ":1"));
    folder.file("other.toml", "memory = '64MiB'\n");
    let both = shown(&folder, "memory", &["--config", "other.toml"], &named);
    assert_eq!(both.1, "other.toml:1");
}

#[test]
fn wrong_variables_and_flags_are_refused_by_name() {
    let folder = Folder::new();
    let size = "expected a size such as 512M, 2GiB or 64MB, found";
    folder.fails(&["--memory", "5X"], 2, &format!("--memory: {size} `5X`"));
    folder.fails(&["--memory", ""], 2, &format!("--memory: {size} nothing"));
    for (value, found) in [("5X", "`5X`"), ("", "nothing")] {
        let message = format!("NUTHATCH_MEMORY: {size} {found}");
        folder.fails_with(&[], &[("NUTHATCH_MEMORY", value)], 2, &message);
    }
    let message = "NUTHATCH_PASSWORD: expected a text in quotes, found nothing";
    folder.fails_with(&[], &[("NUTHATCH_PASSWORD", "")], 2, message);
    let run = folder.run_serve(&["--show-config"], &[("NUTHATCH_MEMROY", "1GiB")]);
    let warning = "nuthatch: warning: NUTHATCH_MEMROY is not a setting and is ignored; did you \
                   mean NUTHATCH_MEMORY?\n";
    assert_eq!((run.status, &run.stderr[..]), (Some(0), warning));
}

/// A value below its limit in a file ended the server with status 2, without the column.
#[test]
fn an_invalid_value_in_a_file_ends_with_status_3_and_its_place() {
    let folder = Folder::new();
    for (line, problem) in [
        ("max-value = '64KiB'", "13: max-value: expected at least 1MiB, found 64KiB"),
        ("memory = '1MiB'", "10: memory: expected from 16MiB to 1TiB, found 1MiB"),
        ("store-memory = 1024", "16: store-memory: expected at least 1MiB, found 1KiB"),
        (
            "tcp-keepalive = '1d'",
            "17: tcp-keepalive: expected at most 32767 seconds, or off, found the string `1d`",
        ),
        (
            "timeout = 'soon'",
            "11: timeout: expected whole seconds such as 30s, or off, found the \
                              string `soon`",
        ),
    ] {
        folder.file("a.toml", format!("# ours\n{line}\n"));
        let message = format!("a.toml:2:{problem}");
        folder.fails(&["--config=a.toml"], 3, &message);
        folder.fails(&["--config=a.toml", "--show-config"], 3, &message);
    }
    folder.fails(&["--max-value=64KiB"], 2, "--max-value: expected at least 1MiB, found 64KiB");
    folder.file("a.toml", "memory = '999999GiB'");
    let run = folder.run_serve(&["--config=a.toml"], &[]);
    let expected = "nuthatch: a.toml:1:10: memory: expected from 16MiB to 1TiB, found ";
    assert!(run.status == Some(3) && run.stderr.starts_with(expected), "{run:?}");
    folder.file("a.toml", "memory = '1TiB'");
    let run = folder.run_serve(&["--config=a.toml"], &[]);
    let expected = "nuthatch: a.toml:1: memory: expected at most ";
    assert!(run.status == Some(3) && run.stderr.starts_with(expected), "{run:?}");
}

/// It printed settings that the server refuses.
#[test]
fn contradicting_settings_are_not_shown() {
    let folder = Folder::new();
    for arguments in [
        &["--users=u", "--password-file=p"][..],
        &["--max-value=64"],
        &["--memory=1MiB"],
        &["--resp=off", "--memcache=off"],
        &["--resp=0.0.0.0:0"],
        &["--mrcache=127.0.0.1:0", "--password-file=p"],
        &["--admin=0.0.0.0:0"],
        &["--resp=tls:127.0.0.1:0"],
        &["--grpc=127.0.0.1:0"],
        &["--store=db", "--grpc=off"],
        &["--store=db", "--grpc=unix:a.sock"],
        &["--store=db", "--grpc=tls:127.0.0.1:0"],
        &["--store=db", "--store-memory=1KiB"],
    ] {
        let refused = folder.run_serve(arguments, &[]);
        assert_eq!((refused.status, &refused.stdout[..]), (Some(2), ""), "{arguments:?}");
        let shown = folder.run_serve(&[arguments, &["--show-config"]].concat(), &[]);
        assert_eq!((shown.status, &shown.stdout[..]), (Some(2), ""), "{arguments:?}");
        assert_eq!(shown.stderr, refused.stderr, "{arguments:?}");
    }
    // Files are not opened: the server may run on another machine.
    let files = ["--users=absent", "--resp=0.0.0.0:0", "--show-config"];
    assert_eq!(folder.run_serve(&files, &[]).status, Some(0));
}

#[test]
fn redis_clients_read_the_settings() {
    let folder = Folder::new();
    folder.file("users.acl", "user default on nopass allkeys +@all");
    folder.file("a.toml", "timeout = '5min'\nslow-log-threshold = 'off'\nusers = 'users.acl'\n");
    let server = folder.serve(
        &["--config=a.toml", "--max-value=2MiB", "--latency-tracking=false", "--data-dir=data"],
        &[("NUTHATCH_MAX_CLIENTS", "77"), ("NUTHATCH_SLOW_LOG_LENGTH", "9")],
    );
    let port = server.addresses[0].rsplit_once(':').expect("a port").1;
    for (name, value) in [
        ("timeout", "300"),
        ("maxclients", "77"),
        ("proto-max-bulk-len", "2097152"),
        ("slowlog-log-slower-than", "-1"),
        ("slowlog-max-len", "9"),
        ("latency-tracking", "no"),
        ("maxmemory", "16777216"),
        ("maxmemory-policy", "allkeys-s3fifo"),
        ("bind", "127.0.0.1"),
        ("port", port),
        ("unixsocket", ""),
        ("io-threads", "2"),
        ("dir", "data"),
        ("aclfile", &folder.text("users.acl")),
    ] {
        assert_eq!(server.config(name), value, "{name}");
    }
    assert_eq!(server.ask("CONFIG SET timeout 7"), "+OK\r\n");
    assert_eq!(server.config("timeout"), "7");
    let fixed = server.ask("CONFIG SET maxmemory 99999999");
    assert!(fixed.ends_with("can't set immutable config\r\n"), "{fixed}");
}

#[test]
fn defaults_are_those_of_the_server_itself() {
    let folder = Folder::new();
    let server = folder.serve(&[], &[]);
    for (name, value) in [
        ("timeout", "0"),
        ("maxclients", "10000"),
        ("proto-max-bulk-len", "536870912"),
        ("slowlog-log-slower-than", "10000"),
        ("slowlog-max-len", "128"),
        ("latency-tracking", "yes"),
        ("requirepass", ""),
    ] {
        assert_eq!(server.config(name), value, "{name}");
    }
}

#[test]
fn changed_settings_are_written_to_the_file_and_read_again() {
    let folder = Folder::new();
    folder.file("a.toml", "# ours\ntimeout = '10s' # short\n").mode("a.toml", 0o640);
    std::os::unix::fs::symlink("a.toml", folder.path("link.toml")).expect("a link");
    let server = folder.serve(&["--config=link.toml"], &[]);
    assert_eq!(server.ask("CONFIG REWRITE"), "+OK\r\n");
    let read = || std::fs::read_to_string(folder.path("a.toml")).expect("the file");
    assert_eq!(read(), "# ours\ntimeout = '10s' # short\n");
    assert_eq!(
        server.ask("CONFIG SET timeout 60 maxclients 9\r\nCONFIG REWRITE"),
        "+OK\r\n+OK\r\n"
    );
    assert_eq!(read(), "# ours\ntimeout = \"1min\" # short\nmax-clients = 9\n");
    let mode = folder.path("a.toml").metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(folder.path("link.toml").is_symlink());
    let server = folder.serve(&["--config=a.toml"], &[]);
    assert_eq!((server.config("timeout"), server.config("maxclients")), ("60".into(), "9".into()));
    folder.file("a.toml", "what?");
    let problem = server.ask("CONFIG REWRITE");
    assert!(problem.starts_with("-ERR Rewriting config file: "), "{problem}");
    assert_eq!(read(), "what?");
    let without = folder.serve(&[], &[]).ask("CONFIG REWRITE");
    assert_eq!(without, "-ERR The server is running without a config file\r\n");
}

/// Settings whose maximum in `CONFIG SET` is that of Redis were once limited to less in the file.
#[test]
fn the_largest_value_of_each_changeable_setting_is_written_and_read_again() {
    const LARGEST: [(&str, &str); 9] = [
        ("timeout", "2147483647"),
        ("slowlog-max-len", "9223372036854775807"),
        ("slowlog-log-slower-than", "9223372036854775"),
        ("proto-max-bulk-len", "9223372036854775807"),
        ("tcp-keepalive", "32767"),
        ("client-output-hard-limit", "9223372036854775807"),
        ("client-output-soft-limit", "9223372036854775806"),
        ("client-output-soft-seconds", "2147483647"),
        ("maxclients", "64"),
    ];
    let folder = Folder::new();
    folder.file("a.toml", "");
    let server = folder.serve(&["--config=a.toml"], &[]);
    for (name, value) in LARGEST {
        assert_eq!(server.ask(&format!("CONFIG SET {name} {value}")), "+OK\r\n", "{name}");
        assert_eq!(server.ask("CONFIG REWRITE"), "+OK\r\n", "{name}");
    }
    let server = folder.serve(&["--config=a.toml"], &[]);
    for (name, value) in LARGEST {
        assert_eq!(server.config(name), value, "{name}");
    }
}
