//! Checks the rules for the source code of the repository. The rules are functions in
//! `nuthatch_testing::tidy`, with their own unit tests. This file contains their tables of
//! exceptions and one test for each rule.

use std::io::{Write, stderr};
use std::path::Path;
use std::sync::LazyLock;

use nuthatch_testing::tidy::circles::{circles, crates};
use nuthatch_testing::tidy::imports::{self, Arrows};
use nuthatch_testing::tidy::{
    Exception, File, Finding, Tree, except, exports, language, leftovers, links, names, readmes,
    size, unsafety,
};

/// The permitted imports of each crate, by folder name below crates/.
const IMPORTS: &[Arrows] = &[
    ("sigbus", &[]),
    ("filesystem", &[]),
    ("clock", &[]),
    ("compress", &[]),
    ("snapshot", &["sigbus"]),
    ("segments", &["sigbus", "filesystem", "clock"]),
    ("store", &["sigbus", "filesystem", "clock"]),
    ("testing", &[]),
    ("cache", &["clock"]),
    ("chunks", &["segments"]),
    ("listen", &[]),
    ("trace-context", &[]),
    ("origins", &["chunks", "trace-context"]),
    ("chunk-server", &["chunks", "listen", "origins", "trace-context"]),
    ("delivery", &["snapshot", "origins", "trace-context"]),
    ("value-text", &["snapshot"]),
    (
        "server",
        &[
            "cache",
            "cluster",
            "compress",
            "listen",
            "snapshot",
            "tier",
            "tiered",
            "trace-context",
            "uring",
            "value-text",
        ],
    ),
    ("rpc", &["store", "listen", "trace-context"]),
    ("cluster", &["listen"]),
    ("tier", &["clock"]),
    ("tiered", &["cache", "tier"]),
    ("units", &[]),
    ("uring", &[]),
    ("import", &["snapshot"]),
    ("terminal", &["snapshot", "units"]),
    ("telemetry", &["clock", "listen", "terminal", "trace-context"]),
    ("rows", &["import", "snapshot"]),
    (
        "populate",
        &[
            "delivery",
            "filesystem",
            "import",
            "origins",
            "rows",
            "snapshot",
            "telemetry",
            "terminal",
            "trace-context",
            "units",
            "value-text",
        ],
    ),
    (
        "cli",
        &[
            "snapshot",
            "import",
            "store",
            "cache",
            "filesystem",
            "chunks",
            "chunk-server",
            "cluster",
            "compress",
            "delivery",
            "listen",
            "origins",
            "server",
            "rpc",
            "telemetry",
            "terminal",
            "tier",
            "tiered",
            "units",
            "value-text",
        ],
    ),
];

