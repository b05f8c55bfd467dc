//! Tests of the help pages at every level, and of wrong arguments.

use crate::command::Folder;

const COMMANDS: [&[&str]; 6] =
    [&[], &["snapshot"], &["eviction"], &["fill"], &["store"], &["soak"]];

#[test]
fn every_level_has_help() {
    let folder = Folder::new();
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let run = folder.run(&[command, &[flag]].concat());
            assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{command:?}");
            let usage = format!("Usage: nuthatch-bench {}", command.join(" "));
            assert!(run.stdout.contains(usage.trim_end()), "{command:?}: {}", run.stdout);
            let wide = run.stdout.lines().find(|line| line.chars().count() > 100);
            assert_eq!(wide, None, "{command:?} {flag}");
        }
        assert!(folder.run(&[command, &["--help"]].concat()).stdout.contains("Examples:"));
    }
}

#[test]
fn wrong_commands_exit_with_2() {
    let folder = Folder::new();
    for arguments in [&[][..], &["fly"], &["snapshot", "--keys", "0"], &["store", "--x"]] {
        let run = folder.run(arguments);
        assert_eq!((run.status, &run.stdout[..]), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.contains("Usage: nuthatch-bench") || run.stderr.contains("--keys"));
    }
}
