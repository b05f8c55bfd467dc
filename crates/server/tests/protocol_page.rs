//! Compares the commands of `docs/protocol.md` with those of the server.

use nuthatch_server::resp::commands::all;
use std::collections::BTreeSet;

#[test]
fn the_page_lists_all_commands() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, commands) = page.split_once("### Commands").expect("a heading");
    let (commands, _) = commands.split_once("\n###").expect("another heading");
    let first_cells =
        commands.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<_> = first_cells.map(str::to_ascii_lowercase).collect();
    let there: BTreeSet<_> = all().map(|command| command.name.to_owned()).collect();
    assert_eq!(listed, there);
}
