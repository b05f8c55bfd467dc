//! Folders that are swapped together.

use crate::place::{Place, names, options};
use nuthatch_delivery::{Error, FollowOptions, Follower, Group, GroupChecked, roll_back};
use nuthatch_snapshot::{Value, Writer};
use std::fs;

/// Publishes a snapshot whose key 7 has this value, with a number of a batch as metadata.
async fn publish(place: &Place, seven: i64, batch: Option<u64>) {
    let file = place.path("users.nut");
    let mut writer = Writer::create(&file).expect("a writer");
    writer.insert(b"7", Value::I64(seven)).expect("a row");
    if let Some(batch) = batch {
        writer.set_metadata("batch", batch.to_string().as_bytes()).expect("metadata");
    }
    writer.finish().expect("a snapshot");
    place.publish_file(&file, &options()).await.expect("published");
}

fn group(places: &[Place; 2]) -> Group {
    Group::new(places.iter().map(Place::follower).collect())
}

/// Checks once. Returns how many folders were swapped, how many checks failed, and what the group
/// waits for.
async fn check(group: &mut Group) -> (usize, usize, Option<String>) {
    let GroupChecked { folders, waits_for } = group.check(|_, _| {}).await;
    let swapped = folders.iter().filter(|result| matches!(result, Ok(Some(_)))).count();
    let failed = folders.iter().filter(|result| result.is_err()).count();
    (swapped, failed, waits_for)
}

/// Returns the generations of swaps that a group has completed at its start.
fn completed(group: &mut Group) -> Vec<Option<u64>> {
    let completed = group.take_completed().into_iter();
    completed.map(|swapped| swapped.map(|swapped| swapped.generation)).collect()
}

fn values(places: &[Place; 2]) -> [Option<i64>; 2] {
    [places[0].seven(), places[1].seven()]
}

#[tokio::test]
async fn no_folder_is_swapped_before_all_generations_are_complete() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places);
    assert_eq!(check(&mut group).await, (0, 2, None), "nothing was published");
    publish(&places[0], 1, None).await;
    let waits = Some("the folders whose check failed".to_owned());
    for _ in 0..2 {
        assert_eq!(check(&mut group).await, (0, 1, waits.clone()));
        assert_eq!(values(&places), [None, None]);
    }
    publish(&places[1], 1, None).await;
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(1), Some(1)]);
    assert_eq!(check(&mut group).await, (0, 0, None));
    // Without a condition, one of them can go on alone.
    publish(&places[1], 2, None).await;
    assert_eq!(check(&mut group).await, (1, 0, None));
    assert_eq!(values(&places), [Some(1), Some(2)]);
}

#[tokio::test]
async fn a_generation_that_cannot_be_completed_holds_the_others() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places);
    for place in &places {
        publish(place, 1, None).await;
    }
    check(&mut group).await;
    for place in &places {
        publish(place, 2, None).await;
    }
    let objects = places[1].path("shared/objects");
    let hidden = places[1].path("hidden");
    fs::rename(&objects, &hidden).expect("renamed");
    let GroupChecked { folders, waits_for } = group.check(|_, _| {}).await;
    assert!(matches!(folders[1], Err(Error::ObjectNotFound { .. })), "{folders:?}");
    assert!(waits_for.is_some());
    assert_eq!(values(&places), [Some(1), Some(1)]);
    fs::rename(&hidden, &objects).expect("renamed");
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(2), Some(2)]);
}

