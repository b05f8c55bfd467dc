//! `include/nuthatch.h` is what the sources say. With `NUTHATCH_WRITE_HEADER=1` in the environment
//! this test writes it.

use std::path::Path;

/// In the order of the header.
const SOURCES: [&str; 19] = [
    "error",
    "memory",
    "store/types",
    "store/open",
    "store/read",
    "store/scan",
    "store/write",
    "store/writer",
    "store/watch",
    "store/upkeep",
    "snapshot/types",
    "snapshot/open",
    "snapshot/value",
    "snapshot/scratch",
    "snapshot/lookup",
    "snapshot/iterator",
    "snapshot/describe",
    "snapshot/watch",
    "snapshot/writer",
];

#[test]
fn the_header_is_what_the_sources_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join("src").join(source).with_extension("rs"));
    }
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let path = root.join("include/nuthatch.h");
    if std::env::var_os("NUTHATCH_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("a header that can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(found.lines()).find(|(made, found)| made != found);
    assert!(
        made == found,
        "include/nuthatch.h differs at {differs:?}: run this with NUTHATCH_WRITE_HEADER=1"
    );
}
