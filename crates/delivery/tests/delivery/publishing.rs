//! Publications, and what they leave at the destination.

use crate::place::{Place, check, now, options};
use nuthatch_delivery::{
    Destination, Error, PublishOptions, Retention, check_serial, generations, publish, roll_back,
};
use std::cell::Cell;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[tokio::test]
async fn each_publication_is_a_generation_with_its_entries_and_its_metadata() {
    let place = Place::new();
    let error = generations(&place.destination(), &[]).await.expect_err("nothing");
    assert_eq!(error.code(), "nothing-published");
    for (seven, generation) in [(1, 1), (2, 2)] {
        let published = place.publish(seven).await;
        assert_eq!((published.generation, published.is_unchanged), (generation, false));
        assert_eq!(published.bytes, published.uploaded_bytes);
    }
    let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
    assert_eq!((manifest.current, manifest.serial, manifest.generations.len()), (2, 2, 2));
    let current = manifest.current();
    assert_eq!((current.name(), current.entries, current.files.len()), ("users.nut", 50, 1));
    let age = now().duration_since(current.created).expect("the past");
    assert!(age < Duration::from_mins(10), "{age:?}");
}

#[tokio::test]
async fn the_same_contents_are_published_once() {
    let place = Place::new();
    place.publish(1).await;
    let again = place.publish(1).await;
    assert_eq!((again.generation, again.is_unchanged, again.uploaded_bytes), (1, true, 0));
    place.publish(2).await;
    // Contents of a generation that is not the current one are not uploaded again.
    let back = place.publish(1).await;
    assert_eq!((back.generation, back.uploaded_bytes), (3, 0));
    assert_eq!(place.objects().len(), 2);
}

#[tokio::test]
async fn of_a_set_only_the_changed_shards_are_uploaded() {
    let place = Place::new();
    let options = options();
    let first = place.build("set/users.nut", 8, 1);
    place.publish_file(&first, &options).await.expect("published");
    let second = place.build("set/users.nut", 8, 2);
    let published = place.publish_file(&second, &options).await.expect("published");
    let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
    let files = &manifest.current().files;
    assert_eq!(files.len(), 9);
    assert_eq!(place.objects().len(), 9 + 2, "a shard and the manifest of the set");
    assert!(published.uploaded_bytes * 3 < published.bytes, "{published:?}");
}

#[tokio::test]
async fn the_name_is_that_of_the_first_file_unless_it_is_set() {
    let place = Place::new();
    let named = |name: &str| PublishOptions { name: Some(name.to_owned()), ..options() };
    let name = async |options: PublishOptions, file: &str, seven| {
        let file = place.build(file, 0, seven);
        place.publish_file(&file, &options).await.expect("published");
        let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
        manifest.current().name().to_owned()
    };
    assert_eq!(name(options(), "monday.nut", 1).await, "monday.nut");
    assert_eq!(name(options(), "tuesday.nut", 2).await, "monday.nut");
    assert_eq!(name(named("users.nut"), "tuesday.nut", 3).await, "users.nut");
    let file = place.build("users.nut", 0, 4);
    for wrong in ["", ".users", "a/b", "..", "a\nb"] {
        let error = place.publish_file(&file, &named(wrong)).await.expect_err("an error");
        assert!(error.to_string().contains("expected a name in UTF-8"), "{error}");
    }
}

#[tokio::test]
async fn a_publisher_that_is_overtaken_changes_nothing() {
    let place = Place::new();
    place.publish(1).await;
    let (slow, fast) = (place.build("slow.nut", 0, 2), place.build("fast.nut", 0, 3));
    let overtaken = Cell::new(false);
    let (options, destination) = (options(), place.destination());
    let result = publish(&destination, &slow, &options, |_| {
        if !overtaken.replace(true) {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                    let published = runtime.block_on(place.publish_file(&fast, &options));
                    assert_eq!(published.expect("published").generation, 2);
                });
            });
        }
    });
    let error = result.await.expect_err("a conflict");
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    let manifest = generations(&destination, &[]).await.expect("a manifest");
    assert_eq!((manifest.current, manifest.generations.len()), (2, 2));
    // The next one succeeds.
    let published = place.publish_file(&slow, &options).await.expect("published");
    assert_eq!(published.generation, 3);
}

#[tokio::test]
async fn a_publisher_that_expects_another_manifest_changes_nothing() {
    let place = Place::new();
    let expecting = |serial| PublishOptions { expected_serial: Some(serial), ..options() };
    let (first, second) = (place.build("first.nut", 0, 1), place.build("second.nut", 0, 2));
    for (serial, file, expected) in [
        (1, &first, None),
        (0, &first, Some(1)),
        (0, &second, None),
        // The same contents do not help: the current generation was another one meanwhile.
        (2, &first, None),
        (1, &second, Some(2)),
    ] {
        match (place.publish_file(file, &expecting(serial)).await, expected) {
            (Ok(published), Some(expected)) => assert_eq!(published.generation, expected),
            (Err(Error::Conflict { .. }), None) => {}
            (result, _) => panic!("serial {serial}: {result:?}"),
        }
    }
    let destination = place.destination();
    check_serial(&destination, 2).await.expect("the same manifest");
    roll_back(&destination, 1, None, &[]).await.expect("rolled back");
    let error = check_serial(&destination, 2).await.expect_err("a conflict");
    assert_eq!(error.code(), "conflict");
    assert_eq!(place.objects().len(), 2);
}

