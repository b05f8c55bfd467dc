//! Tests the programs: exit statuses, messages, and that no process is left running.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn race(arguments: &str) -> Command {
    let mut race = Command::new(env!("CARGO_BIN_EXE_race"));
    // All run on one core, since a machine may have only one.
    race.args(["--server-core", "0", "--generator-core", "0"]);
    race.args(arguments.split_ascii_whitespace());
    race
}

#[track_caller]
fn assert_fails(output: &Output, status: i32, message: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
}

#[test]
fn a_race_prints_rows() {
    let short = "--systems echo --works get100,set100 --rounds 2 --warmup 1ms --seconds 10ms";
    let output = race(short).arg("--json").output().expect("it runs");
    let (rows, stderr) = (String::from_utf8_lossy(&output.stdout), &output.stderr);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(stderr));
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!((lines[0], lines[3], lines.len()), ("[", "]", 4), "{rows}");
    assert!(lines[1].starts_with("  {\"work\":\"get100\",\"system\":\"echo\",\"ops_per"), "{rows}");
    assert!(lines[2].starts_with("  {\"work\":\"set100\",\"system\":\"echo\",\"ops_per"), "{rows}");
}

#[test]
fn a_missing_program_is_reported_with_its_package() {
    for (system, package) in [("redis", "redis-server"), ("memcached", "memcached")] {
        let arguments = format!("--systems {system} --works get100");
        let output = race(&arguments).env("PATH", "").output().expect("it runs");
        assert_fails(&output, 3, &format!("Debian has it in {package}"));
    }
}

#[test]
fn unknown_names_are_usage_errors() {
    let output = race("--works get200").output().expect("it runs");
    assert_fails(&output, 2, "expected some of get100, ");
    let output = race("--systems valkey").output().expect("it runs");
    assert_fails(&output, 2, "expected some of redis, ");
    let output = race("--systems nuthatch").output().expect("it runs");
    assert_fails(&output, 2, "--nuthatch PATH");
}

#[test]
fn a_signal_ends_a_race_and_its_servers() {
    let mut race = race("--systems echo --works get100 --seconds 3600")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut messages = BufReader::new(race.stderr.take().expect("a pipe")).lines();
    // The server is running when the first round begins.
    let first = messages.next().expect("a message").expect("text");
    assert_eq!(first, "get100: round 1 of 3");
    let servers = children_of(race.id());
    assert_eq!(servers.len(), 1);
    kill_process(Pid::from_child(&race), Signal::TERM).expect("it is there");
    assert_eq!(race.wait().expect("it ends").code(), Some(3));
    assert_eq!(messages.next().and_then(Result::ok).as_deref(), Some("race: interrupted"));
    assert!(fs::metadata(format!("/proc/{}", servers[0])).is_err(), "the server is gone");
}

/// Returns the child processes of a process.
fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("a file system of processes").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

#[test]
fn the_exit_status_of_load_depends_on_the_error() {
    let load = |arguments: &str| {
        let arguments = arguments.split_ascii_whitespace();
        Command::new(env!("CARGO_BIN_EXE_load")).args(arguments).output().expect("it runs")
    };
    assert_fails(&load("--address localhost"), 2, "expected HOST:PORT or unix:PATH");
    assert_fails(&load("--address unix:/x --connections 1 --threads 2"), 2, "a connection");
    assert_fails(&load("--address unix:/no/socket --keys 9"), 3, "unix:/no/socket: connection 0: ");
    let help = load("--help");
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("Exit status:"));
}

#[test]
fn echo_prints_its_address_and_ends_by_a_signal() {
    let mut echo = Command::new(env!("CARGO_BIN_EXE_echo"))
        .args(["--address", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(echo.stdout.take().expect("a pipe")).lines();
    let address = lines.next().expect("a line").expect("text");
    let arguments = ["--address", &address, "--keys", "9", "--seconds", "10ms", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_load")).args(arguments).output();
    let report = String::from_utf8(output.expect("it runs").stdout).expect("text");
    assert!(report.starts_with("{\"ops_per_second\":"), "{report}");
    kill_process(Pid::from_child(&echo), Signal::TERM).expect("it is there");
    assert!(echo.wait().expect("it ends").success());
}
