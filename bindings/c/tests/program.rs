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

/// Compiles a program of this folder with these flags, and runs it in a folder of its own. Returns
/// its output.
fn compile_and_run(source: &str, flags: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    compile_and_run_file(&root.join("tests").join(source), flags)
}

fn compile_and_run_file(source: &Path, flags: &[&str]) -> String {
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
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-lnuthatch")
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let mut run = Command::new(&program);
    let ran = run.arg(folder.path()).current_dir(folder.path()).output().expect("the program");
    assert!(ran.status.success(), "{:?}: {}", ran.status, String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Returns a program with the statements of an example.
fn program_of(example: &str) -> String {
    let (includes, statements): (Vec<_>, Vec<_>) =
        example.lines().partition(|line| line.starts_with("#include"));
    let (includes, statements) = (includes.join("\n"), statements.join("\n"));
    format!("{includes}\nint main(void) {{\n{statements}\nreturn 0;\n}}\n")
}

#[test]
fn the_examples_of_the_readme_run() {
    let readme = include_str!("../README.md");
    let examples = readme.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next());
    let folder = tempfile::tempdir().expect("a folder");
    let outputs: Vec<_> = examples
        .map(|example| {
            let source = folder.path().join("example.c");
            std::fs::write(&source, program_of(example)).expect("a file");
            compile_and_run_file(&source, &[])
        })
        .collect();
    assert_eq!(outputs, ["user:1", "Ada\n"]);
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
