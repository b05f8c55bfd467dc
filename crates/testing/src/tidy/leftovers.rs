//! Temporary code that must not remain: disabled tests, notes, and text that is valid on one
//! machine only.

use super::mask::mask;
use super::{File, Finding};

/// The marks of disabled tests and unwritten code, by file ending. Some marks are split, so that
/// the rule does not find them in this file.
const SWITCHED_OFF: &[(&str, &str)] = &[
    ("rs", "#[ignore"),
    ("rs", "todo!"),
    ("go", concat!("t.Sk", "ip(")),
    ("java", concat!("@Dis", "abled")),
    ("py", concat!("pytest.mark.", "skip")),
    ("py", concat!("pytest.mark.", "xfail")),
];

const NOTE: &str = concat!("FIX", "ME");

/// Absolute paths of individual users or machines.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Finds disabled tests and unwritten code.
pub fn switched_off(file: &File) -> Vec<Finding> {
    let rust = file.ending() == "rs";
    let text = if rust { mask(&file.text) } else { file.text.clone() };
    let marks: Vec<&str> =
        SWITCHED_OFF.iter().filter(|(ending, _)| *ending == file.ending()).map(|m| m.1).collect();
    let found = |line: &str| marks.iter().find(|&&mark| line.contains(mark)).copied();
    (1..)
        .zip(text.lines())
        .filter_map(|(number, line)| Some((number, found(line)?)))
        .map(|(number, mark)| {
            Finding::new(file, number, "a test that runs, code that is written", mark)
        })
        .collect()
}

/// Finds notes about code to be corrected later. Correct the code or file an issue instead.
pub fn notes(file: &File) -> Vec<Finding> {
    let noted = file.lines().filter(|(_, line)| line.contains(NOTE));
    noted.map(|(number, _)| Finding::new(file, number, "no note to mend it later", NOTE)).collect()
}

/// Finds absolute paths that exist on one machine only.
pub fn machine_paths(file: &File) -> Vec<Finding> {
    file.lines()
        .flat_map(|(number, line)| MACHINE_PATHS.iter().map(move |path| (number, line, *path)))
        .filter(|(_, line, path)| has_absolute(line, path))
        .map(|(number, line, _)| {
            Finding::new(file, number, "no path of one machine or person", line.trim())
        })
        .collect()
}

/// Returns whether `line` contains `path` at the beginning of an absolute path.
fn has_absolute(line: &str, path: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "_-.~*})>".contains(c);
    line.match_indices(path).any(|(at, _)| {
        let below = line[at + path.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '.');
        below && !line[..at].ends_with(goes_on)
    })
}

/// Finds download addresses in npm lock files, since they depend on the registry.
pub fn lock_hosts(file: &File) -> Vec<Finding> {
    let lock = ["package-lock.json", "npm-shrinkwrap.json"].iter().any(|n| file.path.ends_with(n));
    let resolved = |line: &str| {
        line.split_once("\"resolved\"").is_some_and(|(_, address)| address.contains("http"))
    };
    file.lines()
        .filter(|(_, line)| lock && resolved(line))
        .map(|(number, line)| Finding::new(file, number, "no download address", line.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_switched_off_is_found() {
        for (ending, mark) in SWITCHED_OFF {
            let file = File::text(&format!("a.{ending}"), &format!("a\n    {mark}b\n"));
            let findings = switched_off(&file);
            assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [2], "{mark}");
        }
        assert_eq!(switched_off(&File::text("a.rs", "// todo! was here\n\"#[ignore]\"\n")), []);
    }

    #[test]
    fn a_note_is_found() {
        assert_eq!(notes(&File::text("a.go", &format!("// {NOTE}: later\n"))).len(), 1);
        assert_eq!(notes(&File::text("a.go", "// done\n")), []);
    }

    #[test]
    fn a_machine_path_is_found() {
        for path in MACHINE_PATHS {
            let text = format!("a\nopen(\"{path}somebody/file\")\n");
            assert_eq!(machine_paths(&File::text("a.py", &text))[0].line, 2, "{path}");
        }
    }

    #[test]
    fn portable_paths_pass() {
        for path in MACHINE_PATHS {
            let text = format!("../a{path}b\n$DIR{path}b https://example.org{path}b\n~{path}b\n");
            assert_eq!(machine_paths(&File::text("a.md", &text)), [], "{path}");
        }
    }

    #[test]
    fn a_download_address_in_a_lock_file_is_found() {
        let text = "{\n  \"resolved\": \"https://example.org/a.tgz\"\n}\n";
        assert_eq!(lock_hosts(&File::text("a/package-lock.json", text))[0].line, 2);
        assert_eq!(lock_hosts(&File::text("a/package.json", text)), []);
        let local = "{\n  \"resolved\": \"packages/a\"\n}\n";
        assert_eq!(lock_hosts(&File::text("package-lock.json", local)), []);
    }
}
