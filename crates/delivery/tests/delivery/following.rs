//! A folder that follows a destination.

use crate::place::{Place, check, failure, names, options};
use nuthatch_delivery::{
    Bandwidth, Error, FollowOptions, PublishOptions, delay_before_check, generations, roll_back,
};
use nuthatch_snapshot::{Snapshot, Watch};
use std::time::Duration;

#[tokio::test]
async fn each_generation_is_swapped_in_once() {
    let place = Place::new();
    let mut follower = place.follower();
    assert_eq!(failure(&mut follower).await.code(), "nothing-published");
    for generation in 1..=3 {
        let seven = i64::try_from(generation).expect("a small number");
        let published = place.publish(seven).await;
        let swapped = check(&mut follower).await.expect("a generation");
        assert_eq!((swapped.generation, swapped.fetched_bytes), (generation, published.bytes));
        assert_eq!(swapped.path, place.path("folder/users.nut"));
        assert_eq!(place.seven(), Some(seven));
        assert_eq!(check(&mut follower).await, None);
    }
    assert_eq!(place.generations().len(), 2, "the current one and the one before");
    // Another follower of the same folder knows what it has.
    drop(follower);
    let mut follower = place.follower();
    assert_eq!(follower.generation(), Some(3));
    assert_eq!(check(&mut follower).await, None);
    assert_eq!(names(&place.path("folder/.nuthatch/partial")), [""; 0]);
}

#[tokio::test]
async fn readers_switch_by_a_watch_and_old_ones_keep_reading() {
    let place = Place::new();
    let mut follower = place.follower();
    place.publish(1).await;
    check(&mut follower).await.expect("a generation");
    let old = Snapshot::open(place.path("folder/users.nut")).expect("a snapshot");
    let watch = Watch::path(place.path("folder/users.nut")).expect("a watch");
    let mut reader = watch.reader();
    for seven in 2..=4 {
        place.publish(seven).await;
        check(&mut follower).await.expect("a generation");
        watch.refresh();
        assert_eq!(reader.current().get_i64(b"7").expect("an integer"), Some(seven));
    }
    assert_eq!(old.get_i64(b"7").expect("an integer"), Some(1));
}

#[tokio::test]
async fn of_a_set_only_the_changed_shards_are_fetched() {
    let place = Place::new();
    let options = options();
    let mut follower = place.follower();
    for (seven, fetches_all) in [(1, true), (2, false)] {
        let file = place.build("set/users.nut", 8, seven);
        let published = place.publish_file(&file, &options).await.expect("published");
        let swapped = check(&mut follower).await.expect("a generation");
        assert_eq!(swapped.fetched_bytes == published.bytes, fetches_all, "{swapped:?}");
        assert_eq!(swapped.fetched_bytes, published.uploaded_bytes);
        assert_eq!(place.seven(), Some(seven));
    }
}

#[tokio::test]
async fn a_rollback_is_followed() {
    let place = Place::new();
    let mut follower = place.follower();
    for seven in 1..=2 {
        place.publish(seven).await;
    }
    check(&mut follower).await.expect("a generation");
    roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!((swapped.generation, place.seven()), (1, Some(1)));
}

#[tokio::test]
async fn an_older_manifest_is_refused_also_after_a_restart() {
    let place = Place::new();
    let mut follower = place.follower();
    place.publish(1).await;
    let manifest = place.path("shared/manifest.json");
    let old = std::fs::read(&manifest).expect("a manifest");
    place.publish(2).await;
    check(&mut follower).await.expect("a generation");
    std::fs::write(&manifest, old).expect("a manifest");
    for _ in 0..2 {
        let error = failure(&mut follower).await;
        assert!(matches!(error, Error::OlderManifest { expected: 2, found: 1, .. }), "{error}");
        assert_eq!(place.seven(), Some(2));
        drop(follower);
        follower = place.follower();
    }
}

#[tokio::test]
async fn a_manifest_that_is_removed_is_an_error() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    std::fs::remove_file(place.path("shared/manifest.json")).expect("removed");
    assert_eq!(failure(&mut follower).await.code(), "nothing-published");
    assert_eq!((follower.generation(), place.seven()), (Some(1), Some(1)));
}

/// The one that was current last is kept, whatever its number.
#[tokio::test]
async fn the_previous_generation_is_the_one_before_a_rollback_and_on() {
    let place = Place::new();
    let mut follower = place.follower();
    for seven in 1..=3 {
        place.publish(seven).await;
        check(&mut follower).await.expect("a generation");
    }
    roll_back(&place.destination(), 2, None, &[]).await.expect("rolled back");
    check(&mut follower).await.expect("a generation");
    place.publish(4).await;
    check(&mut follower).await.expect("a generation");
    let generations = place.generations();
    let numbers: Vec<_> = generations.iter().filter_map(|name| name.split('-').next()).collect();
    assert_eq!((numbers, place.seven()), (vec!["2", "5"], Some(4)));
}

