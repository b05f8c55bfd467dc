//! Damage at the destination and in the folder: the folder keeps its generation.

use crate::place::{Place, check, failure, names, options};
use nuthatch_delivery::{Error, FollowOptions, roll_back};
use std::fs;
use std::path::Path;

#[tokio::test]
async fn an_object_with_other_bytes_is_refused_until_it_is_repaired() {
    let place = Place::new();
    let mut follower = place.follower();
    place.publish(1).await;
    check(&mut follower).await.expect("a generation");
    let before = place.objects();
    place.publish(2).await;
    let new = place.objects().into_iter().find(|name| !before.contains(name)).expect("an object");
    let object = place.path("shared/objects").join(new);
    let good = fs::read(&object).expect("an object");
    for at in [0, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(&object, bad).expect("an object");
        let error = failure(&mut follower).await;
        assert!(matches!(error, Error::Contents { .. }), "{error}");
        assert_eq!((place.seven(), follower.generation()), (Some(1), Some(1)));
    }
    for bad in [&good[..good.len() - 1], b""] {
        fs::write(&object, bad).expect("an object");
        assert_eq!(failure(&mut follower).await.code(), "store");
        assert_eq!(place.seven(), Some(1));
    }
    fs::remove_file(&object).expect("removed");
    let error = failure(&mut follower).await;
    assert!(error.to_string().ends_with("read: the object does not exist"), "{error}");
    fs::write(&object, good).expect("an object");
    check(&mut follower).await.expect("a generation");
    assert_eq!(place.seven(), Some(2));
}

#[tokio::test]
async fn a_partial_file_is_continued_if_its_bytes_are_right() {
    let place = Place::new();
    let published = place.publish(1).await;
    let bytes = fs::read(place.path("users.nut")).expect("a file");
    let hash = blake3::hash(&bytes).to_hex();
    let partial = place.path("folder/.nuthatch/partial").join(hash.as_str());
    let half = bytes.len() / 2;
    let too_long = [&bytes[..], b"more"].concat();
    for (found, fetched) in [(&bytes[..half], half), (&bytes, 0), (&too_long, bytes.len())] {
        let _ = fs::remove_dir_all(place.path("folder"));
        let mut follower = place.follower();
        fs::write(&partial, found).expect("a partial file");
        let swapped = check(&mut follower).await.expect("a generation");
        assert_eq!(swapped.fetched_bytes, fetched as u64);
        assert_eq!(place.seven(), Some(1));
    }
    // Wrong bytes are found by the hash, and fetched again.
    let _ = fs::remove_dir_all(place.path("folder"));
    let mut follower = place.follower();
    fs::write(&partial, vec![0; half]).expect("a partial file");
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!(swapped.fetched_bytes, published.bytes);
}

/// Flips a bit in the middle of a file, as a failing disk does.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).expect("a file");
}

#[tokio::test]
async fn damaged_local_files_are_not_reused() {
    let place = Place::new();
    let mut follower = place.follower();
    for seven in 1..=2 {
        let file = place.build("set/users.nut", 4, seven);
        place.publish_file(&file, &options()).await.expect("published");
        if seven == 2 {
            let generation = place.path("folder/.nuthatch").join(&place.generations()[0]);
            for name in names(&generation) {
                damage(&generation.join(name));
            }
        }
        check(&mut follower).await.expect("a generation");
        assert_eq!(place.seven(), Some(seven));
    }
    // The same for a generation that is still in the folder.
    let first = place.generations().into_iter().find(|name| name.starts_with("1-"));
    damage(&place.path("folder/.nuthatch").join(first.expect("a folder")).join("users.nut"));
    roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    check(&mut follower).await.expect("a generation");
    assert_eq!(place.seven(), Some(1));
}