#[tokio::test]
async fn generations_beyond_the_retention_are_removed_with_their_objects() {
    let place = Place::new();
    let keep = |generations, age| PublishOptions {
        retention: Retention { max_generations: generations, max_age: age },
        ..options()
    };
    for seven in 1..=3 {
        place.publish(seven).await;
    }
    let file = place.build("users.nut", 0, 4);
    let published = place.publish_file(&file, &keep(2, None)).await.expect("published");
    assert_eq!(published.removed, [1, 2]);
    assert_eq!(place.objects().len(), 2);
    // The current generation stays, whatever its age.
    roll_back(&place.destination(), 3, None, &[]).await.expect("rolled back");
    let file = place.build("users.nut", 0, 5);
    let all = keep(10, Some(Duration::ZERO));
    let published = place.publish_file(&file, &all).await.expect("published");
    assert_eq!((published.generation, published.removed.len()), (6, 2));
    assert_eq!(place.objects().len(), 1);
}

#[tokio::test]
async fn objects_of_failed_uploads_are_removed_after_a_day() {
    let place = Place::new();
    place.publish(1).await;
    let now = now();
    // The last publication has the contents of the one before.
    for seven in [2, 2] {
        // The clock of another machine is two days ahead.
        let future = now + Duration::from_hours(48);
        let [old, young] = [25, 23].map(|hours| now - Duration::from_hours(hours));
        for (name, time) in [("old", old), ("old#1", old), ("young", young), ("future", future)] {
            let path = place.path("shared/objects").join(name);
            File::create(&path).and_then(|file| file.set_modified(time)).expect("a file");
        }
        place.publish(seven).await;
        let objects = place.objects();
        assert_eq!(objects.len(), 4, "{objects:?}");
        assert!(["future", "young"].iter().all(|name| objects.contains(&(*name).to_owned())));
    }
}

#[tokio::test]
async fn a_rollback_makes_a_listed_generation_the_current_one() {
    let place = Place::new();
    for seven in 1..=3 {
        place.publish(seven).await;
    }
    let destination = place.destination();
    let manifest = roll_back(&destination, 1, None, &[]).await.expect("rolled back");
    assert_eq!((manifest.current, manifest.serial), (1, 4));
    let error = roll_back(&destination, 9, None, &[]).await.expect_err("no such generation");
    assert!(error.to_string().ends_with("there is no generation 9; there are: 1, 2, 3"), "{error}");
    assert_eq!(place.publish(4).await.generation, 5, "the serial number of its manifest");
}

#[tokio::test]
async fn a_private_snapshot_stays_private_in_a_folder() {
    let place = Place::new();
    let mut before = Vec::new();
    for (seven, mode) in [(1, 0o600), (2, 0o640)] {
        let file = place.build("users.nut", 0, seven);
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
        place.publish_file(&file, &options()).await.expect("published");
        let new = place.objects().into_iter().find(|name| !before.contains(name));
        before = place.objects();
        let object = place.path("shared/objects").join(new.expect("an object"));
        let found = std::fs::metadata(object).expect("an object").permissions().mode();
        assert_eq!(found & 0o777 & !mode, 0, "{found:o}");
    }
}

#[tokio::test]
async fn relative_and_linked_folders_are_the_same_destination() {
    let place = Place::new();
    place.publish(1).await;
    std::os::unix::fs::symlink(place.path("shared"), place.path("link")).expect("a link");
    for path in ["link", "shared/", "nothing/../shared", "shared/objects/.."] {
        if path.starts_with("nothing") {
            std::fs::create_dir_all(place.path("nothing")).expect("a folder");
        }
        let path = place.path("").join(path);
        let destination = Destination::open(path.to_str().expect("UTF-8")).expect("a folder");
        let manifest = generations(&destination, &[]).await.expect("a manifest");
        assert_eq!(manifest.current, 1, "{}", path.display());
    }
}

#[tokio::test]
async fn the_current_generation_counts_among_those_that_are_kept() {
    let place = Place::new();
    for seven in 1..=3 {
        place.publish(seven).await;
    }
    roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    let file = place.build("users.nut", 0, 1);
    let retention = Retention { max_generations: 1, max_age: None };
    let one = PublishOptions { retention, ..options() };
    let published = place.publish_file(&file, &one).await.expect("published");
    assert_eq!((published.is_unchanged, &published.removed[..]), (true, &[2, 3][..]));
    // Its number was never used, though 2 and 3 are gone.
    assert_eq!(place.publish(4).await.generation, 6);
}

