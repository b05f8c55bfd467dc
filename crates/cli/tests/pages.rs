//! The console sessions of the README and of the book, run and compared with the output that the
//! pages show.
//!
//! - `$ cat FILE` creates the file from the lines that follow, if it does not exist.
//! - `$ nuthatch … &` starts a server. It gets free ports, also in place of usual ones in its
//!   command, and the usual addresses in later commands are replaced by them.
//! - A line `...` stands for any lines.
//! - All other commands are run by `sh`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const RESP: &str = "127.0.0.1:6379";

/// The usual address of each kind of listener, and text in the line that a server prints for it.
const LISTENERS: [(&str, &str); 7] = [
    (RESP, "for clients of Redis"),
    ("127.0.0.1:11211", "for clients of memcached"),
    ("127.0.0.1:7000", "for clients of mrcache"),
    ("127.0.0.1:9001", "for clients of poor-man's-cache"),
    ("127.0.0.1:9464", "metrics at"),
    ("127.0.0.1:7380", "grpc://"),
    ("127.0.0.1:7381", "listening at http://"),
];

/// Seconds after which a command is ended: only one that hangs takes so long.
const PATIENCE: &str = "120";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command of a session, and the lines that follow it.
struct Step {
    command: String,
    expected: String,
}

/// Returns the steps of all sessions of a page.
fn steps(page: &str) -> Vec<Step> {
    let text = std::fs::read_to_string(root().join(page)).expect("a page");
    let mut steps: Vec<Step> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let (session, _) = block.split_once("```").expect("the end of a session");
        for line in session.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { command: command.to_owned(), expected: String::new() });
                }
                (None, Some(step)) => {
                    step.expected.push_str(line);
                    step.expected.push('\n');
                }
                (None, None) => panic!("{page}: output before the first command: {line}"),
            }
        }
    }
    steps
}

/// Returns whether output is as expected, where a line `...` stands for any lines.
fn is_as_expected(found: &str, expected: &str) -> bool {
    let Some((start, rest)) = expected.split_once("...\n") else { return found == expected };
    let Some(found) = found.strip_prefix(start) else { return false };
    let lines = found.split_inclusive('\n').map(str::len).chain([0]);
    let mut begin = 0;
    lines.into_iter().any(|len| {
        let is_match = is_as_expected(&found[begin..], rest);
        begin += len;
        is_match
    })
}

/// The sessions of one page, in a folder of their own.
struct Session {
    folder: TempDir,
    servers: Vec<Child>,
    /// Default addresses, and those that servers have instead; `redis-cli` gets the port.
    replacements: Vec<(&'static str, String)>,
}

impl Session {
    /// Returns `sh` with this script, in the folder of the session.
    fn shell(&self, script: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_nuthatch"));
        let path = std::env::var("PATH").expect("PATH");
        let folder = binary.parent().expect("the folder of the command").display();
        let mut command = Command::new("timeout");
        command.args([PATIENCE, "sh", "-c", script]);
        command.env("PATH", format!("{folder}:{path}")).current_dir(&self.folder);
        command
    }

    /// Runs a command and returns what a terminal would show.
    fn run(&self, command: &str) -> String {
        let mut script = format!("exec 2>&1\n{command}");
        for (text, replacement) in &self.replacements {
            script = script.replace(text, replacement);
        }
        let output = self.shell(&script).output().expect("a shell");
        let text = String::from_utf8(output.stdout).expect("text").replace('\r', "");
        assert!(output.status.success(), "{command}: {}: {text}", output.status);
        text
    }

