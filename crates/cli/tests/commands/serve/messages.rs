//! Messages of `nuthatch serve`: its log, and errors about addresses.

use crate::folder::Folder;

#[test]
fn a_server_is_quiet_and_ends_well() {
    let folder = Folder::new();
    let server = folder.serve(&[], &[]);
    assert_eq!(server.ask("SET k v"), "+OK\r\n");
    let (status, logged) = server.stop();
    assert_eq!(status, Some(0));
    assert_eq!(logged, "");
}

#[test]
fn failed_logins_are_logged_without_passwords() {
    let folder = Folder::new();
    let server = folder.serve(&[], &[]);
    assert!(server.ask("AUTH somebody my-password").starts_with("-WRONGPASS"));
    let (_, logged) = server.stop();
    assert!(logged.contains(" WARN nuthatch::users: a login failed"), "{logged}");
    assert!(logged.contains("user=\"somebody\"") && !logged.contains("my-password"), "{logged}");
    assert_eq!(logged.lines().count(), 1, "{logged}");
}

#[test]
fn logs_are_objects_where_that_is_wanted() {
    let folder = Folder::new();
    let arguments = ["--admin=127.0.0.1:0", "--log=info", "--log-format=json"];
    let server = folder.serve(&arguments, &[]);
    server.ask("AUTH somebody my-password");
    let admin = server.admin.clone();
    let (_, logged) = server.stop();
    let lines: Vec<serde_json::Value> =
        logged.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let messages: Vec<_> = lines.iter().map(|line| line["message"].as_str()).collect();
    let expected = ["started", "a login failed", "stopping", "stopped"];
    assert_eq!(messages, expected.map(Some));
    assert_eq!(lines[0]["target"], "nuthatch::server");
    assert_eq!((&lines[0]["admin"], &lines[0]["threads"]), (&admin.into(), &2.into()));
    assert_eq!((&lines[1]["level"], &lines[1]["user"]), (&"WARN".into(), &"somebody".into()));
}

#[test]
fn filters_come_from_the_environment_too() {
    let folder = Folder::new();
    let mut command = folder.command(&["serve"]);
    let output = command.env("NUTHATCH_LOG", "chatty").output().expect("the command to end");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("nuthatch: NUTHATCH_LOG: expected a level"), "{message}");
}

#[test]
fn a_port_in_use_is_an_error_that_names_the_flag() {
    let folder = Folder::new();
    let server = folder.serve(&["--admin=127.0.0.1:0"], &[]);
    let resp = ["--resp", "127.0.0.1:0", "--memcache", "off"];
    let run = folder.run(&[&["serve"], &resp[..], &["--admin", &server.admin]].concat());
    assert_eq!(run.status, Some(3), "{run:?}");
    let expected =
        format!("nuthatch: --admin: the admin address {}: Address already in use", server.admin);
    assert!(run.stderr.starts_with(&expected), "{run:?}");
    assert!(run.stderr.contains("--admin ADDR") && run.stderr.contains("--admin off"), "{run:?}");
}

