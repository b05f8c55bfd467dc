//! `publish`, `generations` and `follow`.

use crate::folder::{Folder, Run, lines};
use crate::server::{Running, wait_until};
use crate::stores::{self, Store};
use nuthatch_testing::google::Google;
use nuthatch_testing::moto::Moto;
use nuthatch_testing::random::Random;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Builds a snapshot whose key `a` has this value, and publishes it.
#[track_caller]
fn publish(folder: &Folder, value: u64, destination: &str) {
    folder.file("a.jsonl", lines(&[("a", &value.to_string()), ("b", "\"text\"")]));
    folder.build(&["a.jsonl", "-o", "users.nut"]);
    let run = folder.run(&["publish", "users.nut", destination, "--quiet"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
}

/// Returns the value of the key `a` in the folder of the follower.
fn value(folder: &Folder) -> Option<u64> {
    let run = folder.run(&["get", "there/users.nut", "a"]);
    run.stdout.trim_end().parse().ok()
}

fn follow(folder: &Folder, more: &[&str]) -> Running {
    let arguments = ["follow", "shared", "there", "--admin=127.0.0.1:0", "--interval=10ms"];
    folder.start(folder.command(&[&arguments, more].concat()))
}

/// Returns the status and the body of a page of the admin endpoint.
fn page(server: &Running, path: &str) -> (u16, String) {
    let mut client = TcpStream::connect(&server.admin).expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).expect("sent");
    let mut response = String::new();
    client.read_to_string(&mut response).expect("a response");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

/// Returns the metric of the folder `there`. A name can have further labels.
fn metric(server: &Running, name: &str) -> Option<f64> {
    metric_of(server, "there", name)
}

fn metric_of(server: &Running, folder: &str, name: &str) -> Option<f64> {
    let (_, text) = page(server, "/metrics");
    let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
    let separator = if labels == "}" { "" } else { "," };
    let sample = format!("{name}{{folder=\"{folder}\"{separator}{labels} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&sample));
    value.map(|value| value.parse().expect("a number"))
}

#[test]
fn a_snapshot_goes_from_one_folder_to_another() {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1")]));
    folder.build(&["a.jsonl", "-o", "users.nut", "--meta", "source=crm"]);
    let run = folder.run(&["publish", "users.nut", "shared", "--json"]);
    let bytes = folder.bytes("users.nut").len();
    let expected = format!(
        "{{\"generation\":1,\"unchanged\":false,\"bytes\":{bytes},\"uploaded_bytes\":{bytes},\
         \"delta_bytes\":0,\"delta_failures\":[],\"unread_objects\":[],\"removed\":[]}}\n"
    );
    assert_eq!((run.status, run.stdout), (Some(0), expected));
    let run = folder.run(&["publish", "users.nut", "shared"]);
    let expected = format!("{}: generation 1 already has these contents\n", folder.text("shared"));
    assert_eq!((run.status, run.stdout), (Some(0), expected));

    let run = folder.run(&["generations", "shared", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&line["generation"], &line["current"]), (&1.into(), &true.into()));
    assert_eq!(line["metadata"], serde_json::json!({"source": "crm"}));
    assert_eq!((&line["entries"], &line["bytes"]), (&1.into(), &bytes.into()));

    let run = folder.run(&["follow", "shared", "there", "--once"]);
    let path = folder.text("there/users.nut");
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.starts_with(&format!("{path}: generation 1 is current, ")), "{run:?}");
    let run = folder.run(&["follow", "shared", "there", "--once"]);
    assert_eq!((run.status, run.stdout), (Some(0), format!("{path}: generation 1 is current\n")));
    assert_eq!(value(&folder), Some(1));
}

#[test]
fn a_rollback_is_listed_and_followed() {
    let folder = Folder::new();
    for value in 1..=2 {
        publish(&folder, value, "shared");
    }
    let run = folder.run(&["generations", "shared", "--rollback", "1"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let marked: Vec<_> = run.stdout.lines().filter(|line| line.starts_with('*')).collect();
    assert!(marked.len() == 1 && marked[0].contains("  1  20"), "{}", run.stdout);
    assert_eq!(folder.run(&["follow", "shared", "there", "--once"]).status, Some(0));
    assert_eq!(value(&folder), Some(1));
    let run = folder.run(&["generations", "shared", "--rollback", "7"]);
    assert_eq!(run.status, Some(3));
    assert!(run.stderr.ends_with("there is no generation 7; there are: 1, 2\n"), "{}", run.stderr);
}

#[test]
fn wrong_arguments_and_missing_places_are_errors() {
    let folder = Folder::new();
    publish(&folder, 1, "shared");
    for (arguments, status, message) in [
        (&["generations", "nowhere"][..], 3, "expected generations, found none; publish one first"),
        (&["follow", "nowhere", "there", "--once"], 3, "expected generations, found none"),
        (&["publish", "missing.nut", "shared"], 3, "missing.nut: open: No such file"),
        (&["publish", "users.nut", "shared", "--keep", "0"], 2, "0 is not in 1.."),
        (&["publish", "users.nut", "ftp://host/path"], 3, "found one of another scheme"),
        (
            &["publish", "users.nut", "http://127.0.0.1:1/path"],
            3,
            "an HTTP server is for followers",
        ),
        (&["follow", "http://u:p@host/path", "there"], 3, "expected an address without a user"),
        (&["publish", "users.nut", "s3://"], 3, "s3:// with no bucket"),
        (&["generations", "shared", "--sign-key", "a.pem"], 3, "a.pem: read: No such file"),
        (&["follow", "shared", "there", "--bandwidth", "0"], 2, "expected at least 1 byte"),
        (&["follow", "shared", "there", "--interval", "0"], 2, "expected more than 0s"),
        (&["follow", "shared", "there", "--once", "--max-age", "1h"], 2, "cannot be used with"),
        (&["follow", "shared", "there", "--delta-memory", "1MiB"], 2, "expected at least 32MiB"),
        (&["follow", "shared", "there", "--delta-threads", "0"], 2, "0 is not in 1.."),
        (&["follow", "shared", "there", "--config", "follow.toml"], 2, "cannot be used with"),
        (&["follow", "shared"], 2, "<DIR>"),
        (&["follow", "--config", "follow.toml"], 3, "follow.toml: read: No such file"),
        (&["follow", "--config", "a.jsonl"], 3, "a.jsonl: line 1: "),
        (&["publish", "users.nut", "shared", "--trust-key", "a.pem"], 2, "--sign-key <FILE>"),
        (&["follow", "shared", "there", "--admin", "0.0.0.0:1"], 2, "--admin-insecure allows it"),
        (&["follow", "shared", "there", "--trust-key", "a.jsonl"], 3, "an Ed25519 public key"),
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.status, Some(status), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_follower_swaps_and_reports_its_age_and_its_failures() {
    let folder = Folder::new();
    let hook = "echo $NUTHATCH_GENERATION $NUTHATCH_PATH >> swaps; test $NUTHATCH_GENERATION = 1";
    let mut server = follow(&folder, &["--on-swap", hook, "--max-age", "1h"]);
    wait_until("a failed check", || {
        metric(&server, "nuthatch_follow_failures_total{cause=\"nothing-published\"}") >= Some(1.0)
    });
    let (status, text) = page(&server, "/healthz");
    assert_eq!((status, &text[..]), (503, "no generation was fetched yet\n"));
    assert_eq!(metric(&server, "nuthatch_follow_healthy"), Some(0.0));
    assert_eq!(metric(&server, "nuthatch_follow_failures_total{cause=\"signature\"}"), Some(0.0));
    for number in 1..=2 {
        publish(&folder, number, "shared");
        wait_until("a swap", || {
            metric(&server, "nuthatch_follow_generation") == Some(number as f64)
        });
        assert_eq!(value(&folder), Some(number));
    }
    assert_eq!(page(&server, "/healthz").0, 200);
    assert_eq!(metric(&server, "nuthatch_follow_healthy"), Some(1.0));
    assert!(page(&server, "/metrics").1.contains("\nprocess_open_fds "));
    assert_eq!(metric(&server, "nuthatch_follow_swaps_total"), Some(2.0));
    assert_eq!(metric(&server, "nuthatch_follow_remaining_bytes"), Some(0.0));
    assert!(metric(&server, "nuthatch_follow_fetched_bytes_total") > Some(0.0));
    assert!(metric(&server, "nuthatch_follow_age_seconds") < Some(600.0));
    wait_until("a check", || metric(&server, "nuthatch_follow_check_age_seconds") < Some(60.0));
    let path = folder.text("there/users.nut");
    wait_until("the second command", || {
        std::fs::read_to_string(folder.path("swaps")).expect("its output")
            == format!("1 {path}\n2 {path}\n")
    });
    wait_until("a warning", || {
        server.messages().contains("--on-swap: the command ended with exit status: 1")
    });
    server.signal(Signal::TERM);
    assert_eq!(server.wait_until_ended(), Some(0));
}

#[test]
fn a_command_after_a_swap_that_hangs_is_killed_when_the_follower_ends() {
    let folder = Folder::new();
    publish(&folder, 1, "shared");
    let hook = "sh -c 'echo $$ > pid; exec sleep 1000'; echo it has ended";
    let mut server = follow(&folder, &["--on-swap", hook]);
    let pid = || std::fs::read_to_string(folder.path("pid")).unwrap_or_default();
    wait_until("the command", || pid().ends_with('\n'));
    let process = format!("/proc/{}", pid().trim());
    server.signal(Signal::TERM);
    assert_eq!(server.wait_until_ended(), Some(0));
    // A process that has ended stays as a zombie until its parent has read its status.
    let stat = || std::fs::read_to_string(format!("{process}/stat")).unwrap_or_default();
    wait_until("the end of what the command has started", || {
        stat().is_empty() || stat().contains(") Z ")
    });
}

#[test]
fn a_generation_that_is_too_old_is_unhealthy() {
    let folder = Folder::new();
    publish(&folder, 1, "shared");
    let server = follow(&folder, &["--max-age", "1ns"]);
    wait_until("a generation", || metric(&server, "nuthatch_follow_generation") == Some(1.0));
    let (status, text) = page(&server, "/healthz");
    assert_eq!(status, 503);
    assert!(text.starts_with("the generation is "), "{text}");
}

#[test]
fn one_process_follows_several_snapshots_and_swaps_those_of_a_group_together() {
    let folder = Folder::new();
    let tables = ["users", "prices"].map(|name| {
        format!("[[snapshot]]\nsource = \"shared-{name}\"\nfolder = \"{name}\"\ngroup = \"shop\"\n")
    });
    let alone = "[[snapshot]]\nsource = \"shared\"\nfolder = \"there\"\non_swap = \"touch ran\"\n\
                 max_age = \"1h\"\n";
    folder.file("follow.toml", format!("{}{alone}", tables.concat()));
    publish(&folder, 1, "shared");
    publish(&folder, 1, "shared-users");
    let run = folder.run(&["follow", "--config", "follow.toml", "--once"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("error: prices: "), "{}", run.stderr);
    let message = "group \"shop\": waits for the folders whose check failed\n";
    assert!(run.stderr.ends_with(message), "{}", run.stderr);
    assert_eq!(value(&folder), Some(1));
    assert!(!folder.path("users/users.nut").exists() && folder.path("ran").exists());

    let server = folder.start(folder.command(&[
        "follow",
        "--config=follow.toml",
        "--admin=127.0.0.1:0",
        "--interval=10ms",
    ]));
    wait_until("a complete generation", || {
        metric_of(&server, "users", "nuthatch_follow_waiting") == Some(1.0)
    });
    let (status, text) = page(&server, "/healthz");
    let none = "no generation was fetched yet";
    assert_eq!((status, text), (503, format!("users: {none}; prices: {none}\n")));
    publish(&folder, 1, "shared-prices");
    wait_until("both swaps", || {
        ["users", "prices"]
            .iter()
            .all(|name| metric_of(&server, name, "nuthatch_follow_generation") == Some(1.0))
    });
    assert_eq!(page(&server, "/healthz").0, 200);
    assert_eq!(metric(&server, "nuthatch_follow_generation"), Some(1.0));
    assert_eq!(metric_of(&server, "users", "nuthatch_follow_waiting"), Some(0.0));
    assert!(folder.path("users/users.nut").exists() && folder.path("prices/users.nut").exists());
    drop(server);
    let run = folder.run(&["follow", "--config", "follow.toml", "--once"]);
    assert_eq!((run.status, run.stdout.lines().count()), (Some(0), 3), "{run:?}");
}

#[test]
fn a_changed_row_reaches_the_follower_as_a_delta() {
    let folder = Folder::new();
    let keys: Vec<_> = (0..20_000).map(|key| key.to_string()).collect();
    let server = follow(&folder, &[]);
    for changed in 1..=2_u64 {
        let others = keys.iter().map(|key| (&key[..], "\"a value of some length\""));
        let value = changed.to_string();
        let rows: Vec<_> = others.chain([("a", &value[..])]).collect();
        folder.file("a.jsonl", lines(&rows));
        folder.build(&["a.jsonl", "-o", "users.nut"]);
        let run = folder.run(&["publish", "users.nut", "shared"]);
        assert_eq!((run.status, run.stdout.contains(", delta ")), (Some(0), changed == 2));
        wait_until("a swap", || self::value(&folder) == Some(changed));
    }
    wait_until("its metrics", || metric(&server, "nuthatch_follow_built_files_total") == Some(1.0));
    assert_eq!(metric(&server, "nuthatch_follow_delta_failures_total"), Some(0.0));
    let fetched = metric(&server, "nuthatch_follow_fetched_bytes_total").expect("bytes");
    let file = folder.bytes("users.nut").len() as f64;
    assert!(fetched < file * 1.01, "{fetched} of {file}");
}

/// Followers that are killed at any moment leave a complete generation, and the next one goes on.
#[test]
fn killed_followers_leave_a_complete_generation() {
    let folder = Folder::new();
    let mut random = Random::new(17);
    let mut known = 0;
    for value in 1..=30 {
        publish(&folder, value, "shared");
        let mut child = folder
            .command(&["follow", "shared", "there", "--interval=1ms", "--log=off"])
            .stdout(Stdio::null())
            .spawn()
            .expect("a follower");
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        std::thread::sleep(Duration::from_micros(random.below(30_000)));
        child.kill().expect("a running follower");
        child.wait().expect("its end");
        if folder.path("there/users.nut").exists() {
            let run = folder.run(&["verify", "there/users.nut", "--quiet"]);
            assert_eq!(run.status, Some(0), "{run:?}");
            let found = self::value(&folder).expect("a value");
            assert!((known..=value).contains(&found), "{found} after {known}");
            known = found;
        }
    }
    assert!(known > 0, "no follower swapped anything in");
    assert_eq!(folder.run(&["follow", "shared", "there", "--once"]).status, Some(0));
    assert_eq!(value(&folder), Some(30));
}

/// Any HTTP server with ranges will do; this one is the cache of remote objects.
#[test]
fn a_follower_reads_from_an_http_server() {
    let folder = Folder::new();
    publish(&folder, 1, "shared");
    let origin = format!("file://{}/", folder.text("shared"));
    let serve = ["chunks", "serve", "--origin", &origin, "--cache", "cache", "--limit", "64MiB"];
    let server = folder.start(folder.command(&[&serve[..], &["--listen", "127.0.0.1:0"]].concat()));
    for number in 1..=2 {
        publish(&folder, number, "shared");
        let run = folder.run(&["follow", &server.addresses[0], "there", "--once"]);
        assert_eq!(run.status, Some(0), "{run:?}");
        assert_eq!(value(&folder), Some(number));
    }
    let nothing = format!("{}/nothing", server.addresses[0].trim_end_matches('/'));
    let run = folder.run(&["generations", &nothing]);
    assert_eq!(run.status, Some(3));
    assert!(run.stderr.contains("expected generations, found none"), "{run:?}");
}

#[test]
fn snapshots_go_through_s3() {
    let folder = Folder::new();
    let moto = Moto::start(&folder.path(""));
    moto.request("PUT", "/bucket", b"");
    let store = Store {
        folder: &folder,
        address: "s3://bucket/the users",
        configure: &|command: &mut Command| moto.configure(command),
        secret: "a5ecret",
    };
    stores::sets_are_published_and_followed(&store);
    stores::one_of_several_publishers_wins(&store);
    stores::large_files_arrive_whole(&store);
    objects_in_an_archive_are_used_again(&store, &moto);
    let run = store.run(&["publish", "set/users.nut", "s3://no-bucket/users"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    let place = "s3://no-bucket/users/objects: ";
    assert!(run.stderr.contains(place) && run.stderr.contains("it does not exist"), "{run:?}");
}

/// Objects that cannot be read cannot be verified, either.
fn objects_in_an_archive_are_used_again(store: &Store<'_>, moto: &Moto) {
    store.folder.file("a.jsonl", lines(&[("a", "1")]));
    store.folder.build(&["a.jsonl", "-o", "users.nut"]);
    let publish = || {
        let run = store.run(&["publish", "users.nut", "s3://bucket/archived", "--json"]);
        assert_eq!(run.status, Some(0), "{run:?}");
        let published = serde_json::from_str(&run.stdout).expect("a JSON object");
        (published, run.stderr)
    };
    let (first, _): (serde_json::Value, _) = publish();
    assert_eq!(first["unread_objects"], serde_json::json!([]));
    let manifest = String::from_utf8(moto.request("GET", "/bucket/archived/manifest.json", b""));
    let manifest: serde_json::Value =
        serde_json::from_str(&manifest.expect("text")).expect("a JSON object");
    let object = manifest["generations"][0]["files"][0]["object"].as_str().expect("a name");
    moto.archive(&format!("/bucket/archived/objects/{object}"));
    let (again, notes): (serde_json::Value, _) = publish();
    let unread = again["unread_objects"][0].as_str().expect("a reason");
    assert!(unread.starts_with("s3://bucket/archived/objects/"), "{unread}");
    assert!(notes.contains(&format!("note: used again without verification: {unread}")), "{notes}");
    assert_eq!((&again["generation"], &again["unchanged"]), (&1.into(), &true.into()));
}

#[test]
fn snapshots_go_through_google_cloud_storage() {
    let folder = Folder::new();
    let google = Google::start(&folder.path(""));
    let store = Store {
        folder: &folder,
        address: "gs://bucket/the users",
        configure: &|command: &mut Command| google.configure(command),
        secret: "private_key",
    };
    stores::sets_are_published_and_followed(&store);
    stores::one_of_several_publishers_wins(&store);
    stores::large_files_arrive_whole(&store);
}

#[test]
fn a_small_snapshot_is_uploaded_in_one_request() {
    let folder = Folder::new();
    let google = Google::start(&folder.path(""));
    folder.file("a.jsonl", lines(&[("a", "1")]));
    folder.build(&["a.jsonl", "-o", "users.nut"]);
    let mut command = folder.command(&["publish", "users.nut", "gs://bucket/users"]);
    google.configure(&mut command);
    let run = Run::of(command, b"");
    assert_eq!(run.status, Some(0), "{run:?}");
    let writes = google.requests().into_iter().filter(|request| !request.starts_with("GET"));
    assert_eq!(writes.count(), 2, "the snapshot and the manifest");
}

/// What a swap has started must not be lost because its line cannot be printed.
#[test]
fn a_full_output_of_a_check_keeps_no_command_from_running() {
    let folder = Folder::new();
    for name in ["a", "b"] {
        publish(&folder, 1, &format!("shared-{name}"));
    }
    folder.file(
        "follow.toml",
        "[[snapshot]]\nsource = \"shared-a\"\nfolder = \"a\"\non_swap = \"touch ran-a\"\n\
         [[snapshot]]\nsource = \"shared-b\"\nfolder = \"b\"\non_swap = \"touch ran-b\"\n",
    );
    let (status, _) = folder.run_with_full_output(&["follow", "--config", "follow.toml", "--once"]);
    assert_eq!(status, Some(3));
    assert!(folder.path("ran-a").exists() && folder.path("ran-b").exists());
}

#[test]
fn a_signal_during_a_check_ends_the_command_of_the_swap_and_hides_no_swap() {
    let folder = Folder::new();
    publish(&folder, 1, "shared");
    let hook = "exec > null 2> null; echo $$ > pid.new; mv pid.new pid; sleep 600";
    let mut command = folder.command(&["follow", "shared", "there", "--once", "--on-swap", hook]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let follower = command.spawn().expect("a follower");
    wait_until("the command runs", || folder.path("pid").exists());
    let follower_id = rustix::process::Pid::from_child(&follower);
    rustix::process::kill_process(follower_id, Signal::TERM).expect("a process");
    let output = follower.wait_with_output().expect("its output");
    assert_eq!(output.status.code(), Some(3));
    let [stdout, stderr] = [output.stdout, output.stderr].map(String::from_utf8);
    assert!(stdout.expect("text").contains(": generation 1 is current, "));
    assert!(stderr.expect("text").contains("interrupted after a swap; a command of --on-swap"));
    let pid = String::from_utf8(folder.bytes("pid")).expect("text");
    let is_running = || std::fs::exists(format!("/proc/{}", pid.trim())).expect("/proc");
    wait_until("the command has ended", || !is_running());
}

#[test]
fn commands_of_a_group_that_were_not_started_run_at_the_next_start() {
    for signal in [Signal::TERM, Signal::KILL] {
        let folder = Folder::new();
        let hooks = ["echo $$ > pid.new; mv pid.new pid; exec sleep 600", "touch ran-b"];
        let tables = ["a", "b"].iter().zip(hooks).map(|(name, hook)| {
            publish(&folder, 1, &format!("shared-{name}"));
            format!(
                "[[snapshot]]\nsource = \"shared-{name}\"\nfolder = \"{name}\"\ngroup = \"g\"\n\
                 on_swap = \"exec > null 2> null; {hook}\"\n"
            )
        });
        folder.file("follow.toml", tables.collect::<String>());
        let once = ["follow", "--config", "follow.toml", "--once"];
        let mut command = folder.command(&once);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let follower = command.spawn().expect("a follower");
        wait_until("the command runs", || folder.path("pid").exists());
        let state = || String::from_utf8(folder.bytes("a/.nuthatch/state.json")).expect("text");
        wait_until("its start is stored", || !state().contains("is_unconfirmed"));
        let follower_id = rustix::process::Pid::from_child(&follower);
        rustix::process::kill_process(follower_id, signal).expect("a process");
        let stderr = follower.wait_with_output().expect("its output").stderr;
        let stderr = String::from_utf8(stderr).expect("text");
        if signal == Signal::TERM {
            let note =
                "note: b: the command of --on-swap was not started; it runs at the next start";
            assert!(stderr.contains(note), "{stderr}");
        } else {
            // The command that was started lives on.
            let pid = String::from_utf8(folder.bytes("pid")).expect("text");
            let pid = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
            rustix::process::kill_process(pid.expect("an id"), signal).expect("a process");
        }
        assert!(!folder.path("ran-b").exists());
        std::fs::remove_file(folder.path("pid")).expect("removed");
        let run = folder.run(&once);
        assert_eq!(run.status, Some(0), "{run:?}");
        assert!(folder.path("ran-b").exists() && !folder.path("pid").exists());
    }
}

#[test]
fn a_set_of_more_shards_than_the_soft_limit_of_files_is_published() {
    let folder = Folder::new();
    let rows: Vec<_> = (0..2000).map(|key| key.to_string()).collect();
    folder.file("a.jsonl", lines(&rows.iter().map(|key| (&key[..], "1")).collect::<Vec<_>>()));
    folder.build(&["a.jsonl", "-o", "users.nut", "--shards", "200"]);
    let mut limited = Command::new("/bin/sh");
    limited.args(["-c", "ulimit -Sn 128; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_nuthatch")]);
    limited.args(["publish", "users.nut", "shared", "--quiet"]).current_dir(folder.path(""));
    let run = Run::of(limited, b"");
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
}

/// Changes the state of the folder `there` to that of a follower that was killed after it had
/// replaced the link, and before it stored that.
fn forget_the_end_of_the_swap(folder: &Folder) {
    let state = folder.bytes("there/.nuthatch/state.json");
    let state: serde_json::Value = serde_json::from_slice(&state).expect("JSON");
    let state = serde_json::json!({ "serial": 0, "next": state });
    folder.file("there/.nuthatch/state.json", state.to_string());
}

#[test]
fn a_swap_that_a_restart_completes_is_reported_and_runs_the_command() {
    let folder = Folder::new();
    publish(&folder, 1, "shared");
    let once = ["follow", "shared", "there", "--once", "--on-swap", "echo ran >> ran"];
    assert_eq!(folder.run(&once).status, Some(0));
    forget_the_end_of_the_swap(&folder);
    let run = folder.run(&once);
    let line = format!("{}: generation 1 is current", folder.text("there/users.nut"));
    assert_eq!((run.status, run.stdout), (Some(0), format!("{line}, 0 B fetched\n")));
    assert_eq!(folder.bytes("ran"), b"ran\nran\n");
    assert_eq!(folder.run(&once).stdout, format!("{line}\n"));
    assert_eq!(folder.bytes("ran"), b"ran\nran\n");
    // Also while the source is away.
    forget_the_end_of_the_swap(&folder);
    std::fs::rename(folder.path("shared"), folder.path("away")).expect("moved away");
    let server = follow(&folder, &["--on-swap", "echo ran >> ran"]);
    wait_until("the command", || folder.bytes("ran") == b"ran\nran\nran\n");
    assert_eq!(metric(&server, "nuthatch_follow_swaps_total"), Some(1.0));
    assert_eq!(metric(&server, "nuthatch_follow_generation"), Some(1.0));
}

#[test]
fn a_folder_whose_swap_was_undone_for_its_group_is_not_called_current() {
    let folder = Folder::new();
    let tables = ["a", "b"].map(|name| {
        format!("[[snapshot]]\nsource = \"shared-{name}\"\nfolder = \"{name}\"\ngroup = \"g\"\n")
    });
    folder.file("follow.toml", tables.concat());
    let once = ["follow", "--config", "follow.toml", "--once"];
    for value in 1..=2 {
        for to in ["shared-a", "shared-b"] {
            publish(&folder, value, to);
        }
        if value == 1 {
            assert_eq!(folder.run(&once).status, Some(0));
        }
    }
    std::fs::create_dir(folder.path("b/.nuthatch/link.new")).expect("a folder");
    let run = folder.run(&once);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
    let message = "group \"g\": waits for the folders whose check failed\n";
    assert!(run.stderr.contains("error: b: ") && run.stderr.ends_with(message), "{run:?}");
    let server = folder.start(folder.command(&[
        "follow",
        "--config=follow.toml",
        "--admin=127.0.0.1:0",
        "--interval=10ms",
    ]));
    wait_until("the first check", || {
        metric_of(&server, "a", "nuthatch_follow_waiting") == Some(1.0)
    });
    assert_eq!(metric_of(&server, "b", "nuthatch_follow_waiting"), Some(0.0));
}
