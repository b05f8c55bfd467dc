//! A C library that is preloaded into the command and changes system calls.

use crate::folder::{Folder, Run};
use std::path::{Path, PathBuf};
use std::process::Command;

impl Folder {
    /// Returns a command that runs with the library and these `PRELOAD_` variables.
    pub(crate) fn preloaded(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = self.command(arguments);
        command.env("LD_PRELOAD", self.library()).envs(variables.iter().copied());
        command
    }

    /// Runs a command whose file is truncated as soon as it is mapped.
    pub(crate) fn run_truncated(&self, arguments: &[&str], file: &str, len: u64) -> Run {
        let variables = [("PRELOAD_TRUNCATE", file), ("PRELOAD_LEN", &len.to_string())];
        Run::of(self.preloaded(arguments, &variables), b"")
    }

    /// Runs a command. Returns also its peak resident memory in bytes.
    pub(crate) fn run_with_peak(&self, arguments: &[&str]) -> (Run, u64) {
        let run = Run::of(self.preloaded(arguments, &[("PRELOAD_PEAK", "peak")]), b"");
        let peak = String::from_utf8(self.bytes("peak")).expect("a text");
        (run, peak.parse::<u64>().expect("a number") << 10)
    }

    /// Returns a command in a control group with this limit of memory in bytes.
    pub(crate) fn limited(&self, arguments: &[&str], bytes: u64) -> Command {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
        let group = format!("31 23 0:27 / {} rw - cgroup2 cgroup rw\n", self.text("group"));
        for folder in ["group", "proc", "proc/self"] {
            std::fs::create_dir_all(self.path(folder)).expect("a folder");
        }
        self.file("group/memory.max", format!("{bytes}\n"));
        self.file("proc/self/cgroup", "0::/\n").file("proc/self/mountinfo", group + &mounts);
        self.preloaded(arguments, &[("PRELOAD_PROC", &self.text("proc"))])
    }

    /// Compiles the library, once in each folder.
    fn library(&self) -> PathBuf {
        let library = self.path("preload.so");
        if !library.exists() {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/preload.c");
            let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
            let mut compile = Command::new(cc);
            compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
            let compiled = compile.arg(source).arg("-o").arg(&library).output();
            let compiled = compiled.expect("a C compiler");
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        }
        library
    }
}
