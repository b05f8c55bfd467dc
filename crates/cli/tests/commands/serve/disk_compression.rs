//! Compressed values in the disk tier of the cache server, across restarts.

use super::compression::{bulk, document, fill, info, number, send};
use crate::folder::Folder;
use crate::server::{Running, wait_until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;

const DISK: &[&str] = &["--disk=256MiB", "--data-dir=data"];
const TRAINED: &[&str] = &["--memory=64MiB", "--compress=zstd:3"];
const FROM_FILE: &[&str] = &["--compress=zstd:3", "--compress-dict=users.zdict"];
/// Documents of tests with a dictionary from a file.
const DOCUMENTS: usize = 2000;

/// Starts a server with a disk tier, and waits until the items of the last run are found.
fn start(folder: &Folder, more: &[&str]) -> Running {
    let server = folder.serve(&[DISK, more].concat(), &[]);
    wait_until("all items are found", || disk(&server, "disk_recovering") == 0);
    server
}

fn stop(server: Running) -> String {
    let (status, messages) = server.stop();
    assert_eq!(status, Some(0), "{messages}");
    messages
}

/// Returns a number of `INFO disk`.
fn disk(server: &Running, name: &str) -> u64 {
    let text = server.ask("INFO disk");
    let field = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    field.unwrap_or_else(|| panic!("{name}: {text}")).trim_end().parse().expect("a number")
}

/// Trains a dictionary for documents from samples with another field.
fn dictionary(folder: &Folder, name: &str, field: &str, id: &str) {
    let line = |number| document(number).replace("email", field) + "\n";
    folder.file("samples.jsonl", (0..4000).map(line).collect::<String>());
    let run = ["dict", "train", "--from", "samples.jsonl", "--out", name, "--id", id];
    let trained = folder.run(&run);
    assert_eq!(trained.status, Some(0), "{trained:?}");
}

/// Returns a folder with a server that has compressed documents with a dictionary from a file.
fn filled() -> (Folder, Running) {
    let folder = Folder::new();
    dictionary(&folder, "users.zdict", "email", "7");
    let server = start(&folder, FROM_FILE);
    fill(&server, DOCUMENTS);
    let values = info(&server, "compression_dict_7").expect("the dictionary");
    assert!(number(&values, "values") >= DOCUMENTS as f64, "{values}");
    (folder, server)
}

/// Returns how many of the first documents the server has. Those must be right.
fn count(server: &Running, documents: usize) -> usize {
    let mut found = 0;
    for start in (0..documents).step_by(500) {
        let numbers = start..documents.min(start + 500);
        let keys: Vec<_> = numbers.clone().map(|number| format!("user:{number}")).collect();
        let requests: Vec<[&str; 2]> = keys.iter().map(|key| ["GET", key.as_str()]).collect();
        let requests: Vec<&[&str]> = requests.iter().map(<[&str; 2]>::as_slice).collect();
        let replies = send(server, &requests);
        let mut rest = replies.as_str();
        for number in numbers {
            if let Some(after) = rest.strip_prefix("$-1\r\n") {
                rest = after;
                continue;
            }
            let expected = bulk(&document(number));
            rest = rest.strip_prefix(&expected).unwrap_or_else(|| panic!("{number}: {rest:.300}"));
            found += 1;
        }
        assert_eq!(rest, "");
    }
    found
}

/// Returns the reply to one command, which may contain any bytes.
fn reply(server: &Running, command: &str) -> Vec<u8> {
    let mut stream = server.connect();
    write!(stream, "{command}\r\nQUIT\r\n").expect("sent");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("a reply");
    reply
}

/// Starts a server that trains a dictionary, and stores documents that are compressed with it.
fn start_trained(folder: &Folder, documents: usize) -> Running {
    let server = start(folder, TRAINED);
    fill(&server, documents);
    wait_until("a dictionary", || info(&server, "compression_dict_1").is_some());
    fill(&server, documents);
    let fields = info(&server, "compression_dict_1").expect("a dictionary");
    assert!(number(&fields, "values") >= documents as f64, "{fields}");
    server
}

/// Returns a text of 12 KiB that compression hardly makes shorter.
fn incompressible(seed: u64) -> String {
    let mut word = seed;
    let next = || {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + (word >> 58) as u8)
    };
    std::iter::repeat_with(next).take(12 << 10).collect()
}

