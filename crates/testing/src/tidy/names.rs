//! Meaningless names. Shared code needs a specific noun as its name.

use super::mask::mask;
use super::{File, Finding};

const EMPTY_NAMES: &[&str] = &["common", "core", "base", "util", "utils", "helper", "helpers"];

/// Finds crates, modules and folders of source code with a meaningless name.
pub fn empty(file: &File) -> Vec<Finding> {
    let expected = "a noun for what it holds";
    let parts = file.path.split('/').map(|part| part.split('.').next().unwrap_or_default());
    let in_path = parts.filter(is_empty_name).map(|name| (1, name.to_owned()));
    let code = if file.ending() == "rs" { mask(&file.text) } else { String::new() };
    let in_text = (1..).zip(code.lines()).filter_map(|(number, line)| {
        Some((number, module_name(line).filter(is_empty_name)?.to_owned()))
    });
    in_path
        .chain(in_text)
        .map(|(line, name)| Finding::new(file, line, expected, format!("the name {name}")))
        .collect()
}

fn is_empty_name(name: &&str) -> bool {
    EMPTY_NAMES.contains(name)
}

/// Returns the name of the module that a line of Rust declares or opens.
fn module_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.find(|word| !word.starts_with("pub")).filter(|&word| word == "mod")?;
    Some(words.next()?.trim_end_matches(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_found_in_paths() {
        for path in ["crates/core/src/lib.rs", "bindings/go/util.go", "a/tests/common/mod.rs"] {
            assert_eq!(empty(&File::text(path, "")).len(), 1, "{path}");
        }
    }

    #[test]
    fn an_empty_name_is_found_in_modules() {
        let findings = empty(&File::text("a.rs", "mod size;\npub mod utils;\nmod base {\n}\n"));
        assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn names_that_say_something_pass() {
        let text = "// mod core\nmod base64;\nuse core::fmt;\n";
        assert_eq!(empty(&File::text("crates/score/src/database.rs", text)), []);
    }
}
