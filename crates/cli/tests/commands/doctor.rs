//! `nuthatch doctor` on the machine of the test.

use crate::folder::Folder;
use serde_json::Value;

/// Runs the command with addresses that are free. Returns its exit status and its findings.
fn findings(folder: &Folder, settings: &str) -> (Option<i32>, Vec<Value>) {
    folder.file("nuthatch.toml", settings);
    let run = folder.run(&["doctor", "--config", "nuthatch.toml", "--json"]);
    assert_eq!(run.stderr, "", "{run:?}");
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    (run.status, value["findings"].as_array().expect("an array").clone())
}

fn finding<'v>(findings: &'v [Value], name: &str) -> &'v Value {
    findings.iter().find(|finding| finding["name"] == name).expect(name)
}

#[test]
fn a_machine_is_examined_for_the_settings_of_a_server() {
    let folder = Folder::new();
    let free = "resp = [\"127.0.0.1:0\"]\nmemcache = [\"off\"]\nadmin = [\"off\"]\n";
    let (status, all) = findings(&folder, &format!("{free}memory = \"64MiB\"\nmax-clients = 10\n"));
    assert_eq!(status, Some(0), "{all:?}");
    assert_eq!(finding(&all, "memory")["status"], "ok");
    assert_eq!(finding(&all, "port of resp")["status"], "ok");
    assert!(
        finding(&all, "open files")["found"].as_str().expect("text").contains("10 connections")
    );

    let (status, all) = findings(&folder, &format!("{free}memory = \"1000GiB\"\n"));
    assert_eq!(status, Some(1), "{all:?}");
    let memory = finding(&all, "memory");
    assert_eq!(memory["status"], "problem");
    assert!(memory["advice"].as_str().expect("text").contains("1000.0 GiB"), "{memory}");
}

#[test]
fn a_running_server_is_not_a_problem_and_another_program_is() {
    let folder = Folder::new();
    let server = folder.serve(&["--admin=127.0.0.1:0", "--memory=64MiB"], &[]);
    let (resp, admin) = (&server.addresses[0], &server.admin);
    let settings =
        |admin: &str| format!("resp = [\"{resp}\"]\nmemcache = [\"off\"]\nadmin = [\"{admin}\"]\n");
    let (_, all) = findings(&folder, &settings(admin));
    let port = finding(&all, "port of resp");
    assert_eq!(port["status"], "ok", "{port}");
    let (status, all) = findings(&folder, &settings("off"));
    let port = finding(&all, "port of resp");
    assert_eq!((status, &port["status"]), (Some(1), &"problem".into()), "{port}");
}

#[test]
fn a_report_says_what_was_found() {
    let folder = Folder::new();
    let run = folder.run(&["doctor"]);
    assert!(matches!(run.status, Some(0 | 1)), "{run:?}");
    for expected in ["open files: ", "kernel: Linux ", "io_uring: ", " checks, "] {
        assert!(run.stdout.contains(expected), "{run:?}");
    }
    let run = folder.run(&["doctor", "--config", "absent.toml"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
}