/// A fleet may get generations of a later version before it is upgraded.
#[tokio::test]
async fn files_that_cannot_be_opened_are_not_fetched_again() {
    let place = Place::new();
    place.publish(1).await;
    let bytes = b"a snapshot of a later version";
    let hash = blake3::hash(bytes).to_hex();
    let text = fs::read_to_string(place.path("shared/manifest.json")).expect("a manifest");
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let file = &mut manifest["generations"][0]["files"][0];
    file["bytes"] = bytes.len().into();
    file["blake3"] = hash.as_str().into();
    file["object"] = "later".into();
    let object = place.path("shared/objects/later");
    fs::write(&object, bytes).expect("an object");
    fs::write(place.path("shared/manifest.json"), format!("{manifest}\n")).expect("a manifest");
    let mut follower = place.follower();
    assert_eq!(failure(&mut follower).await.code(), "snapshot");
    // The object is not read again: that would be another failure.
    fs::remove_file(&object).expect("removed");
    assert_eq!(failure(&mut follower).await.code(), "snapshot");
}

#[tokio::test]
async fn partial_files_of_other_generations_are_removed() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    let folder = place.path("folder/.nuthatch/partial");
    fs::write(folder.join("0".repeat(64)), "old").expect("a partial file");
    check(&mut follower).await.expect("a generation");
    assert_eq!(names(&folder), [""; 0]);
}

