//! The page of protocols tells of every command there is, and of no other.

use nuthatch_server::commands::all;
use std::collections::BTreeSet;

#[test]
fn the_page_lists_all_commands() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, table) = page.split_once("## Commands").expect("a heading");
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<_> = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .map(str::to_ascii_lowercase)
        .collect();
    let there: BTreeSet<_> = all().map(|command| command.name.to_owned()).collect();
    assert_eq!(listed, there);
}
