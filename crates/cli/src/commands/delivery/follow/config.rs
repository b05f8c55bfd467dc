//! The file of --config: snapshots that one process follows.

use crate::outcome::Failure;
use nuthatch_units::parse_time;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A snapshot that is followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Followed {
    pub(super) source: String,
    pub(super) folder: PathBuf,
    /// Public keys; `None` for those of the command line.
    pub(super) trusted_keys: Option<Vec<PathBuf>>,
    pub(super) max_age: Option<Duration>,
    pub(super) on_swap: Option<String>,
}

/// Snapshots that are swapped together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FollowedGroup {
    /// The name of the group; `None` for a snapshot that is in none.
    pub(super) name: Option<String>,
    /// The name of the metadata that must be the same.
    pub(super) same_metadata: Option<String>,
    pub(super) snapshots: Vec<Followed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default)]
    snapshot: Vec<SnapshotTable>,
    #[serde(default)]
    group: BTreeMap<String, GroupTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotTable {
    source: String,
    folder: PathBuf,
    group: Option<String>,
    trust_key: Option<Vec<PathBuf>>,
    max_age: Option<String>,
    on_swap: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupTable {
    same_metadata: Option<String>,
}

/// Reads the file. Relative paths in it are relative to its folder.
pub(super) fn read(path: &Path) -> Result<Vec<FollowedGroup>, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|e| Failure::Error(format!("{}: read: {e}", path.display())))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let invalid = |problem| Failure::Error(format!("{}: {problem}", path.display()));
    parse(&text, folder).map_err(invalid)
}

fn parse(text: &str, folder: &Path) -> Result<Vec<FollowedGroup>, String> {
    let file: ConfigFile = toml_edit::de::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..at].matches('\n').count() + 1;
        format!("line {line}: {}", error.message().trim_end())
    })?;
    if file.snapshot.is_empty() {
        return Err("expected at least one [[snapshot]], found none".to_owned());
    }
    let mut groups: Vec<FollowedGroup> = Vec::new();
    let mut folders = HashSet::new();
    for (number, table) in (1..).zip(file.snapshot) {
        let name = table.group.clone();
        let followed = followed(table, folder).map_err(|e| format!("snapshot {number}: {e}"))?;
        if !folders.insert(followed.folder.clone()) {
            let found = followed.folder.display();
            return Err(format!(
                "snapshot {number}: expected a folder of its own, found {found} again"
            ));
        }
        let is_named = |group: &&mut FollowedGroup| group.name.is_some() && group.name == name;
        if let Some(group) = groups.iter_mut().find(is_named) {
            group.snapshots.push(followed);
            continue;
        }
        let of_name = name.as_ref().and_then(|name| file.group.get(name));
        let same_metadata = of_name.and_then(|group| group.same_metadata.clone());
        groups.push(FollowedGroup { name, same_metadata, snapshots: vec![followed] });
    }
    let known: HashSet<_> = groups.iter().filter_map(|group| group.name.as_deref()).collect();
    match file.group.keys().find(|name| !known.contains(&***name)) {
        Some(name) => Err(format!("[group.{name}]: expected a snapshot of this group, found none")),
        None => Ok(groups),
    }
}

fn followed(table: SnapshotTable, folder: &Path) -> Result<Followed, String> {
    let max_age = table.max_age.as_deref().map(parse_time).transpose();
    for (name, is_empty) in [
        ("source", table.source.is_empty()),
        ("folder", table.folder.as_os_str().is_empty()),
        ("trust_key", table.trust_key.as_ref().is_some_and(Vec::is_empty)),
    ] {
        if is_empty {
            return Err(format!("{name}: expected a value, found none"));
        }
    }
    let path = table.source.strip_prefix("file://").unwrap_or(&table.source);
    let source = if path.contains("://") {
        table.source
    } else {
        let path = folder.join(path).into_os_string().into_string();
        path.map_err(|path| format!("source: expected a path in UTF-8, found {}", path.display()))?
    };
    let keys = |keys: Vec<PathBuf>| keys.iter().map(|key| folder.join(key)).collect();
    Ok(Followed {
        source,
        folder: folder.join(&table.folder),
        trusted_keys: table.trust_key.map(keys),
        max_age: max_age.map_err(|problem| format!("max_age: {problem}"))?,
        on_swap: table.on_swap,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::path::{Path, PathBuf};

    #[test]
    fn snapshots_of_a_group_are_together() {
        let text = r#"
            [[snapshot]]
            source = "s3://bucket/users"
            folder = "users"
            group = "shop"
            max_age = "2h"
            [[snapshot]]
            source = "file://shared/flags"
            folder = "/srv/flags"
            [[snapshot]]
            source = "s3://bucket/prices"
            folder = "prices"
            group = "shop"
            [group.shop]
            same_metadata = "batch"
        "#;
        let groups = parse(text, Path::new("/etc/nuthatch")).expect("valid");
        let names: Vec<_> = groups.iter().map(|group| group.name.as_deref()).collect();
        assert_eq!(names, [Some("shop"), None]);
        assert_eq!(groups[0].same_metadata.as_deref(), Some("batch"));
        let folders: Vec<_> = groups[0].snapshots.iter().map(|of| of.folder.clone()).collect();
        assert_eq!(folders, ["/etc/nuthatch/users", "/etc/nuthatch/prices"].map(PathBuf::from));
        assert_eq!(groups[1].snapshots[0].source, "/etc/nuthatch/shared/flags");
    }

    #[test]
    fn errors_name_the_place() {
        let snapshot = "[[snapshot]]\nsource = \"a\"\nfolder = \"b\"\n";
        for (text, problem) in [
            (String::new(), "expected at least one [[snapshot]], found none"),
            (format!("{snapshot}folder2 = 1\n"), "line 4: unknown field `folder2`"),
            (format!("{snapshot}max_age = \"soon\"\n"), "snapshot 1: max_age: "),
            (format!("{snapshot}trust_key = []\n"), "snapshot 1: trust_key: expected a value"),
            (snapshot.replace("\"a\"", "\"\""), "snapshot 1: source: expected a value"),
            (format!("{snapshot}{snapshot}"), "snapshot 2: expected a folder of its own"),
            (format!("{snapshot}[group.x]\n"), "[group.x]: expected a snapshot of this group"),
            ("[[snapshot]]\nsource = \"a\"\n".to_owned(), "missing field `folder`"),
        ] {
            let found = parse(&text, Path::new("")).expect_err("invalid");
            assert!(found.contains(problem), "{found}");
        }
    }
}
