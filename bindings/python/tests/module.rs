//! Makes `cargo test` build the extension module before it builds this test, with the same
//! dependencies as other crates. The Python tests, which run later, build nothing.

#[test]
fn the_module_is_there_for_python() {
    let test = std::env::current_exe().expect("this test has a path");
    let module = test.with_file_name("libnuthatch_native.so");
    let bytes = std::fs::read(&module).unwrap_or_else(|e| panic!("{}: {e}", module.display()));
    let name = b"PyInit__native";
    assert!(bytes.windows(name.len()).any(|window| window == name), "no {name:?} in it");
}
