//! The README's console sessions, typed in and compared.

use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../README.md");

/// The commands of all sessions, each with the lines that follow it.
fn sessions() -> Vec<(&'static str, String)> {
    let mut steps: Vec<(&str, String)> = Vec::new();
    let blocks = README.split("```console\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").expect("the end of a session").0);
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command, String::new())),
            (None, Some((_, output))) => {
                output.push_str(line);
                output.push('\n');
            }
            (None, None) => panic!("output before the first command: {line}"),
        }
    }
    steps
}

/// What a command prints, in the folder of the session.
fn run(command: &str, folder: &Path) -> String {
    let words: Vec<_> = command.split_whitespace().collect();
    assert_eq!(words[0], "nuthatch", "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_nuthatch"))
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_sessions_print_what_the_readme_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = sessions();
    assert!(steps.len() >= 9, "sessions of some length");
    for (command, expected) in steps {
        if let Some(file) = command.strip_prefix("cat ") {
            // What the README shows of a file is the file.
            std::fs::write(folder.path().join(file), expected).expect("a file");
        } else {
            assert_eq!(run(command, folder.path()), expected, "{command}");
        }
    }
}
