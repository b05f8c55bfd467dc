//! Azurite: another implementation of Azure Blob Storage, from npm.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ACCOUNT: &str = "devstoreaccount1";
/// The key of the account, which is the same in each installation and part of its documentation.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Azurite with blobs in memory. Dropping it ends the process.
#[derive(Debug)]
pub struct Azurite {
    process: Child,
    endpoint: String,
}

impl Azurite {
    /// Starts a server at any free port, with one container.
    ///
    /// # Panics
    ///
    /// If it cannot be installed or started.
    #[must_use]
    pub fn start(container: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("azurite");
        // In the target folder of this program.
        let program = std::env::current_exe().expect("this program");
        let environment = program.ancestors().nth(3).expect("the target folder").join("azurite");
        install(&source, &environment);
        let process = Command::new(environment.join("node_modules/.bin/azurite-blob"))
            .args(["--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--blobPort=0"])
            .current_dir(&environment)
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.expect("Azurite");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let address = loop {
            let line = lines.next().expect("a line with the port").expect("a line");
            if let Some((_, address)) = line.split_once("successfully listens on ") {
                break address.trim().to_owned();
            }
        };
        // Reads the rest of the output, so that the server never blocks on a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let server = Self { process, endpoint: format!("{address}/{ACCOUNT}") };
        let created = Command::new("node")
            .arg(source.join("create_container.mjs"))
            .args([&server.endpoint, ACCOUNT, KEY, container])
            .status();
        assert!(created.expect("node").success(), "the container was not created");
        server
    }

    /// Sets the environment of a program that uses the server.
    pub fn configure(&self, program: &mut Command) {
        program
            .env("AZURE_STORAGE_ENDPOINT", &self.endpoint)
            .env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
            .env("AZURE_STORAGE_ACCOUNT_KEY", KEY)
            .env("AZURE_ALLOW_HTTP", "true");
    }

    /// Returns the secret that no output may contain.
    #[must_use]
    pub const fn secret(&self) -> &'static str {
        KEY
    }
}

/// Installs the locked packages, again if the lock file has changed.
fn install(source: &Path, environment: &Path) {
    let (lock, installed) = ("package-lock.json", environment.join("installed"));
    let expected = fs::read(source.join(lock)).expect("the lock file");
    if fs::read(&installed).is_ok_and(|found| found == expected) {
        return;
    }
    fs::create_dir_all(environment).expect("a folder");
    for name in ["package.json", lock] {
        fs::copy(source.join(name), environment.join(name)).expect("a copy");
    }
    let run = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(environment)
        .status();
    assert!(run.expect("npm").success(), "Azurite is needed, from npm");
    fs::write(installed, expected).expect("a file");
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
