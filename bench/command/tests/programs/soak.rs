//! Tests of `nuthatch-bench soak` with a server that they build.

use crate::command::Folder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of the server's program. A run of the tests of the whole workspace has just
/// built it. If there is none, it is built; it is not built again after a change of the server.
fn nuthatch() -> PathBuf {
    let bench = Path::new(env!("CARGO_BIN_EXE_nuthatch-bench"));
    let program = bench.with_file_name("nuthatch");
    if program.exists() {
        return program;
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "-p", "nuthatch-cli", "--manifest-path"]);
    build.arg(manifest);
    // The folder of the profile is in the target folder.
    let target = bench.parent().and_then(Path::parent).expect("a target folder");
    build.arg("--target-dir").arg(target);
    assert!(build.status().expect("cargo to start").success());
    target.join("debug/nuthatch")
}

#[test]
fn a_short_run_with_a_kill_passes() {
    let folder = Folder::new();
    let program = nuthatch();
    let program = program.to_str().expect("a path in UTF-8");
    let short = "soak --seconds 3 --memory 16MiB --disk 32MiB --kills 1 --directory . --json";
    let mut arguments: Vec<&str> = short.split(' ').collect();
    arguments.extend(["--nuthatch", program]);
    let run = folder.run(&arguments);
    assert_eq!(run.status, Some(0), "{run:?}");
    let summary: Value = serde_json::from_str(&run.stdout).expect("an object");
    assert_eq!(summary["kills"], 1);
    for name in ["reads", "writes", "removals", "written_bytes", "samples"] {
        assert!(summary[name].as_u64() > Some(0), "{name} in {summary}");
    }
    let max_disk_bytes = summary["max_disk_bytes"].as_u64();
    assert!(max_disk_bytes <= Some(32 << 20), "{summary}");
    let left = std::fs::read_dir(folder.path(".")).expect("the folder").count();
    assert_eq!(left, 0, "the folder of the server is removed");
}

#[test]
fn a_missing_program_is_reported() {
    let folder = Folder::new();
    let run = folder.run(&["soak", "--nuthatch", "no/program", "--directory", "."]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("no/program: "), "{run:?}");
}
