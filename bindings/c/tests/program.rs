//! Programs in C that use the header and the library, compiled and run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo left the library: beside the folder of this test, or in it.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(Path::to_owned).find(|folder| folder.join("libnuthatch.so").exists());
    found.expect("libnuthatch.so beside this test")
}

/// Compiles a program with these flags, and runs it in a folder of its own.
fn compile_and_run(source: &str, flags: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let library = library_folder();
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(cc)
        .args(["-std=c11", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"])
        .args(["-g", "-D_GNU_SOURCE", "-pthread"])
        .args(flags)
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests").join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-lnuthatch")
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).arg(folder.path()).output().expect("the program");
    assert!(ran.status.success(), "{:?}: {}", ran.status, String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_program_in_c_does_what_the_header_promises() {
    compile_and_run("program.c", &[]);
    compile_and_run("snapshot.c", &[]);
}

/// The sanitizer sees what is freed twice, read after it was freed, or never freed, on both sides.
#[test]
fn it_does_so_under_the_address_sanitizer() {
    compile_and_run("program.c", &["-fsanitize=address"]);
    compile_and_run("snapshot.c", &["-fsanitize=address", "-fsanitize=undefined"]);
}