/// The manifest lists objects that another program has removed or cut off.
#[tokio::test]
async fn objects_that_are_lost_are_uploaded_again() {
    let place = Place::new();
    for seven in 1..=2 {
        place.publish(seven).await;
    }
    for name in place.objects() {
        let path = place.path("shared/objects").join(name);
        File::options().write(true).open(path).expect("an object").set_len(7).expect("cut off");
    }
    let published = place.publish(2).await;
    assert_eq!((published.generation, published.is_unchanged), (3, false));
    assert_eq!(published.uploaded_bytes, published.bytes);
    check(&mut place.follower()).await.expect("a generation");
    // The earlier generation with the same contents has them again, too.
    roll_back(&place.destination(), 2, None, &[]).await.expect("rolled back");
    check(&mut place.follower()).await.expect("a generation");
    assert_eq!(place.seven(), Some(2));
    assert!(place.publish(2).await.is_unchanged);
}

#[tokio::test]
async fn a_damaged_snapshot_is_not_published() {
    let place = Place::new();
    let file = place.build("users.nut", 0, 1);
    let mut bytes = std::fs::read(&file).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("a file");
    let error = place.publish_file(&file, &options()).await.expect_err("damage");
    assert_eq!(error.code(), "snapshot");
    assert!(!place.path("shared").exists());
}

/// Its metadata can be as private as the snapshot.
#[tokio::test]
async fn a_manifest_has_at_most_the_permissions_of_the_snapshot() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let file = place.build("users.nut", 0, 1);
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
    };
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    place.publish_file(&file, &options()).await.expect("published");
    let manifest = place.path("shared/manifest.json");
    assert_eq!(mode(&manifest), 0o600);
    // A rollback keeps them.
    let file = place.build("users.nut", 0, 2);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    place.publish_file(&file, &options()).await.expect("published");
    nuthatch_delivery::roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    assert_eq!(mode(&manifest), 0o640);
}

#[tokio::test]
async fn what_killed_publishers_leave_is_removed_by_the_next_publication() {
    let place = Place::new();
    let file = place.build("users.nut", 0, 1);
    place.publish_file(&file, &options()).await.expect("published");
    let (manifest, scratch) =
        (place.path("shared/manifest.json#00ff"), place.path(".nuthatch-delta-left"));
    std::fs::write(&manifest, "half").expect("a file");
    std::fs::create_dir(&scratch).expect("a folder");
    std::fs::write(scratch.join("lock"), "").expect("a file");
    // Unchanged contents, and no delta.
    let options = nuthatch_delivery::PublishOptions { delta_limit: 0, ..options() };
    place.publish_file(&file, &options).await.expect("published");
    assert!(!scratch.exists());
    place.build("users.nut", 0, 2);
    place.publish_file(&file, &options).await.expect("published");
    assert!(!manifest.exists());
}

#[tokio::test]
async fn a_damaged_object_of_the_right_length_is_uploaded_again() {
    let place = Place::new();
    let file = place.build("set/users.nut", 8, 1);
    place.publish_file(&file, &options()).await.expect("published");
    let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
    let damaged = &manifest.current().files[4];
    let object = place.path("shared/objects").join(&damaged.object);
    let mut bytes = std::fs::read(&object).expect("an object");
    bytes[100] ^= 1;
    std::fs::write(&object, bytes).expect("damaged");

    // Nothing is read beyond the limit.
    let unread = PublishOptions { read_back_limit: 0, ..options() };
    let trusted = place.publish_file(&file, &unread).await.expect("published");
    assert!(trusted.is_unchanged, "{trusted:?}");
    let repaired = place.publish_file(&file, &options()).await.expect("published");
    assert_eq!((repaired.generation, repaired.uploaded_bytes), (2, damaged.bytes));
    assert!(!object.exists(), "all generations use the new object");
    assert!(check(&mut place.follower()).await.is_some());
    roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    assert!(check(&mut place.follower()).await.is_some());
}

#[tokio::test]
async fn publications_of_the_same_contents_read_other_objects_each_time() {
    let place = Place::new();
    let file = place.build("set/users.nut", 4, 1);
    place.publish_file(&file, &options()).await.expect("published");
    let manifest = generations(&place.destination(), &[]).await.expect("a manifest");
    let shards = &manifest.current().files[1..];
    let limit = shards.iter().map(|shard| shard.bytes).max().expect("shards");
    let limited = PublishOptions { read_back_limit: limit, ..options() };
    for shard in shards {
        let object = place.path("shared/objects").join(&shard.object);
        let mut bytes = std::fs::read(&object).expect("an object");
        bytes[100] ^= 1;
        std::fs::write(&object, &bytes).expect("damaged");
        // Each publication reads one of the files. That 200 do not read this one happens once in
        // 10^19 runs.
        let mut is_repaired = false;
        for _ in 0..200 {
            let published = place.publish_file(&file, &limited).await.expect("published");
            is_repaired |= !published.is_unchanged;
            if is_repaired {
                break;
            }
        }
        assert!(is_repaired, "{}", shard.name);
    }
}
