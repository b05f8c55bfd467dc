//! Import cycles between the modules of a crate.
//!
//! A module is a Rust file, named by its path below `src`. It imports the modules that its paths
//! name (`crate::…`, `self::…`, `super::…`). A path to a re-export counts as an import of the
//! module that defines the name. Comments, `mod` items, re-exports and test modules are ignored.
//!
//! The rule applies to each folder: all imports between its files and subfolders must be acyclic.
//! Two subfolders must not import each other, even if no two of their files do.

use super::mask::mask;
use super::{File, Finding};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a module or an item, as a list of names. Empty for the root of the crate.
type Path = Vec<String>;

/// The modules of a crate, with their imports and re-exports.
#[derive(Default)]
struct Modules<'a> {
    files: BTreeMap<Path, &'a File>,
    /// Re-exported names, and the path to which each refers.
    exports: BTreeMap<Path, Path>,
    imports: BTreeSet<(Path, Path)>,
}

/// Returns the folders of all crates, such as `crates/cache`: those with a manifest and `src`.
pub fn crates<'a>(files: &(impl Iterator<Item = &'a File> + Clone)) -> BTreeSet<&'a str> {
    let folders = files.clone().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    let is_source = |path: &str, folder: &str| {
        path.strip_prefix(folder).is_some_and(|below| below.starts_with("/src/"))
    };
    folders.filter(|folder| files.clone().any(|file| is_source(&file.path, folder))).collect()
}

/// Finds the import cycles between the modules of the crate in `folder`, one finding for each.
pub fn circles<'a>(files: impl Iterator<Item = &'a File>, folder: &str) -> Vec<Finding> {
    let modules = Modules::new(files, &format!("{folder}/src/"));
    let mut folders = BTreeSet::new();
    for module in modules.files.keys() {
        folders.extend((0..module.len()).map(|len| &module[..len]));
    }
    folders.into_iter().flat_map(|folder| modules.circles_in(folder)).collect()
}

impl<'a> Modules<'a> {
    fn new(files: impl Iterator<Item = &'a File>, prefix: &str) -> Self {
        let mut modules = Self::default();
        for file in files {
            let Some(module) = module_of(&file.path, prefix) else { continue };
            // A crate with a library and a program has its modules in the library.
            if !file.path.ends_with("src/main.rs") || !modules.files.contains_key(&module) {
                modules.files.insert(module, file);
            }
        }
        let mut imported = Vec::new();
        for (module, file) in &modules.files {
            for (path, is_reexport) in paths(&code(&file.text)) {
                let Some(path) = modules.absolute(module, &path) else { continue };
                if let (true, Some(name)) = (is_reexport, path.last()) {
                    let export = [module.as_slice(), std::slice::from_ref(name)].concat();
                    modules.exports.insert(export, path);
                } else if !is_reexport {
                    imported.push((module.clone(), path));
                }
            }
        }
        let imports = imported.into_iter().map(|(module, path)| (module, modules.defining(&path)));
        let imports: BTreeSet<_> = imports.filter(|(from, to)| from != to).collect();
        modules.imports = imports;
        modules
    }