#[tokio::test]
async fn generations_are_swapped_in_when_they_have_the_same_metadata() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places).same_metadata("batch");
    publish(&places[0], 1, Some(1)).await;
    publish(&places[1], 1, None).await;
    let waits = "the same \"batch\": users.nut has \"1\", users.nut has none";
    assert_eq!(check(&mut group).await, (0, 0, Some(waits.to_owned())));
    publish(&places[1], 2, Some(1)).await;
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(1), Some(2)]);
    for batch in 2..=4 {
        publish(&places[0], 3, Some(batch)).await;
        let waits = format!("the same \"batch\": users.nut has \"{batch}\", users.nut has \"1\"");
        assert_eq!(check(&mut group).await, (0, 0, Some(waits)));
        assert_eq!(values(&places), [Some(1), Some(2)]);
        // What was complete and is replaced does not stay.
        assert_eq!(places[0].generations().len(), 2);
    }
    publish(&places[1], 4, Some(4)).await;
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(3), Some(4)]);
    assert_eq!(names(&places[0].path("folder/.nuthatch/partial")), [""; 0]);
}

#[tokio::test]
async fn a_complete_generation_that_others_remove_is_fetched_again() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places).same_metadata("batch");
    publish(&places[0], 1, Some(1)).await;
    publish(&places[1], 1, Some(2)).await;
    check(&mut group).await;
    for name in places[0].generations() {
        fs::remove_dir_all(places[0].path("folder/.nuthatch").join(name)).expect("removed");
    }
    publish(&places[1], 1, Some(1)).await;
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(1), Some(1)]);
}

#[tokio::test]
async fn no_folder_is_swapped_if_the_state_of_one_cannot_be_stored() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places);
    for place in &places {
        publish(place, 1, None).await;
    }
    check(&mut group).await;
    for place in &places {
        publish(place, 2, None).await;
    }
    // A folder in the place of the new state.
    let obstacle = places[1].path("folder/.nuthatch/state.json.new");
    fs::create_dir(&obstacle).expect("a folder");
    assert_eq!(check(&mut group).await.1, 1);
    assert_eq!(values(&places), [Some(1), Some(1)]);
    let known: Vec<_> = group.followers().iter().map(Follower::generation).collect();
    assert_eq!(known, [Some(1), Some(1)]);
    // Followers that start now do not swap the first folder alone.
    drop(group);
    let mut group = self::group(&places);
    assert_eq!(values(&places), [Some(1), Some(1)]);
    fs::remove_dir(&obstacle).expect("removed");
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(2), Some(2)]);
}

#[tokio::test]
async fn a_link_that_is_removed_while_a_group_waits_is_restored() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places).same_metadata("batch");
    for place in &places {
        publish(place, 1, Some(1)).await;
    }
    check(&mut group).await;
    publish(&places[0], 2, Some(2)).await;
    for _ in 0..2 {
        assert!(check(&mut group).await.2.is_some());
        fs::remove_file(places[0].path("folder/users.nut")).expect("removed");
    }
    assert!(check(&mut group).await.2.is_some());
    assert_eq!(values(&places), [Some(1), Some(1)]);
    assert_eq!(group.followers()[0].generation(), Some(1));
}

/// Brings generation 2 of both folders there, and nothing more: they wait for each other.
async fn prepared_twice() -> [Place; 2] {
    let places = [Place::new(), Place::new()];
    for place in &places {
        publish(place, 1, Some(1)).await;
    }
    let mut group = group(&places).same_metadata("batch");
    assert_eq!(check(&mut group).await, (2, 0, None));
    publish(&places[0], 2, Some(2)).await;
    assert!(check(&mut group).await.2.is_some());
    drop(group);
    publish(&places[1], 2, Some(3)).await;
    let mut again = Group::new(places.iter().map(Place::follower).collect());
    again = again.same_metadata("batch");
    assert!(check(&mut again).await.2.is_some());
    places
}

