//! Publishing to Azure Blob Storage, and following from there.

#[path = "commands/folder.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod folder;
mod stores;

use folder::Folder;
use nuthatch_testing::azurite::Azurite;
use std::process::Command;
use stores::Store;

#[test]
fn snapshots_go_through_azure() {
    let folder = Folder::new();
    let azurite = Azurite::start("snapshots");
    let store = Store {
        folder: &folder,
        address: "az://snapshots/the users",
        configure: &|command: &mut Command| azurite.configure(command),
        secret: azurite.secret(),
    };
    stores::sets_are_published_and_followed(&store);
    stores::one_of_several_publishers_wins(&store);
    stores::large_files_arrive_whole(&store);
    let run = store.run(&["publish", "large.nut", "az://absent/users"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    let place = "az://absent/users/objects: ";
    assert!(run.stderr.contains(place) && run.stderr.contains("it does not exist"), "{run:?}");
}
