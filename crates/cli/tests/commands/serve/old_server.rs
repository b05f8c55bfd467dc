//! Pages for users of other cache servers, `docs/migrating-from-*.md`: reads them, and runs their
//! command lines and snippets.

use crate::folder::Folder;
use crate::server::Running;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// A page, and the flags of the server that it replaces.
pub(super) struct Page {
    pub(super) text: String,
    old_flags: &'static [&'static str],
}

/// Returns the code spans of a line of Markdown.
pub(super) fn code_spans(line: &str) -> Vec<String> {
    line.split('`').skip(1).step_by(2).map(|span| span.replace("\\|", "|")).collect()
}

/// Returns the first code span of a cell, or `None` if the cell begins with other text.
pub(super) fn code(cell: &str) -> Option<String> {
    cell.starts_with('`').then(|| code_spans(cell).swap_remove(0))
}

/// Returns the flags that `nuthatch serve --help` names.
fn known_flags(folder: &Folder) -> Vec<String> {
    let help = folder.run(&["serve", "--help"]).stdout;
    let words = help.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

/// Runs a command line that begins with `nuthatch serve`, or with variables before it, with
/// `--show-config`: the server checks all settings, and does not listen.
#[track_caller]
fn assert_is_accepted(folder: &Folder, line: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_nuthatch"));
    let path = std::env::var("PATH").expect("PATH");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{line} --show-config")]).current_dir(folder.path("."));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NUTHATCH_")) {
        command.env_remove(name);
    }
    command.env("PATH", format!("{}:{path}", binary.parent().expect("a folder").display()));
    let output = command.output().expect("a shell");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && messages.is_empty(), "{line}: {messages}");
}

impl Page {
    pub(super) fn read(name: &str, old_flags: &'static [&'static str]) -> Self {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        Self { text: std::fs::read_to_string(path).expect("a page"), old_flags }
    }

    /// Returns the blocks of code in this language, without the indentation of their list.
    fn blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if line.trim_start() != format!("```{language}") {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            let block = lines.by_ref().take_while(|line| line.trim() != "```");
            blocks.push(
                block.map(|line| line.get(indent..).unwrap_or("").to_owned() + "\n").collect(),
            );
        }
        blocks
    }

    /// Checks all command lines of `sh` blocks: each starts the other server, by this name, or
    /// `nuthatch serve`, which accepts its settings.
    pub(super) fn check_command_lines(&self, old_commands: &[&str]) {
        let folder = Folder::new();
        let blocks = self.blocks("sh").concat();
        let is_old = |line: &&str| {
            line.split(' ').any(|word| old_commands.contains(&word)) && !line.contains("nuthatch")
        };
        let (old, new): (Vec<_>, Vec<_>) = blocks.lines().partition(is_old);
        assert!(!old.is_empty() && new.len() >= 3, "{blocks}");
        for line in new {
            assert!(line.contains("nuthatch serve"), "{line}");
            assert_is_accepted(&folder, line);
        }
        for settings in self.blocks("toml") {
            folder.file("a.toml", settings);
            assert_is_accepted(&folder, "nuthatch serve --config a.toml");
        }
    }

    /// Checks all flags in the text: `nuthatch serve` has each, and accepts its value.
    pub(super) fn check_flags(&self) {
        let folder = Folder::new();
        let known = known_flags(&folder);
        let mut checked = 0;
        let spans = self.text.lines().flat_map(code_spans);
        for span in spans.filter(|span| span.starts_with("--")) {
            let words = span.split([' ', '=']).filter(|word| word.starts_with("--"));
            let words: Vec<_> = words.filter(|flag| !self.old_flags.contains(flag)).collect();
            let is_known = |flag: &str| known.iter().any(|known| known == flag);
            assert!(words.iter().all(|flag| is_known(flag)), "{span}");
            if span.contains([' ', '=']) && !words.is_empty() {
                assert_is_accepted(&folder, &format!("nuthatch serve {span}"));
            }
            checked += 1;
        }
        assert!(checked > 10, "{checked}");
    }

    /// Runs the page's snippet in Python between these lines.
    pub(super) fn run_python(&self, before: &str, after: &str) {
        let blocks = self.blocks("python");
        assert_eq!(blocks.len(), 1);
        let script = format!("{before}\n{}\n{after}\n", blocks[0]);
        let output = Command::new("python3").args(["-c", &script]).output().expect("python3");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{messages}");
    }
}

/// Returns the code spans in the first column of a table, sorted and without labels of metrics.
pub(super) fn names(rows: &[Vec<String>]) -> Vec<String> {
    let spans = rows.iter().flat_map(|row| code_spans(&row[0]));
    let mut names: Vec<String> =
        spans.map(|span| span.split('{').next().unwrap_or_default().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns names in the order of [`names`].
pub(super) fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    names
}

impl Running {
    /// Connects to the address with this number.
    pub(super) fn connect_to(&self, number: usize) -> TcpStream {
        let stream = TcpStream::connect(&self.addresses[number]).expect("a connection");
        stream.set_read_timeout(Some(crate::server::PATIENCE)).expect("a socket");
        stream
    }

    /// Requests a path from the admin endpoint. Returns the status and the body.
    #[track_caller]
    pub(super) fn http(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.admin).expect("a connection");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect(head), body.to_owned())
    }
}