    /// Starts a server at free ports, and waits until it listens.
    fn start(&mut self, command: &str) {
        let free = if command.starts_with("nuthatch serve") {
            "--resp 127.0.0.1:0 --memcache 127.0.0.1:0 --admin 127.0.0.1:0"
        } else {
            "--listen 127.0.0.1:0"
        };
        let given = LISTENERS
            .iter()
            .fold(command.to_owned(), |command, (usual, _)| command.replace(usual, "127.0.0.1:0"));
        let mut shell = self.shell(&format!("exec {given} {free}"));
        let mut server = shell.stdout(Stdio::piped()).spawn().expect("a shell");
        let mut lines = BufReader::new(server.stdout.take().expect("its output")).lines();
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("{command}: it ended")).expect("text");
            let Some((_, url)) = line.split_once(" at ") else { break };
            let (default, _) = LISTENERS
                .iter()
                .find(|(_, text)| line.contains(text))
                .unwrap_or_else(|| panic!("{command}: {line}"));
            let address = url.split_once("://").map_or(url, |(_, rest)| rest);
            let end = address.find([' ', '/']).unwrap_or(address.len());
            let address = &address[..end];
            if *default == RESP {
                let port = address.rsplit(':').next().expect("a port");
                self.replacements.push(("redis-cli", format!("redis-cli -p {port}")));
            }
            self.replacements.push((default, address.to_owned()));
        }
        self.servers.push(server);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // `timeout` passes SIGTERM on, and would not pass on SIGKILL.
            let _ = Command::new("kill").arg(server.id().to_string()).status();
            let _ = server.wait();
        }
    }
}

/// Runs the sessions of a page.
fn check(page: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = Session { folder, servers: Vec::new(), replacements: Vec::new() };
    for Step { command, expected } in steps(page) {
        let file = command.strip_prefix("cat ").map(|name| session.folder.path().join(name));
        if let Some(file) = file.filter(|file| !file.exists()) {
            std::fs::write(file, expected).expect("a file");
        } else if let Some(server) = command.strip_suffix(" &") {
            session.start(server);
            assert_eq!(expected, "", "{page}: {command}: output of a server is not compared");
        } else {
            let found = session.run(&command);
            assert!(
                is_as_expected(&found, &expected),
                "{page}: {command}\nexpected:\n{expected}\nfound:\n{found}"
            );
        }
    }
}

/// Defines the pages, and a test for each of them.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];

        $(
            #[test]
            fn $test() {
                check($page);
            }
        )*
    };
}

pages! {
    the_sessions_of_the_readme_print_what_it_shows: "README.md",
    the_sessions_of_the_cache_chapter_print_what_it_shows: "docs/cache.md",
    the_sessions_of_the_chunk_cache_chapter_print_what_it_shows: "docs/chunks.md",
    the_sessions_of_the_compression_chapter_print_what_it_shows: "docs/compression.md",
    the_sessions_of_the_delivery_chapter_print_what_it_shows: "docs/delivery.md",
    the_sessions_for_users_of_mrcache_print_what_the_page_shows:
        "docs/migrating-from-mrcache.md",
    the_sessions_for_users_of_poor_mans_cache_print_what_the_page_shows:
        "docs/migrating-from-poor-mans-cache.md",
    the_sessions_of_the_populate_chapter_print_what_it_shows: "docs/populate.md",
    the_sessions_of_the_chapter_on_serving_snapshots_print_what_it_shows:
        "docs/serving-snapshots.md",
    the_sessions_of_the_snapshot_chapter_print_what_it_shows: "docs/snapshots.md",
    the_sessions_of_the_store_chapter_print_what_it_shows: "docs/store.md",
    the_sessions_of_the_runbook_print_what_it_shows: "docs/what-to-do-when.md",
}

#[test]
fn every_page_with_sessions_is_run() {
    let docs = std::fs::read_dir(root().join("docs")).expect("the pages");
    let mut pages: BTreeSet<String> = docs
        .map(|entry| format!("docs/{}", entry.expect("a page").file_name().display()))
        .filter(|page| Path::new(page).extension().is_some_and(|extension| extension == "md"))
        .filter(|page| !steps(page).is_empty())
        .collect();
    pages.insert("README.md".to_owned());
    let run: BTreeSet<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
    assert_eq!(pages, run);
}

#[test]
fn an_ellipsis_stands_for_any_lines() {
    for (found, expected) in [("a\n", "a\n"), ("a\nb\nc\n", "a\n...\nc\n"), ("a\n", "...\n")] {
        assert!(is_as_expected(found, expected), "{found:?} {expected:?}");
    }
    for (found, expected) in [("a\n", ""), ("a\nb\n", "a\n...\nc\n"), ("b\na\n", "a\n...\n")] {
        assert!(!is_as_expected(found, expected), "{found:?} {expected:?}");
    }
}
