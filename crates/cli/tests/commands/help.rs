//! Help on every level, and completions.

use crate::folder::Folder;

const COMMANDS: [&[&str]; 51] = [
    &[],
    &["build"],
    &["get"],
    &["dump"],
    &["info"],
    &["verify"],
    &["diff"],
    &["merge"],
    &["serve"],
    &["cluster"],
    &["cluster", "status"],
    &["cluster", "join"],
    &["cluster", "drain"],
    &["cluster", "rebalance"],
    &["cluster", "forget"],
    &["top"],
    &["ping"],
    &["doctor"],
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
    &["tier"],
    &["tier", "stat"],
    &["tier", "verify"],
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
    &["dict"],
    &["dict", "train"],
    &["dict", "inspect"],
    &["dict", "try"],
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
    let pages = [
        "build", "get", "dump", "info", "verify", "diff", "merge", "serve", "top", "ping", "store",
    ];
    let pages = pages.map(|command| vec![command]).into_iter();
    let families = ["store", "chunks", "dict", "tier", "cluster"];
    let families: Vec<_> = families.iter().map(Some).collect();
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

/// Returns the options and arguments of a page below a heading.
fn below<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, rest) = page.split_once(&format!("\n{heading}:\n")).expect(heading);
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let starts = lines.filter_map(|line| {
        let first = line.split_whitespace().find(|word| *word != "-h," && *word != "-q,")?;
        let indent = line.len() - line.trim_start().len();
        (indent < 8 && first.starts_with(['-', '<', '['])).then_some(first)
    });
    starts.collect()
}

/// Regression test: the heading of the options for servers preceded most options of a command, as
/// if they required a server.
#[test]
fn the_heading_of_options_for_servers_has_only_those_and_is_the_last() {
    const HEADING: &str = "Stores at grpc://HOST:PORT";
    let connection = ["--token-file", "--tls-ca", "--tls-cert", "--tls-key"];
    let connection = [&connection[..], &["--connect-timeout-ms", "--timeout-ms"]].concat();
    let folder = Folder::new();
    for command in ["put", "get", "del", "scan", "count", "load", "dump", "stat", "backup", "watch"]
    {
        let page = folder.run(&["store", command, "--help"]).stdout;
        let mut expected = connection.clone();
        if ["load", "watch"].contains(&command) {
            expected.push("--reconnect-ms");
        }
        assert_eq!(below(&page, HEADING), expected, "{command}");
        assert_eq!(below(&page, "Arguments")[0], "<PATH>", "{command}");
        let at = |heading: &str| page.find(&format!("\n{heading}:\n"));
        for heading in ["Arguments", "Options", "Keys", "Input"] {
            assert!(at(heading) < at(HEADING), "{command}: {heading}");
        }
    }
}

#[test]
fn pages_list_examples_of_errors_as_examples() {
    let folder = Folder::new();
    for command in COMMANDS {
        let page = folder.run(&[command, &["--help"]].concat()).stdout;
        let lines = page.lines().skip_while(|line| *line != "Exit status:");
        for line in lines.filter(|line| line.starts_with("  3  any")) {
            let is_open = ["  3  any other error, for example: ", "  3  any other error. "];
            let is_open = is_open.iter().any(|start| line.starts_with(start));
            assert!(is_open, "{command:?}: {line}");
        }
        assert!(!page.contains("anything else"), "{command:?}");
    }
}

/// Regression test: the example was wrapped into two lines, neither of which was valid JSON.
#[test]
fn the_example_in_the_help_of_watch_has_the_fields_of_a_change() {
    let folder = Folder::new();
    let page = folder.run(&["store", "watch", "--help"]).stdout;
    let example = page.lines().find(|line| line.trim_start().starts_with('{')).expect("a change");
    let kept = folder.run(&["store", "watch", "db", "--keep", "9", "--limit", "0"]);
    assert_eq!(kept.status, Some(0), "{kept:?}");
    assert_eq!(folder.run(&["store", "put", "db", "a", "b"]).status, Some(0));
    let change = folder.run(&["store", "watch", "db", "--oldest", "--limit", "1"]).stdout;
    let names = |text: &str| -> Vec<String> {
        let value: serde_json::Value = serde_json::from_str(text).expect("a JSON object");
        value.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(names(example), names(&change));
}

#[test]
fn options_of_build_that_load_does_not_have_are_named_and_refused() {
    let folder = Folder::new();
    folder.file("a.csv", "key,value\na,1\n");
    let page = folder.run(&["store", "load", "--help"]).stdout;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "Its options --column, --f32 and --on-duplicate are not available here.";
    assert!(words.contains(expected) && words.contains("[default: string]"), "{page}");
    for (option, value) in [("--column", "value:i64"), ("--f32", "a*"), ("--on-duplicate", "last")]
    {
        let run = folder.run(&["store", "load", "db", "a.csv", option, value]);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains("unexpected argument"), "{run:?}");
        let build = ["build", "a.csv", "-o", "a.nut", "--key", "key", option, value];
        assert_eq!(folder.run(&build).status, Some(0), "{option}");
    }
    let load = ["store", "load", "db", "a.csv", "--key", "key", "--value", "value", "--quiet"];
    assert_eq!(folder.run(&load).status, Some(0));
    assert_eq!(folder.run(&["store", "scan", "db"]).stdout, "a\t1\n");
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
