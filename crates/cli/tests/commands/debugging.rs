//! The sessions of docs/debugging.md.

use crate::folder::{Folder, Run};
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/debugging.md");

/// It printed the unread bytes without the client that has not read them.
#[test]
fn the_command_for_slow_clients_shows_the_id_that_client_kill_takes() {
    let (_, script) = PAGE.split_once("redis-cli client list | sed -E '").expect("the command");
    let (script, _) = script.split_once('\'').expect("its end");
    let folder = Folder::new();
    let server = folder.serve(&[], &[]);
    let _other = server.connect();
    let answer = server.ask("CLIENT LIST");
    let mut sed = Command::new("sed");
    sed.args(["-E", script]);
    let listed: String = answer
        .lines()
        .filter(|line| line.starts_with("id="))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let shown = Run::of(sed, listed.as_bytes()).stdout;
    assert!(!shown.is_empty(), "{answer}");
    for line in shown.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let [unread, id, address] = fields[..] else { panic!("{line}") };
        assert!(unread.parse::<u64>().is_ok(), "{line}");
        let id = id.strip_prefix("id=").expect(line);
        assert!(listed.contains(&format!("id={id} {address} ")), "{line}");
    }
}