/// The kinds of unsafe code, each with the only files that contain it.
const UNSAFE: &[(&str, &[&str])] = &[
    (
        "memory maps of files, and the handler of SIGBUS",
        &[
            "crates/segments/src/map.rs",
            "crates/sigbus/src/lib.rs",
            "crates/sigbus/tests/truncated.rs",
            "crates/snapshot/src/reader/map.rs",
            "bench/rivals/src/fst_map.rs",
        ],
    ),
    ("memory of the cache that sessions share", &["crates/cache/src/memory/arena.rs"]),
    (
        "memory that io_uring reads and writes",
        &[
            "crates/server/src/output.rs",
            "crates/uring/src/buffers/provided.rs",
            "crates/uring/src/queue.rs",
            "crates/uring/src/sockets/completion.rs",
            "crates/uring/src/sockets/ring.rs",
            "crates/uring/src/sockets/sends.rs",
        ],
    ),
    (
        "SIMD, prefetching, and lists of numbers that are read in place",
        &[
            "crates/cache/src/memory/line.rs",
            "crates/cluster/src/slot/crc16/mod.rs",
            "crates/segments/src/checksum/stripes.rs",
            "crates/snapshot/src/format/line.rs",
            "crates/snapshot/src/prefetch.rs",
            "crates/snapshot/src/values/cast.rs",
        ],
    ),
    (
        "locks of bytes of a file",
        &["crates/segments/src/lock/bytes.rs", "crates/store/src/environment/lock_file.rs"],
    ),
    (
        "environments of LMDB, their map and its pages",
        &[
            "crates/store/src/environment/mapping.rs",
            "crates/store/src/environment/mod.rs",
            "crates/store/src/environment/open.rs",
            "crates/store/src/scans/batch.rs",
            "crates/store/tests/power/disk.rs",
            "bench/harness/src/store/lmdb.rs",
            "bench/rivals/src/lmdb.rs",
        ],
    ),
    (
        "fork, and values that a child does not drop",
        &[
            "crates/store/src/process/fork.rs",
            "crates/store/src/process/mod.rs",
            "crates/store/tests/processes/forks.rs",
        ],
    ),
    (
        "foreign interfaces: the allocator, C and Python",
        &[
            "crates/server/src/worker/heap.rs",
            "bindings/c/examples/rust_lookups.rs",
            "bindings/c/src/error.rs",
            "bindings/c/src/memory.rs",
            "bindings/c/src/snapshot/describe.rs",
            "bindings/c/src/snapshot/iterator.rs",
            "bindings/c/src/snapshot/lookup.rs",
            "bindings/c/src/snapshot/open.rs",
            "bindings/c/src/snapshot/scratch.rs",
            "bindings/c/src/snapshot/value.rs",
            "bindings/c/src/snapshot/watch.rs",
            "bindings/c/src/snapshot/writer.rs",
            "bindings/c/src/store/open.rs",
            "bindings/c/src/store/read.rs",
            "bindings/c/src/store/scan.rs",
            "bindings/c/src/store/upkeep.rs",
            "bindings/c/src/store/watch.rs",
            "bindings/c/src/store/write.rs",
            "bindings/c/src/store/writer.rs",
            "bindings/c/examples/rust_lookups.rs",
            "bindings/python/src/convert/buffer.rs",
            "bindings/python/src/snapshots/batch/column.rs",
            "bindings/python/src/snapshots/entries.rs",
            "bindings/python/src/snapshots/held.rs",
            "bindings/python/src/snapshots/numbers.rs",
            "bindings/python/src/snapshots/stream.rs",
            "bench/hybrid/src/rocksdb.rs",
            "bench/rivals/src/rocksdb.rs",
        ],
    ),
];

/// Functions of the C library, as `file::function`, whose body is not `export_body!`.
const OTHER_EXPORTS: &[Exception] = &[
    Exception { place: "bindings/c/src/error.rs::nuthatch_code_name", reason: "cannot fail" },
    Exception { place: "bindings/c/src/error.rs::nuthatch_version", reason: "cannot fail" },
];

/// Functions, as `file::function`, that may exceed 70 lines.
const LONG_FUNCTIONS: &[Exception] = &[];

/// Files that may exceed 600 lines.
const LONG_FILES: &[Exception] = &[
    Exception {
        place: "bindings/c/include/nuthatch.h",
        reason: "one header, made from several files",
    },
    Exception {
        place: "crates/cli/src/settings/table.rs",
        reason: "one table of all settings, which a macro makes one struct of",
    },
];

static TREE: LazyLock<Tree> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Tree::of_checkout(&root).unwrap_or_else(|e| panic!("the files of the repository: {e}"))
});

/// Returns the findings of a rule in all `files`.
fn over<'a>(
    files: impl Iterator<Item = &'a File>,
    rule: fn(&File) -> Vec<Finding>,
) -> Vec<Finding> {
    files.flat_map(rule).collect()
}

#[track_caller]
fn none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} places are not tidy:\n{}", lines.len(), lines.join("\n"));
}

/// Checks that the tree contains files. Otherwise all tests below would pass.
#[test]
fn the_walk_sees_the_repository() {
    for path in ["Cargo.toml", "crates/testing/tests/tidy.rs", "scripts/test"] {
        let file = TREE.file(path).unwrap_or_else(|| panic!("{path} is not among the files"));
        assert!(!file.text.is_empty(), "{path} is empty");
    }
    assert!(TREE.sources().any(|file| file.path == "scripts/test"), "scripts are source");
}

