//! What publish and follow promise of every object store.

use crate::folder::{Folder, Run, lines};
use nuthatch_testing::random::Random;
use std::process::{Command, Stdio};

/// An object store with the snapshots of a test.
pub(crate) struct Store<'s> {
    pub(crate) folder: &'s Folder,
    /// An address in the store without an object.
    pub(crate) address: &'s str,
    /// A function that sets the environment of a command.
    pub(crate) configure: &'s dyn Fn(&mut Command),
    /// A text that no output may contain.
    pub(crate) secret: &'s str,
}

impl Store<'_> {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.folder.command(arguments);
        (self.configure)(&mut command);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let run = Run::of(self.command(arguments), b"");
        let shown = run.stdout.contains(self.secret) || run.stderr.contains(self.secret);
        assert!(!shown, "{run:?}");
        run
    }

    fn succeed(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.status, Some(0), "{run:?}");
        run
    }

    fn follow(&self) {
        self.succeed(&["follow", self.address, "there", "--once"]);
    }

    fn value(&self) -> String {
        let run = self.folder.run(&["get", "there/users.nut", "a"]);
        run.stdout.trim_end().to_owned()
    }

    fn generations(&self) -> usize {
        let run = self.succeed(&["generations", self.address, "--json"]);
        run.stdout.lines().count()
    }
}

/// Publishes a set twice, follows it, and moves the manifest back. Equal files are sent once.
pub(crate) fn sets_are_published_and_followed(store: &Store<'_>) {
    let folder = store.folder;
    let keys: Vec<_> = (0..3000).map(|key| key.to_string()).collect();
    std::fs::create_dir(folder.path("set")).expect("a folder");
    let mut sent = Vec::new();
    for changed in ["1", "2"] {
        let others = keys.iter().map(|key| (&key[..], "0"));
        let rows: Vec<_> = others.chain([("a", changed)]).collect();
        folder.file("a.jsonl", lines(&rows));
        folder.build(&["a.jsonl", "-o", "set/users.nut", "--shards", "4"]);
        let slash = format!("{}/", store.address);
        let run = store.succeed(&["publish", "set/users.nut", &slash, "--json"]);
        let line: serde_json::Value = serde_json::from_str(&run.stdout).expect("a JSON object");
        sent.push(line["uploaded_bytes"].as_u64().expect("a number"));
        store.follow();
        assert_eq!(store.value(), changed);
    }
    assert!(sent[1] * 3 < sent[0], "{sent:?}");
    store.succeed(&["generations", store.address, "--rollback", "1"]);
    store.follow();
    assert_eq!(store.value(), "1");
}

/// Several publishers at the same time: each that succeeds has added a generation, and the others
/// say that the manifest was replaced.
pub(crate) fn one_of_several_publishers_wins(store: &Store<'_>) {
    let folder = store.folder;
    let publishers: Vec<_> = (0..6)
        .map(|number: u32| {
            let name = format!("race/{number}/users.nut");
            std::fs::create_dir_all(folder.path(&format!("race/{number}"))).expect("a folder");
            folder.file("a.jsonl", lines(&[("a", &number.to_string())]));
            folder.build(&["a.jsonl", "-o", &name]);
            name
        })
        .collect();
    let address = format!("{}-race", store.address);
    let store = Store { address: &address, ..*store };
    let started: Vec<_> = publishers
        .iter()
        .map(|name| {
            let mut command = store.command(&["publish", name, &address]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a publisher")
        })
        .collect();
    let ended: Vec<_> =
        started.into_iter().map(|each| each.wait_with_output().expect("its output")).collect();
    let (succeeded, failed): (Vec<_>, Vec<_>) =
        ended.iter().partition(|ended| ended.status.success());
    for failure in failed {
        let text = String::from_utf8_lossy(&failure.stderr);
        assert!(text.contains("another publisher"), "{text}");
    }
    assert!(!succeeded.is_empty(), "{ended:?}");
    assert_eq!(store.generations(), succeeded.len());
}

/// A file that is sent in parts and fetched in ranges.
pub(crate) fn large_files_arrive_whole(store: &Store<'_>) {
    let folder = store.folder;
    let mut random = Random::new(7);
    let rows: Vec<_> = (0..600_000)
        .map(|key: u32| (key.to_string(), (random.next_u64() >> 1).to_string()))
        .collect();
    let rows: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    folder.file("a.jsonl", lines(&rows));
    folder.build(&["a.jsonl", "-o", "large.nut"]);
    assert!(folder.bytes("large.nut").len() > 17 << 20, "several parts");
    let address = format!("{}-large", store.address);
    store.succeed(&["publish", "large.nut", &address]);
    store.succeed(&["follow", &address, "large", "--once"]);
    assert!(folder.bytes("large/large.nut") == folder.bytes("large.nut"));
}
