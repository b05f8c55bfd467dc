//! Jobs that publish, on a schedule.

use crate::place::{Place, Run};
use nuthatch_delivery::{Destination, FollowOptions, Follower};
use nuthatch_snapshot::Snapshot;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_schedule_publishes_until_it_is_interrupted() {
    let place = Place::new();
    place.sqlite("create table t(id integer, v text); insert into t values (1, 'a')");
    place.file(
        "job.toml",
        "output = \"a.nut\"\n[[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select * from t\"\n\
         key = \"{id}\"\n",
    );
    let arguments = ["job.toml", "--every=10ms", "--publish=shared", "--json", "--log-json"];
    let mut command = place.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> serde_json::Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("a report")
    };
    assert_eq!(next()["published"]["generation"], 1);
    place.sqlite("update t set v = 'b'");
    while next()["published"]["generation"] != 2 {}

    let destination = Destination::open(place.path().join("shared").to_str().expect("UTF-8"));
    let there = place.path().join("there");
    let mut follower =
        Follower::open(destination.expect("a folder"), &there, FollowOptions::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let checked = runtime.block_on(follower.as_mut().expect("a follower").check(|_| {}));
    let path = checked.expect("a check").expect("a generation").path;
    let snapshot = Snapshot::open(path).expect("a snapshot");
    assert_eq!(snapshot.get_string(b"1").expect("a string").as_deref(), Some("b"));

    // A run that fails is reported, and the schedule goes on.
    place.sqlite("alter table t rename to other");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let failure = errors.next().expect("a line").expect("text");
    assert!(failure.contains("no such table: t") && failure.contains("next run in"), "{failure}");
    let record: serde_json::Value = serde_json::from_str(&failure).expect("a record of the log");
    assert_eq!(record["target"], "nuthatch::populate", "{failure}");
    place.sqlite("alter table other rename to t");
    while next()["published"]["generation"] != 2 {}
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a process");
    // The rest of both pipes is read, so that the program does not wait for it.
    drop(lines);
    drop(errors);
    let run = Run::of(child.wait_with_output().expect("the command"));
    assert!(matches!(run.status, Some(0 | 3)), "{run:?}");
}

#[test]
fn a_destination_that_cannot_be_used_is_reported_before_rows_are_read() {
    let place = Place::new();
    place.file("a.csv", "id,v\n1,x\n");
    let job = |publish: &str| {
        format!(
            "output = \"a.nut\"\npublish = {publish}\n\
             [[source]]\nfrom = \"a.csv\"\nkey = \"{{id}}\""
        )
    };
    place.job(&job("\"ftp://host/path\"")).failed(3, "another scheme");
    place.job(&job("{ to = \"shared\", sign_key = \"k.pem\" }")).failed(3, "k.pem: read: No such");
    assert!(!place.path().join("a.nut").exists());
    place.job(&job("{ to = \"shared\", keep = 2 }")).report();
    place.job(&job("{ to = \"shared\", kep = 2 }")).failed(3, "publish");
}

/// The second run refused the manifest that the first one had signed.
#[test]
fn a_job_with_trusted_keys_trusts_its_own_key() {
    let place = Place::new();
    place.file("a.csv", "id,v\n1,x\n");
    let key = || rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let (own, other) = (key(), key());
    place.file("own.pem", own.serialize_pem());
    place.file("other.pem", other.serialize_pem());
    place.file("other.pub", other.public_key_pem());
    let job = |publish: &str| {
        format!(
            "output = \"a.nut\"\npublish = {publish}\n\
             [[source]]\nfrom = \"a.csv\"\nkey = \"{{id}}\"\n\
             [gates]\nmax_entry_change = \"10%\""
        )
    };
    place.job(&job("{ to = \"shared\", sign_key = \"other.pem\" }")).report();
    let changed = job("{ to = \"shared\", sign_key = \"own.pem\", trust_key = [\"other.pub\"] }");
    for _ in 0..2 {
        place.job(&changed).report();
    }
}
