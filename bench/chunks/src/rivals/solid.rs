//! Chunks as rows of a PostgreSQL database, as in SolidCache. Each chunk is an uncompressed row
//! with its own key. When the rows exceed the limit of bytes, the oldest are deleted.

use crate::buffer::Buffer;
use crate::systems::{Entrant, System};
use postgres::{Client, Config, NoTls, Statement};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const ENTRANT: Entrant =
    Entrant { files_alone: false, ..Entrant::new("solid", |path, limit| Solid::open(path, limit)) };

/// Number of rows per deletion.
const BATCH: i64 = 16;

/// A connection with its prepared statements.
struct Session {
    client: Client,
    get: Statement,
    put: Statement,
    expire: Statement,
}

struct Solid {
    folder: PathBuf,
    table: String,
    limit: u64,
    idle: Mutex<Vec<Session>>,
    bytes: Mutex<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Solid {
    fn open(path: &Path, limit: u64) -> Box<dyn System> {
        let folder = server_folder();
        let name = path.to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let table = format!("chunks{name}").to_lowercase();
        let mut client = connect(&folder);
        let schema = format!(
            "create table if not exists {table} (
                id bigserial primary key, key bytea not null, chunk bigint not null,
                size bigint not null, value bytea not null, unique (key, chunk));
            alter table {table} alter column value set storage external;"
        );
        client.batch_execute(&schema).expect("a table");
        let sum = format!("select coalesce(sum(size), 0)::bigint from {table}");
        let bytes: i64 = client.query_one(&sum, &[]).expect("a sum").get(0);
        let bytes = Mutex::new(bytes as u64);
        Box::new(Self { folder, table, limit, idle: Mutex::default(), bytes })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Session) -> T) -> T {
        let idle = lock(&self.idle).pop();
        let mut session = idle.unwrap_or_else(|| self.session());
        let result = work(&mut session);
        lock(&self.idle).push(session);
        result
    }

    fn session(&self) -> Session {
        let (table, mut client) = (&self.table, connect(&self.folder));
        let mut prepare = |text: String| client.prepare(&text).expect("a statement");
        let get = prepare(format!("select value from {table} where key = $1 and chunk = $2"));
        let put = prepare(format!(
            "insert into {table} (key, chunk, size, value) values ($1, $2, $3, $4)
             on conflict (key, chunk) do nothing"
        ));
        let expire = prepare(format!(
            "with gone as (delete from {table} where id in
                 (select id from {table} order by id limit $1) returning size)
             select coalesce(sum(size), 0)::bigint from gone"
        ));
        Session { client, get, put, expire }
    }
}

impl System for Solid {
    fn put(&self, key: u64, data: &[u8]) {
        self.with(|session| {
            let (name, size) = (key.to_le_bytes(), data.len() as i64);
            let values: [&(dyn postgres::types::ToSql + Sync); 4] =
                [&&name[..], &0_i64, &size, &data];
            session.client.execute(&session.put, &values).expect("a row");
            let mut bytes = lock(&self.bytes);
            *bytes += data.len() as u64;
            while *bytes > self.limit {
                let gone = session.client.query_one(&session.expire, &[&BATCH]).expect("rows");
                *bytes -= gone.get::<_, i64>(0) as u64;
            }
        });
    }

    fn get(&self, key: u64, out: &mut Buffer) -> bool {
        self.with(|session| {
            let name = key.to_le_bytes();
            let values: [&(dyn postgres::types::ToSql + Sync); 2] = [&&name[..], &0_i64];
            let row = session.client.query_opt(&session.get, &values).expect("an answer");
            let Some(row) = row else { return false };
            let value: &[u8] = row.get(0);
            out[..value.len()].copy_from_slice(value);
            true
        })
    }
}

static SERVER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Returns the folder of the server, and starts the server at the first call. All durability
/// features that can be disabled are disabled.
fn server_folder() -> PathBuf {
    let mut server = lock(&SERVER);
    if let Some(folder) = &*server {
        return folder.clone();
    }
    let folder = std::env::temp_dir().join(format!("solid-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    if let Some((user, group)) = user() {
        std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("its owner");
    }
    let data = folder.join("data");
    let make = ["--no-sync", "--auth=trust", "--username=postgres", "--pgdata"];
    run(program("initdb").args(make).arg(&data));
    let options = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c shared_buffers=2GB -c fsync=off \
         -c synchronous_commit=off -c full_page_writes=off -c wal_level=minimal \
         -c max_wal_senders=0 -c max_wal_size=4GB",
        folder.display()
    );
    let start = ["start", "--wait", "--silent", "--options", &options, "--log"];
    run(program("pg_ctl").args(start).arg(folder.join("log")).arg("--pgdata").arg(&data));
    *server = Some(folder.clone());
    folder
}

/// Stops the server, if it is running, and removes its files.
pub fn stop() {
    if let Some(folder) = lock(&SERVER).take() {
        let stop = ["stop", "--mode=immediate", "--silent", "--pgdata"];
        run(program("pg_ctl").args(stop).arg(folder.join("data")));
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Returns a command of the newest installed PostgreSQL version, run as a permitted user.
fn program(name: &str) -> Command {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("the package postgresql");
    let mut versions: Vec<_> = versions.map(|entry| entry.expect("an entry").path()).collect();
    versions.sort();
    let newest = versions.last().expect("a version of PostgreSQL");
    let mut command = Command::new(newest.join("bin").join(name));
    command.current_dir("/");
    if let Some((user, group)) = user() {
        command.gid(group).uid(user);
    }
    command
}

/// Returns the user and group of PostgreSQL if this process runs as root, which PostgreSQL refuses.
fn user() -> Option<(u32, u32)> {
    let number = |arguments: [&str; 2]| {
        let said = Command::new("id").args(arguments).output().expect("id").stdout;
        String::from_utf8(said).expect("a number").trim().parse::<u32>().expect("a number")
    };
    (number(["-u", "--"]) == 0).then(|| (number(["-u", "postgres"]), number(["-g", "postgres"])))
}

fn run(command: &mut Command) {
    let status = command.stdout(std::process::Stdio::null()).status().expect("a program");
    assert!(status.success(), "{command:?}: {status}");
}

fn connect(folder: &Path) -> Client {
    let mut config = Config::new();
    config.host_path(folder).user("postgres").dbname("postgres");
    config.connect(NoTls).expect("a connection")
}