/// Changes the state of a folder to that of a follower that has begun to swap the last generation
/// in.
fn begin(place: &Place) {
    let manifest = fs::read_to_string(place.path("shared/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let path = place.path("folder/.nuthatch/state.json");
    let state = fs::read_to_string(&path).unwrap_or_else(|_| r#"{"serial": 0}"#.to_owned());
    let mut state: serde_json::Value = serde_json::from_str(&state).expect("JSON");
    let generations = manifest["generations"].as_array().expect("generations");
    state["next"] = serde_json::json!({
        "serial": manifest["serial"],
        "generation": generations.last(),
    });
    fs::write(path, state.to_string()).expect("written");
    fs::rename(place.path("shared"), place.path("away")).expect("renamed");
}

/// Makes the link point to the last generation.
fn replace_link(place: &Place) {
    let generations = place.generations();
    let new = generations.last().expect("a generation");
    let link = place.path("folder/users.nut");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(format!(".nuthatch/{new}/users.nut"), link).expect("a link");
}

#[tokio::test]
async fn a_group_that_was_killed_before_the_first_link_keeps_all_old_ones() {
    let places = prepared_twice().await;
    places.iter().for_each(begin);
    let mut group = group(&places);
    assert_eq!(values(&places), [Some(1), Some(1)]);
    assert_eq!(check(&mut group).await.1, 2, "the sources are away");
    assert_eq!(values(&places), [Some(1), Some(1)]);
}

#[tokio::test]
async fn a_group_that_was_killed_between_two_links_replaces_the_others_without_the_sources() {
    for replaced in 0..2 {
        let places = prepared_twice().await;
        places.iter().for_each(begin);
        replace_link(&places[replaced]);
        // A follower that is killed again before it has completed the swap changes nothing.
        drop(places.iter().map(Place::follower).collect::<Vec<_>>());
        let mut killed = group(&places);
        assert_eq!(values(&places), [Some(2), Some(2)]);
        assert_eq!(completed(&mut killed), [Some(2), Some(2)]);
        assert_eq!(completed(&mut killed), [None, None]);
        drop(killed);
        assert_eq!(completed(&mut group(&places)), [None, None]);
        assert_eq!(values(&places), [Some(2), Some(2)]);
    }
}

/// A group whose caller confirms swaps.
fn confirming(places: &[Place; 2]) -> Group {
    let options = || FollowOptions { confirms_swaps: true, ..FollowOptions::default() };
    let followers = places.iter().map(|place| place.follower_with(options()).expect("a follower"));
    Group::new(followers.collect())
}

#[tokio::test]
async fn swaps_that_were_not_confirmed_are_returned_again() {
    let places = [Place::new(), Place::new()];
    for place in &places {
        publish(place, 1, None).await;
    }
    let mut killed = confirming(&places);
    assert_eq!(check(&mut killed).await, (2, 0, None));
    drop(killed);
    let mut killed = confirming(&places);
    assert_eq!(completed(&mut killed), [Some(1), Some(1)]);
    killed.confirm_swap(0).expect("confirmed");
    // The serial number changes, and the generation does not.
    publish(&places[1], 2, None).await;
    roll_back(&places[1].destination(), 1, None, &[]).await.expect("rolled back");
    assert_eq!(check(&mut killed).await, (0, 0, None));
    drop(killed);
    let mut killed = confirming(&places);
    assert_eq!(completed(&mut killed), [None, Some(1)]);
    killed.confirm_swap(1).expect("confirmed");
    drop(killed);
    assert_eq!(completed(&mut confirming(&places)), [None, None]);
}

#[tokio::test]
async fn a_group_that_was_killed_between_two_final_states_returns_both_swaps() {
    for unfinished in 0..2 {
        let places = [Place::new(), Place::new()];
        for place in &places {
            publish(place, 1, None).await;
        }
        assert_eq!(check(&mut confirming(&places)).await, (2, 0, None));
        let path = places[unfinished].path("folder/.nuthatch/state.json");
        fs::write(&path, r#"{"serial": 0}"#).expect("written");
        begin(&places[unfinished]);
        let mut group = confirming(&places);
        assert_eq!(completed(&mut group), [Some(1), Some(1)]);
        group.confirm_swap(1 - unfinished).expect("confirmed");
        drop(group);
        let mut group = confirming(&places);
        let is_completed: Vec<_> = completed(&mut group).iter().map(Option::is_some).collect();
        assert_eq!(is_completed, [unfinished == 0, unfinished == 1]);
    }
}

#[tokio::test]
async fn a_link_that_cannot_be_replaced_holds_the_others() {
    let places = prepared_twice().await;
    let mut group = group(&places);
    // A file of another program is at the path of the first link.
    let (link, file) = (places[0].path("folder/users.nut"), places[0].path("users.nut"));
    fs::remove_file(&link).expect("removed");
    fs::copy(&file, &link).expect("copied");
    assert_eq!(check(&mut group).await.0, 0);
    assert_eq!(places[1].seven(), Some(1));
    fs::remove_file(&link).expect("removed");
    // The link of the second folder cannot be made, which is found after the first one was.
    let blocked = places[1].path("folder/.nuthatch/link.new");
    fs::create_dir(&blocked).expect("a folder");
    // The first folder does not have the current generation, and says that it waits.
    let waits = Some("the folders whose check failed".to_owned());
    assert_eq!(check(&mut group).await, (0, 1, waits));
    assert_eq!(values(&places), [Some(1), Some(1)]);
    fs::remove_dir(&blocked).expect("removed");
    assert_eq!(check(&mut group).await.1, 0);
    assert_eq!(values(&places), [Some(2), Some(2)]);
}

#[tokio::test]
async fn generations_that_were_never_swapped_in_are_removed() {
    let places = [Place::new(), Place::new()];
    for place in &places {
        publish(place, 1, Some(1)).await;
    }
    check(&mut group(&places)).await;
    for batch in 2..8 {
        publish(&places[0], batch, Some(batch.cast_unsigned())).await;
        let mut group = group(&places).same_metadata("batch");
        assert!(check(&mut group).await.2.is_some());
    }
    let generations = places[0].generations();
    assert_eq!(generations.len(), 2, "the one in place and the last one: {generations:?}");
}

/// The first generations of both folders are complete, and wait for each other.
async fn prepared_once() -> [Place; 2] {
    let places = [Place::new(), Place::new()];
    publish(&places[0], 1, Some(1)).await;
    publish(&places[1], 1, Some(2)).await;
    let mut group = group(&places).same_metadata("batch");
    assert!(check(&mut group).await.2.is_some());
    places
}

#[tokio::test]
async fn a_group_that_was_killed_in_its_first_swap_replaces_the_other_link_without_the_sources() {
    for replaced in 0..2 {
        let places = prepared_once().await;
        places.iter().for_each(begin);
        replace_link(&places[replaced]);
        let mut group = group(&places);
        assert_eq!(values(&places), [Some(1), Some(1)]);
        assert_eq!(completed(&mut group), [Some(1), Some(1)]);
        assert_eq!(check(&mut group).await.1, 2, "the sources are away");
        let known: Vec<_> = group.followers().iter().map(Follower::generation).collect();
        assert_eq!(known, [Some(1), Some(1)]);
    }
}

#[tokio::test]
async fn a_first_swap_stores_its_next_generation_before_the_link() {
    let place = Place::new();
    publish(&place, 1, None).await;
    let mut follower = place.follower();
    let blocked = place.path("folder/.nuthatch/link.new");
    fs::create_dir(&blocked).expect("a folder");
    follower.check(|_| {}).await.expect_err("no link can be made");
    drop(follower);
    assert_eq!((place.follower().generation(), place.seven()), (None, None));
    fs::remove_dir(&blocked).expect("removed");
    replace_link(&place);
    fs::rename(place.path("shared"), place.path("away")).expect("renamed");
    assert_eq!(place.follower().generation(), Some(1));
}

/// A follower was killed after the link, and the state says nothing of the generation.
#[tokio::test]
async fn a_generation_that_the_link_points_to_is_not_removed_for_a_newer_one() {
    let places = prepared_once().await;
    replace_link(&places[0]);
    publish(&places[0], 2, Some(3)).await;
    let mut group = group(&places).same_metadata("batch");
    for _ in 0..2 {
        assert!(check(&mut group).await.2.is_some());
        assert_eq!(values(&places), [Some(1), None]);
    }
    publish(&places[1], 2, Some(3)).await;
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(2), Some(2)]);
    assert_eq!(places[0].generations().len(), 1, "it is removed when no link points to it");
}

#[tokio::test]
async fn a_state_that_cannot_be_stored_after_the_links_does_not_remove_what_they_point_to() {
    let places = prepared_twice().await;
    let mut group = group(&places);
    // A swap that is undone has stored what comes next, so the second one first writes at its end.
    let no_link = places[1].path("folder/.nuthatch/link.new");
    fs::create_dir(&no_link).expect("a folder");
    assert_eq!(check(&mut group).await.1, 1);
    fs::remove_dir(&no_link).expect("removed");
    let no_state = places[0].path("folder/.nuthatch/state.json.new");
    fs::create_dir(&no_state).expect("a folder");
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(2), Some(2)]);
    for next in 3..6 {
        for place in &places {
            publish(place, next, None).await;
        }
        let (swapped, failed, _) = check(&mut group).await;
        assert_eq!((swapped, failed), (0, 1), "the next check reports it");
        assert_eq!(values(&places), [Some(2), Some(2)]);
        let known: Vec<_> = group.followers().iter().map(Follower::generation).collect();
        assert_eq!(known, [Some(2), Some(2)]);
    }
    drop(group);
    let mut group = self::group(&places);
    assert_eq!(values(&places), [Some(2), Some(2)]);
    fs::remove_dir(&no_state).expect("removed");
    assert_eq!(check(&mut group).await, (2, 0, None));
    assert_eq!(values(&places), [Some(5), Some(5)]);
}

