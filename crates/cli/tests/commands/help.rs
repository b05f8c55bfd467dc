//! Help on every level, and completions.

use crate::folder::Folder;

const COMMANDS: [&[&str]; 34] = [
    &[],
    &["build"],
    &["get"],
    &["dump"],
    &["info"],
    &["verify"],
    &["serve"],
    &["top"],
    &["store"],
    &["store", "put"],
    &["store", "get"],
    &["store", "del"],
    &["store", "scan"],
    &["store", "count"],
    &["store", "load"],
    &["store", "dump"],
    &["store", "stat"],
    &["store", "backup"],
    &["store", "compact"],
    &["store", "verify"],
    &["store", "watch"],
    &["store", "serve"],
    &["chunks"],
    &["chunks", "get"],
    &["chunks", "serve"],
    &["chunks", "stat"],
    &["chunks", "list"],
    &["chunks", "verify"],
    &["chunks", "prune"],
    &["chunks", "clear"],
    &["chunks", "pin"],
    &["chunks", "unpin"],
    &["chunks", "remove"],
    &["completions"],
];

#[test]
fn every_level_has_help() {
    let folder = Folder::new();
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let run = folder.run(&[command, &[flag]].concat());
            assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{command:?}");
            let usage = format!("Usage: nuthatch {}", command.join(" "));
            assert!(run.stdout.contains(usage.trim_end()), "{command:?}: {}", run.stdout);
            let wide = run.stdout.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "{command:?} {flag}");
        }
    }
}

#[test]
fn manual_pages_have_examples_and_exit_statuses() {
    let folder = Folder::new();
    let pages = ["build", "get", "dump", "info", "verify", "serve", "top", "store"];
    let pages = pages.map(|command| vec![command]).into_iter();
    let families = [Some(&"store"), Some(&"chunks")];
    let of_families = COMMANDS.into_iter().filter(|command| families.contains(&command.first()));
    for command in pages.chain(of_families.map(<[_]>::to_vec)) {
        let page = folder.run(&[&command[..], &["--help"]].concat()).stdout;
        let command = command.join(" ");
        for part in ["Examples:", "Exit status:", &format!("  nuthatch {command} ")] {
            assert!(page.contains(part), "{command} without {part}");
        }
    }
    assert!(folder.run(&["--help"]).stdout.contains("Exit status:"));
}

#[test]
fn wrong_commands_exit_with_2() {
    let folder = Folder::new();
    for arguments in [&[][..], &["fly"], &["get"], &["get", "a.nut"], &["info", "--x"]] {
        let run = folder.run(arguments);
        assert_eq!((run.status, &run.stdout[..]), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.contains("Usage: nuthatch"), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn shells_get_completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = folder.run(&["completions", shell]);
        assert_eq!(run.status, Some(0), "{shell}");
        assert!(run.stdout.contains("on-duplicate"), "{shell}");
        assert!(run.stdout.contains("max-clients"), "{shell}");
    }
    assert_eq!(folder.run(&["completions", "cmd"]).status, Some(2));
    let version = folder.run(&["--version"]).stdout;
    assert_eq!(version, concat!("nuthatch ", env!("CARGO_PKG_VERSION"), "\n"));
}
