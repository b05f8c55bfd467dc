//! Permitted dependencies between the crates of the repository.

use super::{File, Finding};

/// The folder name of a crate, and the crates that its manifest may name outside of
/// dev-dependencies.
pub type Arrows = (&'static str, &'static [&'static str]);

/// The prefix of the package names, before the name of the folder.
const PREFIX: &str = "nuthatch-";

/// Finds crates in a manifest that the table does not permit.
pub fn forbidden(manifest: &File, table: &[Arrows]) -> Vec<Finding> {
    let Some(name) = crate_name(&manifest.path) else {
        return Vec::new();
    };
    let Some((_, allowed)) = table.iter().find(|(from, _)| *from == name) else {
        let expected = "a row for the crate in the table of imports";
        return vec![Finding::new(manifest, 1, expected, format!("none for {name}"))];
    };
    let expected = format!("{name} to import {allowed:?} at most");
    dependencies(manifest)
        .filter(|(_, import)| !allowed.contains(import))
        .map(|(line, import)| Finding::new(manifest, line, &expected, import))
        .collect()
}

/// Returns the name of a crate from the path of its manifest, such as `snapshot` for
/// `crates/snapshot/Cargo.toml`. Returns `None` for other paths.
fn crate_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// Returns the crates of the repository in the dependency sections of a manifest, with their lines.
/// Dev-dependencies are ignored. Every mention counts, so that renamed packages and separate
/// sections are included.
fn dependencies(manifest: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut in_dependencies = false;
    manifest.lines().filter_map(move |(number, line)| {
        let line = line.split('#').next().unwrap_or_default();
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies") && !line.contains("dev-dependencies");
        }
        let rest = in_dependencies.then(|| line.split_once(PREFIX))??.1;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(rest.len());
        Some((number, &rest[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Arrows] = &[("cache", &["segments"])];

    fn imports_of(text: &str) -> Vec<String> {
        let manifest = File::text("crates/cache/Cargo.toml", text);
        forbidden(&manifest, TABLE).into_iter().map(|f| format!("{} {}", f.line, f.found)).collect()
    }

    #[test]
    fn a_forbidden_import_is_found_however_it_is_written() {
        assert_eq!(imports_of("[dependencies]\nnuthatch-store.workspace = true\n"), ["2 store"]);
        assert_eq!(imports_of("[dependencies.nuthatch-store]\npath = \"x\"\n"), ["1 store"]);
        assert_eq!(imports_of("[build-dependencies]\nnuthatch-store = \"1\"\n"), ["2 store"]);
        let target = "[target.'cfg(unix)'.dependencies]\nx = { package = \"nuthatch-store\" }\n";
        assert_eq!(imports_of(target), ["2 store"]);
    }

    #[test]
    fn allowed_imports_and_dev_dependencies_pass() {
        let text = "[package]\nname = \"nuthatch-cache\"\n\n[dependencies]\n\
                    nuthatch-segments.workspace = true # not nuthatch-store\n\n\
                    [dev-dependencies]\nnuthatch-testing.workspace = true\n";
        assert_eq!(imports_of(text), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert_eq!(forbidden(&File::text("crates/new/Cargo.toml", ""), TABLE).len(), 1);
        assert_eq!(forbidden(&File::text("fuzz/Cargo.toml", ""), TABLE), []);
    }
}