#[tokio::test]
async fn a_group_that_was_killed_between_two_links_is_restored_if_one_cannot_be_replaced() {
    for (prepared, before) in [(prepared_once().await, None), (prepared_twice().await, Some(1))] {
        let places = prepared;
        places.iter().for_each(begin);
        replace_link(&places[0]);
        let blocked = places[1].path("folder/.nuthatch/link.new");
        fs::create_dir(&blocked).expect("a folder");
        for _ in 0..2 {
            let mut group = group(&places);
            assert_eq!(values(&places), [before, before]);
            assert_eq!(completed(&mut group), [None, None]);
            assert_eq!(check(&mut group).await.1, 2, "the sources are away");
            assert_eq!(values(&places), [before, before]);
        }
        fs::remove_dir(&blocked).expect("removed");
        for place in &places {
            fs::rename(place.path("away"), place.path("shared")).expect("renamed");
        }
        assert_eq!(check(&mut group(&places)).await, (2, 0, None));
        let next = before.map_or(1, |before| before + 1);
        assert_eq!(values(&places), [Some(next), Some(next)]);
    }
}

#[tokio::test]
async fn a_rollback_that_is_taken_back_while_a_group_waits_keeps_the_previous_generation() {
    let places = [Place::new(), Place::new()];
    let mut group = group(&places).same_metadata("batch");
    for batch in 1..=2 {
        for place in &places {
            publish(place, batch, Some(batch.cast_unsigned())).await;
        }
        check(&mut group).await;
    }
    let kept = places[0].generations();
    for generation in [1, 2] {
        roll_back(&places[0].destination(), generation, None, &[]).await.expect("rolled back");
        check(&mut group).await;
        assert_eq!(places[0].generations(), kept, "generation {generation}");
    }
    assert_eq!(values(&places), [Some(2), Some(2)]);
    // And if another generation is prepared instead of it.
    roll_back(&places[0].destination(), 1, None, &[]).await.expect("rolled back");
    check(&mut group).await;
    publish(&places[0], 3, Some(3)).await;
    check(&mut group).await;
    assert!(kept.iter().all(|kept| places[0].generations().contains(kept)));
}