#[test]
fn lines_are_short() {
    none(&over(TREE.sources(), size::wide_lines));
}

#[test]
fn functions_are_short() {
    none(&except(over(TREE.ending("rs"), size::long_functions), LONG_FUNCTIONS));
}

#[test]
fn files_are_short() {
    none(&except(over(TREE.sources(), size::long_files), LONG_FILES));
}

#[test]
fn crates_import_only_what_the_table_allows() {
    let manifests = TREE.ending("toml");
    none(&manifests.flat_map(|file| imports::forbidden(file, IMPORTS)).collect::<Vec<_>>());
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    let crates = crates(&TREE.files());
    let found: Vec<_> =
        crates.iter().flat_map(|folder| circles(TREE.ending("rs"), folder)).collect();
    // Not by `eprintln`, whose output the test harness hides when a test passes.
    let (count, of) = (found.len(), crates.len());
    let _ = writeln!(stderr(), "{count} circles between the modules of {of} crates");
    none(&found);
}

/// Returns the source files of all Rust code, without those of tests.
fn rust_sources() -> impl Iterator<Item = &'static File> {
    TREE.ending("rs").filter(|file| {
        let is_test = file.path.contains("/tests/") || file.path.ends_with("tests.rs");
        file.path.contains("/src/") && !is_test
    })
}

#[test]
fn limits_are_called_max_or_min() {
    none(&over(rust_sources(), language::limit_names));
}

#[test]
fn docs_of_functions_begin_with_a_verb() {
    none(&over(rust_sources(), language::function_docs));
}

#[test]
fn comments_and_pages_name_the_actor() {
    none(&over(rust_sources(), language::banned_words));
    none(&over(TREE.ending("md"), language::banned_words));
    for ending in ["proto", "java", "py", "pyi", "c", "h"] {
        let files = TREE.ending(ending).filter(|file| {
            !["/tests/", "/src/test/", "clients/"].iter().any(|tests| file.path.contains(tests))
        });
        none(&over(files, language::banned_words));
    }
}

#[test]
fn names_say_something() {
    none(&over(TREE.sources(), names::empty));
}

#[test]
fn links_lead_somewhere() {
    none(&links::dead(&TREE));
}

#[test]
fn readmes_of_languages_have_one_shape() {
    let of_languages: Vec<_> = TREE
        .ending("md")
        .filter(|file| file.path.starts_with("bindings/") && file.path.ends_with("/README.md"))
        .collect();
    assert!(of_languages.len() >= 6, "{} READMEs", of_languages.len());
    none(&over(of_languages.into_iter(), readmes::other_shape));
}

#[test]
fn unsafe_stays_in_its_files() {
    let exceptions = |(kind, places): &(&'static str, &'static [&'static str])| {
        let reason = *kind;
        places.iter().map(move |place| Exception { place, reason }).collect::<Vec<_>>()
    };
    let exceptions: Vec<_> = UNSAFE.iter().flat_map(exceptions).collect();
    none(&except(over(TREE.ending("rs"), unsafety::files), &exceptions));
}

#[test]
fn functions_for_c_catch_panics_and_report_errors() {
    let sources = TREE.ending("rs").filter(|file| file.path.starts_with("bindings/c/src/"));
    none(&except(over(sources, exports::without_macro), OTHER_EXPORTS));
}

#[test]
fn unsafe_has_its_reason_above() {
    none(&over(TREE.ending("rs"), unsafety::without_reason));
}

#[test]
fn tests_run_and_code_is_written() {
    none(&over(TREE.sources(), leftovers::switched_off));
}

#[test]
fn no_notes_are_left_in_source() {
    none(&over(TREE.sources(), leftovers::notes));
}

#[test]
fn no_file_names_a_machine() {
    none(&over(TREE.files(), leftovers::machine_paths));
}

#[test]
fn lock_files_name_no_hosts() {
    none(&over(TREE.files(), leftovers::lock_hosts));
}