    /// Returns a path as an absolute path in the crate; `None` for a path into another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let (base, skipped) = match path.first()?.as_str() {
            "crate" => (&[][..], 1),
            "self" => (module, 1),
            "super" => (&module[..module.len().checked_sub(supers)?], supers),
            first => {
                let child = [module, &[first.to_owned()]].concat();
                (self.files.contains_key(&child).then_some(module)?, 0)
            }
        };
        Some([base, &path[skipped..]].concat())
    }

    /// Returns the module that defines the target of a path.
    fn defining(&self, path: &[String]) -> Path {
        let is_module = |len: &usize| self.files.contains_key(&path[..*len]);
        let len = (0..=path.len()).rev().find(is_module).unwrap_or(0);
        match self.exports.get(&path[..path.len().min(len + 1)]) {
            Some(target) if *target != path => self.defining(target),
            _ => path[..len].to_vec(),
        }
    }

    /// Finds the import cycles between the files and subfolders of a folder.
    fn circles_in(&self, folder: &[String]) -> Vec<Finding> {
        let node = |module: &Path| {
            let below = module.strip_prefix(folder)?;
            Some(below.first().map_or("mod", String::as_str).to_owned())
        };
        let mut edges: BTreeMap<(String, String), String> = BTreeMap::new();
        for (from, to) in &self.imports {
            if let (Some(a), Some(b)) = (node(from), node(to))
                && a != b
            {
                let import = format!("{} imports {}", from.join("::"), to.join("::"));
                edges.entry((a, b)).or_insert(import);
            }
        }
        let reached = reached(edges.keys().cloned().collect());
        let together = |a: &String, b: &String| {
            reached.contains(&(a.clone(), b.clone())) && reached.contains(&(b.clone(), a.clone()))
        };
        let nodes: BTreeSet<&String> = edges.keys().map(|(from, _)| from).collect();
        let firsts = nodes.iter().filter(|a| {
            together(a, a) && nodes.iter().take_while(|b| b != a).all(|b| !together(a, b))
        });
        let circle = |first: &&String| {
            let inside = edges.iter().filter(|((a, b), _)| together(first, a) && together(a, b));
            let imports: Vec<&str> = inside.map(|(_, import)| import.as_str()).collect();
            let starts = |module: &&Path| node(module).as_ref() == Some(*first);
            let file = self.files.iter().find(|(module, _)| starts(module)).expect("a module").1;
            Finding::new(file, 1, "imports that point one way", imports.join(", "))
        };
        firsts.map(circle).collect()
    }
}

/// Returns the transitive closure: all pairs in which one or more edges lead from the first to the
/// second.
fn reached(mut edges: BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    loop {
        let onward = |(a, b): &(String, String)| {
            let (a, b) = (a.clone(), b.clone());
            let next = edges.iter().filter(move |(from, _)| *from == b);
            next.map(move |(_, to)| (a.clone(), to.clone())).collect::<Vec<_>>()
        };
        let more: Vec<_> = edges.iter().flat_map(onward).collect();
        let before = edges.len();
        edges.extend(more);
        if edges.len() == before {
            return edges;
        }
    }
}

/// Returns `["memory", "arena"]` for `memory/arena.rs`, `["memory"]` for `memory/mod.rs`, and `[]`
/// for `lib.rs` and `main.rs`; `None` for files outside the crate.
fn module_of(path: &str, prefix: &str) -> Option<Path> {
    let path = path.strip_prefix(prefix)?.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "lib" | "main" => Some(Path::new()),
        _ if path.starts_with("bin/") => None,
        _ => Some(path.split('/').map(str::to_owned).collect()),
    }
}