#[test]
fn values_with_a_trained_dictionary_survive_a_restart_and_it_is_used_again() {
    const DOCUMENTS: usize = 10_000;
    let folder = Folder::new();
    stop(start_trained(&folder, DOCUMENTS));
    let server = start(&folder, TRAINED);
    assert_eq!(count(&server, DOCUMENTS), DOCUMENTS);
    assert_eq!(disk(&server, "disk_hits"), DOCUMENTS as u64);
    fill(&server, DOCUMENTS);
    wait_until("the dictionary is used again", || {
        let fields = info(&server, "compression_dict_1").expect("a dictionary");
        fields.ends_with("groups=user:")
    });
    assert_eq!(info(&server, "compression_dict_2"), None, "it is as good as a new one");
}

#[test]
fn values_with_a_trained_dictionary_survive_a_kill() {
    const DOCUMENTS: usize = 10_000;
    let folder = Folder::new();
    let server = start_trained(&folder, DOCUMENTS);
    // Further values fill the memory, so that documents go to disk. A complete record is not
    // recovered before it is committed, which the demoter does before it writes further items.
    let (mut stored, mut written) = (0, None);
    wait_until("documents on disk", || {
        stored += 100;
        let keys: Vec<_> = (stored..stored + 100).map(|number| format!("more:{number}")).collect();
        let texts: Vec<_> = (stored..stored + 100).map(incompressible).collect();
        let pairs = keys.iter().zip(&texts).flat_map(|(key, text)| [key.as_str(), text.as_str()]);
        let request: Vec<_> = std::iter::once("MSET").chain(pairs).collect();
        assert_eq!(send(&server, &[&request]), "+OK\r\n");
        if written.is_none() && disk(&server, "disk_items") > DOCUMENTS as u64 / 2 {
            written = Some(disk(&server, "disk_written_items"));
        }
        written.is_some_and(|written| disk(&server, "disk_written_items") > written)
    });
    server.signal(Signal::KILL);
    drop(server);
    let server = start(&folder, TRAINED);
    let found = count(&server, DOCUMENTS);
    let state = format!("{}\n{}", server.ask("INFO disk"), server.messages());
    assert!(found > DOCUMENTS / 4, "{found}: {state}");
    assert_eq!(disk(&server, "disk_undecodable_records"), 0);
}

#[test]
fn compressed_values_on_disk_are_read_with_compression_off_and_with_another_level() {
    let (folder, server) = filled();
    stop(server);
    for settings in [&["--compress=off"][..], &["--compress=zstd:9", "--compress-dict=off"]] {
        let server = start(&folder, settings);
        assert_eq!(count(&server, DOCUMENTS), DOCUMENTS);
        assert_eq!(disk(&server, "disk_hits"), DOCUMENTS as u64);
        stop(server);
    }
    let level = ["--memory=64MiB", "--compress=zstd:19", "--compress-dict=users.zdict"];
    let server = start(&folder, &level);
    assert_eq!(count(&server, DOCUMENTS), DOCUMENTS);
}

/// The second dictionary has the same id as the first one.
#[test]
fn values_are_read_after_a_restart_with_another_dictionary() {
    let (folder, server) = filled();
    stop(server);
    dictionary(&folder, "users.zdict", "e-mail address", "7");
    for _ in 0..2 {
        let server = start(&folder, FROM_FILE);
        assert_eq!(count(&server, DOCUMENTS), DOCUMENTS);
        fill(&server, DOCUMENTS / 2);
        assert_eq!(count(&server, DOCUMENTS), DOCUMENTS);
        let fields = info(&server, "compression_dict_8").expect("another id");
        assert!(fields.ends_with("groups=(rest)"), "{fields}");
        stop(server);
    }
}

#[test]
fn values_are_missing_after_the_dictionaries_were_removed_and_no_command_fails() {
    let (folder, server) = filled();
    assert_eq!(server.ask("SET raw value"), "+OK\r\n");
    stop(server);
    std::fs::remove_dir_all(folder.path("data/dictionaries")).expect("a folder");
    let server = start(&folder, FROM_FILE);
    let commands = "STRLEN user:0\r\nAPPEND user:1 x\r\nGETRANGE user:2 0 3\r\nEXPIRE user:3 9\r\n\
                    RENAME user:4 other\r\nMGET user:5 raw\r\nGETDEL user:6\r\nTTL user:7\r\n\
                    SET user:8 new XX\r\nINCR user:9";
    let expected = ":0\r\n:1\r\n$0\r\n\r\n:0\r\n-ERR no such key\r\n*2\r\n$-1\r\n$5\r\nvalue\r\n\
                    $-1\r\n:-2\r\n$-1\r\n:1\r\n";
    assert_eq!(server.ask(commands), expected);
    assert_eq!(server.ask("DEL user:1 user:9"), ":2\r\n");
    assert_eq!(count(&server, DOCUMENTS), 0);
    assert_eq!(disk(&server, "disk_undecodable_records"), DOCUMENTS as u64);
    assert_eq!(server.ask("DBSIZE"), ":1\r\n");
    // The first dictionary had the same id as the one that is used now has in its file.
    fill(&server, 100);
    assert_eq!(count(&server, DOCUMENTS), 100);
    let messages = stop(server);
    assert!(messages.contains("an item on disk was removed: the dictionary"), "{messages}");
    let server = start(&folder, FROM_FILE);
    assert_eq!(count(&server, DOCUMENTS), 100);
    assert_eq!(disk(&server, "disk_undecodable_records"), 0);
}