#[test]
fn wrong_addresses_and_filters_are_named() {
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["--admin", "0.0.0.0:0"][..], "--admin 0.0.0.0:0: this address is reachable by other"),
        (&["--admin", "9464"], "--admin: expected host:port or unix:PATH, found `9464`"),
        (&["--resp", "0.0.0.0:0"], "--resp 0.0.0.0:0: this address is reachable by other"),
        (&["--resp", "off", "--memcache", "off"], "expected an address to listen on, found none"),
        (&["--log", "chatty"], "--log: expected a level: off, error, warn"),
    ] {
        let run = folder.run(&[&["serve"], arguments].concat());
        assert_eq!(run.status, Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
}

#[test]
fn settings_that_a_cluster_excludes_are_named() {
    const CLUSTER: &str = "etcd://127.0.0.1:1/cache";
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["--cluster", "127.0.0.1:2379"][..], "--cluster: expected off or etcd://HOST:PORT"),
        (&["--cluster", "etcd://me:s3cret@a/x"], "found a user or a password in it"),
        (&["--announce", "a:1"], "--announce: expected a cluster, found none; name one with"),
        (&["--cluster", CLUSTER, "--pmc=127.0.0.1:0"], "--pmc: expected off with"),
        (&["--cluster-forward"], "--cluster-forward: expected a cluster, found none; name one"),
        (&["--cluster-join", "manual"], "--cluster-join: expected a cluster, found none; name"),
        (&["--cluster-drain-ms", "9"], "--cluster-drain-ms: expected a cluster, found none; name"),
        (&["--cluster-move-rate=9M"], "--cluster-move-rate: expected a cluster, found none; name"),
        (&["--etcd-away", "serve"], "--etcd-away: expected a cluster, found none; name one with"),
        (&["--cluster-stop=keep"], "--cluster-stop: expected a cluster, found none; name one"),
        (
            &["--cluster", CLUSTER, "--cluster-stop=keep"],
            "--cluster-stop: expected --disk or --warm-restart with keep, found neither: slots",
        ),
        (
            &["--cluster", CLUSTER, "--resp=0.0.0.0:0", "--insecure"],
            "announce: expected the address of this machine, found 0.0.0.0:0; name the address",
        ),
    ] {
        let run = folder.run(&[&["serve"], arguments].concat());
        assert_eq!(run.status, Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected) && !run.stderr.contains("s3cret"), "{run:?}");
    }
    // The file that --show-config prints has the default address of memcached, too.
    let small = ["--memory=16MiB", "--admin=off", "--cluster", CLUSTER];
    let shown = folder.run(&[&["serve", "--show-config"], &small[..]].concat()).stdout;
    folder.file("shown.toml", shown.replace("127.0.0.1:6379", "127.0.0.1:0"));
    let server = folder.start(folder.command(&["serve", "--config", "shown.toml"]));
    assert_eq!(server.ask("CLUSTER KEYSLOT foo"), ":12182\r\n");
    assert_eq!(server.ask("GET foo"), "-CLUSTERDOWN The cluster is down\r\n");
    let (status, _) = server.stop();
    assert_eq!(status, Some(0));
}

/// The message had the name of the setting twice.
#[test]
fn too_little_memory_is_an_error_that_names_the_range() {
    let folder = Folder::new();
    let problem = "expected from 16MiB to 1TiB, found 1MiB";
    folder.fails(&["--memory=1MiB"], 2, &format!("--memory: {problem}"));
    let variables = [("NUTHATCH_MEMORY", "1MiB")];
    folder.fails_with(&[], &variables, 2, &format!("NUTHATCH_MEMORY: {problem}"));
    folder.file("a.toml", "memory = '1MiB'");
    folder.fails(&["--config=a.toml"], 3, &format!("a.toml:1:10: memory: {problem}"));
}

/// The messages were those of the system, such as "f: File exists".
#[test]
fn a_data_folder_that_cannot_be_used_is_an_error_that_names_the_setting() {
    let folder = Folder::new();
    folder.file("f", "a file");
    let advice = "name a folder, or a path where one can be created";
    let fails = |path: &str, problem: &str| {
        folder.fails(
            &[&format!("--data-dir={path}")],
            3,
            &format!("--data-dir: {path}: {problem}"),
        );
    };
    fails("f", &format!("expected a folder, found a file; {advice}"));
    let error = "Not a directory (os error 20)";
    let problem = format!("the folder cannot be created: {error}; {advice}");
    fails("f/x", &format!("{problem}, or allow this user to write here"));
    folder.file("a.toml", "data-dir = 'f'");
    let path = folder.text("f");
    let problem = format!("a.toml:1: data-dir: {path}: expected a folder, found a file; {advice}");
    folder.fails(&["--config=a.toml"], 3, &problem);
}