/// A generation that is still in the folder is not fetched again.
#[tokio::test]
async fn a_rollback_to_the_generation_before_fetches_nothing() {
    let place = Place::new();
    let mut follower = place.follower();
    for seven in 1..=2 {
        place.publish(seven).await;
        check(&mut follower).await.expect("a generation");
    }
    roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!((swapped.generation, swapped.fetched_bytes, place.seven()), (1, 0, Some(1)));
}

#[tokio::test]
async fn a_set_with_a_missing_shard_is_continued_where_it_failed() {
    let place = Place::new();
    let file = place.build("set/users.nut", 8, 1);
    let published = place.publish_file(&file, &options()).await.expect("published");
    let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
    let last = manifest.current().files.last().expect("a shard");
    let object = place.path("shared/objects").join(&last.object);
    let bytes = std::fs::read(&object).expect("an object");
    std::fs::remove_file(&object).expect("removed");
    let mut follower = place.follower();
    assert_eq!(failure(&mut follower).await.code(), "store");
    drop(follower);
    std::fs::write(&object, &bytes).expect("an object");
    let swapped = check(&mut place.follower()).await.expect("a generation");
    assert!(swapped.fetched_bytes <= bytes.len() as u64, "{swapped:?} of {published:?}");
    assert_eq!(place.seven(), Some(1));
}

#[tokio::test]
async fn what_other_programs_remove_from_the_folder_is_noticed_and_restored() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    let folder = place.path("folder");
    for removed in [".nuthatch", ""] {
        std::fs::remove_dir_all(folder.join(removed)).expect("removed");
        std::fs::rename(place.path("shared"), place.path("away")).expect("moved away");
        follower.check(|_| {}).await.expect_err("nothing is published");
        assert_eq!((follower.generation(), follower.path()), (None, None), "{removed}");
        std::fs::rename(place.path("away"), place.path("shared")).expect("moved back");
        check(&mut follower).await.expect("a generation");
        assert_eq!((follower.generation(), place.seven()), (Some(1), Some(1)));
        place.follower_with(FollowOptions::default()).expect_err("the new folder is locked");
    }
}

#[tokio::test]
async fn a_link_that_was_removed_is_restored_also_while_the_source_is_away() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    std::fs::remove_file(place.path("folder/users.nut")).expect("removed");
    std::fs::rename(place.path("shared"), place.path("away")).expect("moved away");
    follower.check(|_| {}).await.expect_err("nothing is published");
    assert_eq!((follower.generation(), place.seven()), (Some(1), Some(1)));
    std::fs::rename(place.path("away"), place.path("shared")).expect("moved back");
    assert_eq!(check(&mut follower).await, None);
}

#[tokio::test]
async fn links_of_other_names_are_removed_and_those_of_users_stay() {
    let place = Place::new();
    place.publish(1).await;
    let folder = place.path("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let link = folder.join("users.nut");
    std::os::unix::fs::symlink("users-monday.nut", &link).expect("a link");
    let mut follower = place.follower();
    let error = failure(&mut follower).await.to_string();
    assert!(error.contains("found another file or link; move it away"), "{error}");
    std::fs::rename(&link, folder.join("mine.nut")).expect("moved");
    // A follower was killed between the new link and the removal of the old one.
    std::os::unix::fs::symlink(".nuthatch/0-gone/old.nut", folder.join("old.nut")).expect("a link");
    check(&mut follower).await.expect("a generation");
    // A user has made a link to a generation under another name.
    let pinned = folder.join("pinned.nut");
    std::os::unix::fs::symlink(std::fs::read_link(&link).expect("a link"), pinned).expect("a link");
    place.publish(2).await;
    check(&mut follower).await.expect("a generation");
    let mut found = names(&folder);
    found.retain(|name| name != ".nuthatch");
    assert_eq!(found, ["mine.nut", "pinned.nut", "users.nut"]);
}

/// The serial number is remembered even if the generation stays the same.
#[tokio::test]
async fn a_manifest_from_before_a_rollback_and_back_is_refused() {
    let place = Place::new();
    let mut follower = place.follower();
    for seven in 1..=2 {
        place.publish(seven).await;
    }
    let manifest = place.path("shared/manifest.json");
    let old = std::fs::read(&manifest).expect("a manifest");
    check(&mut follower).await.expect("a generation");
    for generation in [1, 2] {
        roll_back(&place.destination(), generation, None, &[]).await.expect("rolled back");
    }
    assert_eq!(check(&mut follower).await, None);
    std::fs::write(&manifest, old).expect("a manifest");
    drop(follower);
    assert_eq!(failure(&mut place.follower()).await.code(), "older-manifest");
}

#[tokio::test]
async fn a_new_name_replaces_the_link() {
    let place = Place::new();
    let mut follower = place.follower();
    place.publish(1).await;
    check(&mut follower).await.expect("a generation");
    let file = place.build("users.nut", 0, 2);
    let options = PublishOptions { name: Some("people.nut".to_owned()), ..options() };
    place.publish_file(&file, &options).await.expect("published");
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!(swapped.path, place.path("folder/people.nut"));
    assert_eq!(names(&place.path("folder")), [".nuthatch", "people.nut"]);
}

#[tokio::test]
async fn one_follower_uses_a_folder_at_a_time() {
    let place = Place::new();
    let follower = place.follower();
    let error = place.follower_with(FollowOptions::default()).expect_err("in use");
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(follower);
    place.follower();
}

#[tokio::test]
async fn the_bandwidth_limit_delays_what_is_fetched() {
    let place = Place::new();
    let published = place.publish(1).await;
    let limit = published.bytes / 2;
    let options =
        FollowOptions { bandwidth: Some(Bandwidth::new(limit)), ..FollowOptions::default() };
    let mut follower = place.follower_with(options).expect("a follower");
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    check(&mut follower).await.expect("a generation");
    // The clock of the runtime is paused: it advances by the delays alone. The first range is
    // requested at once.
    let delays = start.elapsed();
    assert!(delays >= Duration::from_millis(500), "{delays:?}");
    assert_eq!(place.seven(), Some(1));
}

#[tokio::test]
async fn a_file_of_somebody_else_at_the_path_of_the_link_stays() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    let path = place.path("folder/users.nut");
    std::fs::write(&path, "mine").expect("a file");
    let error = failure(&mut follower).await;
    assert!(error.to_string().contains("expected no file, or a symbolic link"), "{error}");
    assert_eq!((follower.generation(), follower.path()), (None, None));
    assert_eq!(std::fs::read(&path).expect("a file"), b"mine");
    std::fs::remove_file(&path).expect("removed");
    check(&mut follower).await.expect("a generation");
    assert_eq!(place.seven(), Some(1));
}