#[tokio::test]
async fn a_manifest_that_contradicts_the_format_is_refused() {
    let place = Place::new();
    place.publish(1).await;
    let path = place.path("shared/manifest.json");
    let good = fs::read_to_string(&path).expect("a manifest");
    let hash = good.split("\"blake3\":\"").nth(1).expect("a hash")[..64].to_owned();
    for (from, to, expected) in [
        ("{\"format\":1", "{\"format\":2", "expected format 1, found format 2"),
        ("\"current\":1", "\"current\":7", "expected the current generation in the list"),
        ("\"users.nut\"", "\"../users.nut\"", "expected a name of a file without a folder"),
        ("\"users.nut\"", "\"/etc/passwd\"", "expected a name of a file without a folder"),
        ("\"users.nut\"", "\".nuthatch\"", "expected a name of a file without a folder"),
        ("\"object\":\"", "\"object\":\"../", "expected a name of an object without a folder"),
        (&hash, &hash[1..], "expected a BLAKE3 hash of 64 digits"),
        ("\"id\":1", "\"id\":-1", "expected a manifest of generations"),
        ("\"id\":1", "\"id\":0", "expected numbers from 1 to 2^53 - 1, found 0"),
        ("\"serial\":1", "\"serial\":18446744073709551615", "expected numbers from 1 to"),
        (&hash, &hash.to_uppercase(), "expected a BLAKE3 hash of 64 digits in lower case"),
        ("\n", "", "expected a complete line"),
        ("\n", "\nmore\n", "expected a signature in line 2"),
        ("\"files\":[", "\"files\":[],\"old\":[", "expected 1 to 65,537 files, found 0 files"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        fs::write(&path, bad).expect("a manifest");
        let error = failure(&mut place.follower()).await;
        assert!(error.to_string().contains(expected), "{from}: {error}");
        assert_eq!(error.code(), "manifest");
        assert_eq!(names(&place.path("folder")), [".nuthatch"]);
        // A publisher does not replace what it does not understand.
        let file = place.path("users.nut");
        let published = place.publish_file(&file, &options()).await;
        assert_eq!(published.expect_err("an error").code(), "manifest");
    }
    fs::write(&path, [0xff, b'\n']).expect("a manifest");
    assert!(failure(&mut place.follower()).await.to_string().contains("expected UTF-8"));
}

#[tokio::test]
async fn files_that_are_no_snapshot_are_not_swapped_in() {
    let place = Place::new();
    place.publish(1).await;
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    // A publisher of another program: hash and length hold.
    let bytes = b"no snapshot";
    let hash = blake3::hash(bytes).to_hex();
    let text = fs::read_to_string(place.path("shared/manifest.json")).expect("a manifest");
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    manifest["serial"] = 2.into();
    let file = &mut manifest["generations"][0]["files"][0];
    file["bytes"] = bytes.len().into();
    file["blake3"] = hash.as_str().into();
    file["object"] = "other".into();
    fs::write(place.path("shared/objects/other"), bytes).expect("an object");
    fs::write(place.path("shared/manifest.json"), format!("{manifest}\n")).expect("a manifest");
    assert_eq!(failure(&mut follower).await.code(), "snapshot");
    assert_eq!(place.seven(), Some(1));
}

#[tokio::test]
async fn a_damaged_state_says_what_to_do() {
    let place = Place::new();
    place.publish(1).await;
    check(&mut place.follower()).await.expect("a generation");
    fs::write(place.path("folder/.nuthatch/state.json"), "{").expect("a state");
    let error = place.follower_with(FollowOptions::default()).expect_err("damage").to_string();
    assert!(error.contains("remove the file to fetch everything again"), "{error}");
}

/// A state with the name of a file elsewhere must not make the follower replace that file.
#[tokio::test]
async fn a_state_that_names_files_elsewhere_is_refused() {
    let place = Place::new();
    place.publish(1).await;
    check(&mut place.follower()).await.expect("a generation");
    let path = place.path("folder/.nuthatch/state.json");
    let state = fs::read_to_string(&path).expect("a state");
    let hostile = state.replacen("\"users.nut\"", "\"../users.nut\"", 1);
    assert_ne!(hostile, state);
    fs::write(&path, hostile).expect("a state");
    let error = place.follower_with(FollowOptions::default()).expect_err("a name elsewhere");
    assert!(error.to_string().contains("a name of a file without a folder"), "{error}");
}

/// Opening a pipe waits for a writer: publishers and followers would wait without a word.
#[tokio::test]
async fn a_pipe_in_place_of_the_manifest_is_an_error() {
    let place = Place::new();
    place.publish(1).await;
    let manifest = place.path("shared/manifest.json");
    fs::remove_file(&manifest).expect("a manifest");
    rustix::fs::mkfifoat(rustix::fs::CWD, &manifest, 0o600.into()).expect("a pipe");
    let mut follower = place.follower();
    for error in [
        place.publish_file(&place.path("users.nut"), &options()).await.expect_err("a pipe"),
        follower.check(|_| {}).await.expect_err("a pipe"),
    ] {
        let text = error.to_string();
        assert!(text.contains("manifest.json: expected a regular file"), "{text}");
    }
}

#[tokio::test]
async fn a_pipe_in_place_of_an_object_is_an_error() {
    let place = Place::new();
    place.publish(1).await;
    let object = place.objects().remove(0);
    let path = place.path("shared/objects").join(&object);
    fs::remove_file(&path).expect("an object");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).expect("a pipe");
    let error = place.follower().check(|_| {}).await.expect_err("a pipe").to_string();
    assert!(error.contains(&format!("{object}: expected a regular file")), "{error}");
    // A publisher replaces it.
    place.publish_file(&place.path("users.nut"), &options()).await.expect("a generation");
    check(&mut place.follower()).await.expect("a generation");
}

#[tokio::test]
async fn a_pipe_in_place_of_the_lock_is_an_error() {
    let place = Place::new();
    place.publish(1).await;
    let lock = place.path("shared/.lock");
    fs::remove_file(&lock).expect("a lock file");
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, 0o600.into()).expect("a pipe");
    let file = place.build("users.nut", 1, 2);
    let error = place.publish_file(&file, &options()).await.expect_err("a pipe").to_string();
    assert!(error.contains(".lock: expected a regular file"), "{error}");
}

#[tokio::test]
async fn the_name_of_a_shard_is_refused_before_anything_is_uploaded() {
    let place = Place::new();
    let file = place.build("set/users.nut", 2, 1);
    let shard = names(&place.path("set")).into_iter().find(|name| name.contains(".shard"));
    let with_name = nuthatch_delivery::PublishOptions { name: shard, ..options() };
    let error = place.publish_file(&file, &with_name).await.expect_err("the name of a shard");
    assert!(error.to_string().contains("another name than those of its shards"), "{error}");
    assert!(!place.path("shared").exists());
    place.publish_file(&file, &options()).await.expect("published");
}