/// Returns code without comments, literals and test modules.
fn code(text: &str) -> String {
    let masked = mask(text);
    let mut lines = masked.lines();
    let mut out = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(") && line.contains("test") {
            let item = lines.find(|line| !line.starts_with("#["));
            if item.is_some_and(|line| line.ends_with('{')) {
                lines.find(|line| line.starts_with('}'));
            }
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Returns the paths of all `use` items, and all other paths that begin with `crate`, `self` or
/// `super`, each with whether it is a re-export.
fn paths(code: &str) -> Vec<(Path, bool)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(line) = rest.lines().next() {
        let line_end = (line.len() + 1).min(rest.len());
        let item = line.trim_start();
        let is_reexport = item.starts_with("pub") && item.contains(" use ");
        if is_reexport || item.starts_with("use ") {
            let start = rest.find("use ").expect("the word is in the line") + "use ".len();
            let end = rest.find(';').map_or(rest.len(), |at| at + 1);
            let mut all = Vec::new();
            expand(&[], &rest[start..end], &mut all);
            found.extend(all.into_iter().map(|path| (path, is_reexport)));
            rest = &rest[end..];
            continue;
        }
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        for word in words {
            if ["crate::", "self::", "super::"].iter().any(|start| word.starts_with(start)) {
                let names = word.split("::").filter(|name| !name.is_empty());
                found.push((names.map(str::to_owned).collect(), false));
            }
        }
        rest = &rest[line_end..];
    }
    found
}

/// Adds each path of a `use` tree below `prefix` to `found`, and returns the text after the tree.
fn expand<'t>(prefix: &[String], text: &'t str, found: &mut Vec<Path>) -> &'t str {
    let mut path = prefix.to_vec();
    let mut text = text.trim_start();
    loop {
        if let Some(mut inner) = text.strip_prefix('{') {
            while !inner.trim_start().starts_with('}') && !inner.is_empty() {
                inner = expand(&path, inner, found).trim_start();
                inner = inner.strip_prefix(',').unwrap_or(inner);
            }
            return inner.trim_start().strip_prefix('}').unwrap_or_default();
        }
        let len = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        if len > 0 && &text[..len] != "self" || path.is_empty() {
            path.push(text[..len].to_owned());
        }
        let Some(next) = text[len..].strip_prefix("::") else {
            found.push(path);
            return text[len..].trim_start_matches(|c| !",};".contains(c));
        };
        text = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File::text(&format!("crates/a/src/{path}"), text);
        let files: Vec<File> = files.iter().map(file).collect();
        circles(files.iter(), "crates/a").into_iter().map(|finding| finding.found).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_found() {
        let files = [("one.rs", "use crate::two::Two;\n"), ("two.rs", "use super::one::One;\n")];
        assert_eq!(circles_of(&files), ["one imports two, two imports one"]);
        let files = [("one.rs", "use super::{three, two::{Two, Deux}};\n"), files[1]];
        assert_eq!(circles_of(&files), ["one imports two, two imports one"]);
        let files = [("one.rs", "fn f() -> crate::two::Two {}\n"), files[1]];
        assert_eq!(circles_of(&files), ["one imports two, two imports one"]);
    }

    #[test]
    fn a_circle_of_several_files_is_found_once() {
        let files = [
            ("one.rs", "use crate::two::Two;\n"),
            ("two.rs", "use crate::three::Three;\n"),
            ("three.rs", "use crate::one::One;\n"),
            ("four.rs", "use crate::one::One;\n"),
        ];
        let circle = "one imports two, three imports one, two imports three";
        assert_eq!(circles_of(&files), [circle]);
    }

    #[test]
    fn a_circle_through_a_re_export_is_found() {
        let files = [
            ("lib.rs", "mod one;\nmod two;\npub use two::Two;\n"),
            ("one.rs", "use crate::Two;\n"),
            ("two.rs", "use crate::one::One;\n"),
        ];
        assert_eq!(circles_of(&files), ["one imports two, two imports one"]);
        let files = [
            ("one/mod.rs", "mod inner;\npub(crate) use inner::Inner;\n"),
            ("one/inner.rs", "use crate::two::Two;\n"),
            ("two.rs", "use crate::one::Inner;\n"),
        ];
        let circle = "one::inner imports two, two imports one::inner";
        assert_eq!(circles_of(&files), [circle]);
    }

    #[test]
    fn two_folders_that_import_each_other_are_found() {
        let files = [
            ("one/a.rs", "use crate::two::a::A;\n"),
            ("one/b.rs", ""),
            ("two/a.rs", ""),
            ("two/b.rs", "use crate::one::b::B;\n"),
        ];
        assert_eq!(circles_of(&files), ["one::a imports two::a, two::b imports one::b"]);
    }

    #[test]
    fn a_folder_and_a_file_in_it_that_import_each_other_are_found() {
        let files = [("one/mod.rs", "mod a;\nuse a::A;\n"), ("one/a.rs", "use super::One;\n")];
        assert_eq!(circles_of(&files), ["one::a imports one, one imports one::a"]);
    }

    #[test]
    fn imports_that_point_one_way_pass() {
        let files = [
            ("lib.rs", "mod one;\nmod two;\nmod three;\npub use three::Three;\n"),
            ("one.rs", "//! See crate::three.\nuse std::fmt;\nconst A: &str = \"crate::two\";\n"),
            (
                "two.rs",
                "use crate::one::One;\n\n#[cfg(test)]\nmod tests {\n    use crate::Three;\n}\n",
            ),
            ("three.rs", "use crate::{one::{self, One as Un}, two};\n"),
            ("main.rs", "use a::Three;\n"),
        ];
        assert_eq!(circles_of(&files), [""; 0]);
    }
}