#[tokio::test]
async fn a_folder_whose_files_were_removed_is_filled_again() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    drop(follower);
    let generation = place.path("folder/.nuthatch").join(&place.generations()[0]);
    std::fs::remove_file(generation.join("users.nut")).expect("removed");
    assert_eq!(place.seven(), None);
    check(&mut place.follower()).await.expect("a generation");
    assert_eq!(place.seven(), Some(1));
}

#[tokio::test]
async fn the_manifest_lists_what_followers_verify() {
    let place = Place::new();
    place.publish(1).await;
    let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
    let file = &manifest.current().files[0];
    let bytes = std::fs::read(place.path("users.nut")).expect("a file");
    assert_eq!(file.bytes, bytes.len() as u64);
    assert_eq!(file.blake3, blake3::hash(&bytes).to_hex().as_str());
    assert!(file.object.starts_with(&file.blake3));
}

#[test]
fn delays_double_after_failures_up_to_sixteen_times() {
    let interval = Duration::from_secs(30);
    let delay = |failures| delay_before_check(interval, failures, 0.5).as_secs_f64().round();
    let delays: Vec<_> = (0..7).map(delay).collect();
    assert_eq!(delays, [30.0, 30.0, 60.0, 120.0, 240.0, 480.0, 480.0]);
    assert_eq!(delay_before_check(interval, 0, 0.0), Duration::from_secs(27));
    assert_eq!(delay_before_check(interval, 0, 1.0), Duration::from_secs(33));
    // Without an interval, a failure must not make a follower ask without a pause.
    assert_eq!(delay_before_check(Duration::ZERO, 0, 0.5), Duration::ZERO);
    assert!(delay_before_check(Duration::ZERO, 1, 0.0) >= Duration::from_millis(900));
}

/// A program that reloads after each swap must also learn of one that a restart finds.
#[tokio::test]
async fn a_swap_of_a_follower_that_was_killed_is_returned_by_the_next_one() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    drop(follower);
    // The state before the end of the swap.
    let path = place.path("folder/.nuthatch/state.json");
    let state = std::fs::read_to_string(&path).expect("a state");
    let state: serde_json::Value = serde_json::from_str(&state).expect("JSON");
    std::fs::write(&path, serde_json::json!({"serial": 0, "next": state}).to_string())
        .expect("written");
    let mut follower = place.follower();
    std::fs::rename(place.path("shared"), place.path("away")).expect("moved away");
    follower.check(|_| {}).await.expect_err("nothing is published");
    std::fs::rename(place.path("away"), place.path("shared")).expect("moved back");
    let swapped = check(&mut follower).await.expect("the swap");
    assert_eq!((swapped.generation, swapped.fetched_bytes), (1, 0));
    assert_eq!(check(&mut follower).await, None);
    drop(follower);
    assert_eq!(check(&mut place.follower()).await, None);
}