#[test]
fn a_damaged_dictionary_is_reported_at_the_start_and_its_values_are_missing() {
    let (folder, server) = filled();
    stop(server);
    let mut bytes = folder.bytes("data/dictionaries/7.zdict");
    *bytes.last_mut().expect("not empty") ^= 1;
    folder.file("data/dictionaries/7.zdict", bytes);
    let server = start(&folder, &["--compress=off"]);
    assert_eq!(info(&server, "compression_dictionaries_lost").as_deref(), Some("1"));
    assert_eq!(count(&server, DOCUMENTS), 0);
    assert_eq!(disk(&server, "disk_undecodable_records"), DOCUMENTS as u64);
    assert!(stop(server).contains("7.zdict: read: expected the checksum "));
}

#[test]
fn commands_of_all_kinds_read_compressed_values_on_disk() {
    let (folder, server) = filled();
    let stored = reply(&server, "NUTHATCH.GETZ user:20");
    assert!(stored.starts_with(b"*2\r\n:7\r\n$"), "{stored:?}");
    stop(server);
    let server = start(&folder, &[FROM_FILE, &["--memcache=127.0.0.1:0"]].concat());
    assert_eq!(reply(&server, "NUTHATCH.GETZ user:20"), stored);
    assert!(reply(&server, "NUTHATCH.DICT 7").len() > 256);
    let (len, of) = (document(0).len(), |number| bulk(&document(number)));
    let strlen = format!(":{}\r\n", document(1).len());
    assert_eq!(server.ask("STRLEN user:1"), strlen);
    let appended = format!(":{}\r\n", document(2).len() + 1);
    assert_eq!(server.ask("APPEND user:2 x"), appended);
    assert_eq!(server.ask("GET user:2"), bulk(&(document(2) + "x")));
    assert_eq!(server.ask("GETRANGE user:3 0 6"), bulk("{\"id\":3"));
    assert_eq!(server.ask("EXPIRE user:4 100\r\nGET user:4"), ":1\r\n".to_owned() + &of(4));
    assert_eq!(server.ask("RENAME user:5 new\r\nGET new"), "+OK\r\n".to_owned() + &of(5));
    assert_eq!(server.ask("COPY user:6 copy\r\nGET copy"), ":1\r\n".to_owned() + &of(6));
    assert_eq!(server.ask("MGET user:7 user:8"), "*2\r\n".to_owned() + &of(7) + &of(8));
    assert_eq!(server.ask("GETDEL user:9\r\nEXISTS user:9"), of(9) + ":0\r\n");
    assert_eq!(server.ask("GETSET user:10 v"), of(10));
    let transaction = "+OK\r\n+QUEUED\r\n*1\r\n".to_owned() + &of(11);
    assert_eq!(server.ask("MULTI\r\nGET user:11\r\nEXEC"), transaction);
    let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
    write!(stream, "append user:0 0 0 1\r\nx\r\nget user:0 user:12\r\nquit\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let first = format!("STORED\r\nVALUE user:0 0 {}\r\n{}x\r\n", len + 1, document(0));
    let second = format!("VALUE user:12 0 {}\r\n{}\r\nEND\r\n", document(12).len(), document(12));
    assert_eq!(answer, first + &second);
    assert_eq!(disk(&server, "disk_undecodable_records"), 0);
}

/// A dump has raw values; the folder of a disk tier can have compressed ones.
#[test]
fn no_compressed_value_is_returned_when_disk_tier_and_warm_restart_change() {
    let (folder, server) = filled();
    assert_eq!(server.ask("SET raw value"), "+OK\r\n");
    stop(server);
    let warm = ["--data-dir=data", "--warm-restart=true", "--disk=0"];
    let server = folder.serve(&warm, &[]);
    wait_until("all items are restored", || {
        server.ask("INFO persistence").contains("restore_in_progress:0")
    });
    assert_eq!(server.ask("GET raw"), bulk("value"));
    assert_eq!(count(&server, DOCUMENTS), 0, "compressed values are left out");
    fill(&server, 100);
    stop(server);
    let server = start(&folder, FROM_FILE);
    assert_eq!(server.ask("GET raw"), bulk("value"));
    assert_eq!(count(&server, 100), 100);
}
