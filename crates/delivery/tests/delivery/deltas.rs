//! Files that are built from an earlier one and the rows that changed.

use crate::place::{Place, check, failure, names, options};
use nuthatch_delivery::{DeltaOptions, FollowOptions, PublishOptions, Retention, roll_back};
use nuthatch_snapshot::{Compression, Snapshot, Value, WriterOptions};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const ENTRIES: u64 = 20_000;

/// Builds a snapshot of one of its versions. From each version to the next one, 1 % of the entries
/// change: most get another value, some another type, some are removed and some added.
fn build(place: &Place, options: &WriterOptions, version: u64) -> PathBuf {
    let path = place.path("users.nut");
    let mut writer = options.create(&path).expect("a writer");
    writer.set_metadata("version", version.to_string().as_bytes()).expect("metadata");
    for user in version * 20..ENTRIES + version * 20 {
        let key = format!("user:{user}.name");
        // The version in which the entry changed last.
        let changed = (0..=version).rev().find(|v| user % 128 == *v).unwrap_or_default();
        let text = format!("A user with the number {}, of version {changed}", user * 7_919);
        let list = [changed as f64, user as f64];
        let value = if user % 7 == 0 { Value::F64List(&list) } else { Value::String(&text) };
        let value = if user % 1_280 == version { Value::I64(1) } else { value };
        writer.insert(key.as_bytes(), value).expect("a row");
    }
    writer.finish().expect("a snapshot");
    path
}

fn plain() -> WriterOptions {
    WriterOptions::new()
}

async fn publish(place: &Place, writer: &WriterOptions, version: u64) -> u64 {
    let file = build(place, writer, version);
    let published = place.publish_file(&file, &options()).await.expect("published");
    assert_eq!(published.delta_failures, [""; 0]);
    published.bytes
}

/// Fails if the folder has other bytes than what was published last.
fn assert_same_bytes(place: &Place) {
    let (published, followed) = (place.path("users.nut"), place.path("folder/users.nut"));
    let read = |path: &Path| fs::read(path).expect("a file");
    assert_eq!(read(&published), read(&followed));
    let snapshot = Snapshot::open(&followed).expect("a snapshot");
    snapshot.verify().expect("a valid snapshot");
    for shard in snapshot.shard_paths() {
        let name = shard.file_name().expect("a name");
        assert_eq!(read(&place.path("").join(name)), read(shard));
    }
}

/// Returns the path of the object of the delta that was published last.
fn last_delta(place: &Place) -> PathBuf {
    let manifest = fs::read_to_string(place.path("shared/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let generations = manifest["generations"].as_array().expect("a list");
    let object = &generations.last().expect("a generation")["files"][0]["delta"]["object"];
    place.path("shared/objects").join(object.as_str().expect("a delta"))
}

#[tokio::test]
async fn of_one_percent_of_changed_rows_at_most_three_percent_of_the_bytes_move() {
    let compressed = plain().compression(Compression::Zstd { level: 3 });
    let other_level = plain().compression(Compression::Zstd { level: 9 });
    let cases = [plain(), plain().seed(7), compressed, other_level, plain().shards(4)];
    for writer in cases {
        let place = Place::new();
        let mut follower = place.follower();
        for version in 0..3 {
            let bytes = publish(&place, &writer, version).await;
            let swapped = check(&mut follower).await.expect("a generation");
            assert_eq!(swapped.delta_failures, [""; 0]);
            assert_same_bytes(&place);
            if version > 0 {
                let moved = swapped.fetched_bytes as f64 / bytes as f64;
                assert!(swapped.built_files > 0 && moved < 0.03, "{moved} in {writer:?}");
            }
        }
        assert_eq!(names(&place.path("folder/.nuthatch/partial")), [""; 0]);
    }
}

#[tokio::test]
async fn a_follower_that_is_several_generations_behind_uses_several_deltas() {
    let place = Place::new();
    let mut follower = place.follower();
    let bytes = publish(&place, &plain(), 0).await;
    check(&mut follower).await.expect("a generation");
    for version in 1..=4 {
        publish(&place, &plain(), version).await;
    }
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!((swapped.built_files, &*swapped.delta_failures), (1, &[][..]));
    assert!(swapped.fetched_bytes < bytes / 8, "{swapped:?}");
    assert_same_bytes(&place);
}

/// Makes the manifest name the delta of the second generation as that of the third one, as an
/// attacker could. Its hash is right.
fn use_delta_of_another_generation(place: &Place) {
    let path = place.path("shared/manifest.json");
    let text = fs::read_to_string(&path).expect("a manifest");
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let file = |number: usize| format!("/generations/{number}/files/0");
    let from = manifest.pointer(&file(0)).expect("a file")["blake3"].clone();
    let other = manifest.pointer(&file(1)).expect("a file")["delta"].clone();
    let last = manifest.pointer_mut(&file(2)).expect("a file");
    last["delta"] = other;
    last["delta"]["from"] = from;
    fs::write(&path, format!("{manifest}\n")).expect("written");
}

#[tokio::test]
async fn a_delta_that_cannot_be_used_is_replaced_by_the_whole_file() {
    type Spoil = fn(&Place);
    let cases: [(Spoil, &str); 7] = [
        (
            |place| {
                let delta = last_delta(place);
                let bytes = fs::read(&delta).expect("a delta");
                fs::write(&delta, &bytes[..bytes.len() / 2]).expect("written");
            },
            "bytes at 0, found",
        ),
        (|place| fs::write(last_delta(place), []).expect("written"), "only 0 bytes long"),
        (use_delta_of_another_generation, "expected a delta to "),
        (|place| fs::remove_file(last_delta(place)).expect("removed"), "does not exist"),
        (
            |place| {
                let delta = last_delta(place);
                let mut bytes = fs::read(&delta).expect("a delta");
                *bytes.last_mut().expect("bytes") ^= 1;
                fs::write(&delta, bytes).expect("written");
            },
            "hash",
        ),
        (
            |place| {
                let base = place.path("folder/users.nut");
                let mut bytes = fs::read(&base).expect("a file");
                let at = bytes.len() - 1_000;
                bytes[at] ^= 1;
                fs::write(&base, bytes).expect("written");
            },
            "checksum",
        ),
        (|place| fs::write(place.path("folder/users.nut"), [0; 9]).expect("written"), ""),
    ];
    for (spoil, reason) in cases {
        let place = Place::new();
        let mut follower = place.follower();
        publish(&place, &plain(), 0).await;
        check(&mut follower).await.expect("a generation");
        let mut bytes = publish(&place, &plain(), 1).await;
        if reason == "expected a delta to " {
            bytes = publish(&place, &plain(), 2).await;
        }
        spoil(&place);
        let swapped = check(&mut follower).await.expect("a generation");
        assert!(swapped.fetched_bytes >= bytes, "{swapped:?}");
        assert_eq!(swapped.built_files, 0);
        match &*swapped.delta_failures {
            [] => assert_eq!(reason, "", "no failure"),
            [failure] => assert!(!reason.is_empty() && failure.contains(reason), "{failure}"),
            failures => panic!("{failures:?}"),
        }
        assert_same_bytes(&place);
        assert_eq!(names(&place.path("folder/.nuthatch/partial")), [""; 0]);
    }
}

#[tokio::test]
async fn files_above_the_limit_of_the_follower_are_fetched() {
    let place = Place::new();
    let deltas = DeltaOptions { limit: 1 << 20, ..DeltaOptions::default() };
    let options = FollowOptions { deltas, ..FollowOptions::default() };
    let mut follower = place.follower_with(options).expect("a follower");
    publish(&place, &plain(), 0).await;
    check(&mut follower).await.expect("a generation");
    let bytes = publish(&place, &plain(), 1).await;
    assert!(bytes > 1 << 20);
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!((swapped.fetched_bytes, swapped.built_files), (bytes, 0));
}

#[tokio::test]
async fn there_is_no_delta_above_the_limit_of_the_publisher_or_for_too_many_changes() {
    let place = Place::new();
    publish(&place, &plain(), 0).await;
    let file = build(&place, &plain(), 1);
    let limited = PublishOptions { delta_limit: 1 << 20, ..options() };
    let published = place.publish_file(&file, &limited).await.expect("published");
    assert_eq!((published.delta_bytes, published.delta_failures.len()), (0, 0));
    assert_eq!(published.uploaded_bytes, published.bytes);
    let file = place.path("users.nut");
    let mut writer = plain().create(&file).expect("a writer");
    for user in 0..ENTRIES {
        // Hashes, which cannot be compressed.
        let value = blake3::hash(&user.to_le_bytes());
        writer.insert(&user.to_le_bytes(), Value::Bytes(value.as_bytes())).expect("a row");
    }
    writer.finish().expect("a snapshot");
    let published = place.publish_file(&file, &options()).await.expect("published");
    assert_eq!((published.delta_bytes, published.delta_failures.len()), (0, 0));
    assert!(names(&place.path("")).iter().all(|name| !name.starts_with(".nuthatch-delta")));
}

#[tokio::test]
async fn deltas_leave_with_their_generation() {
    let place = Place::new();
    let retention = Retention { max_generations: 2, max_age: None };
    for version in 0..4 {
        let file = build(&place, &plain(), version);
        let options = PublishOptions { retention, ..options() };
        place.publish_file(&file, &options).await.expect("published");
    }
    // Two generations with a file and a delta each.
    assert_eq!(place.objects().len(), 4);
}

#[tokio::test]
async fn contents_that_come_back_need_no_upload_and_a_rollback_no_delta() {
    let place = Place::new();
    let mut follower = place.follower();
    for version in [0, 1] {
        publish(&place, &plain(), version).await;
        check(&mut follower).await.expect("a generation");
    }
    roll_back(&place.destination(), 1, None, &[]).await.expect("rolled back");
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!((swapped.generation, swapped.fetched_bytes), (1, 0), "the folder has it");
    // The current generation is the first one now, so the delta leads from it.
    publish(&place, &plain(), 2).await;
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!((swapped.generation, swapped.built_files), (4, 1));
    assert_same_bytes(&place);
}

/// The object of the old contents is used again, but a delta to it is new.
#[tokio::test]
async fn contents_that_were_published_before_have_a_delta_from_the_current_generation() {
    let place = Place::new();
    let mut follower = place.follower_with(FollowOptions { previous: 0, ..Default::default() });
    let follower = follower.as_mut().expect("a follower");
    for version in [0, 1] {
        publish(&place, &plain(), version).await;
        check(follower).await.expect("a generation");
    }
    let file = build(&place, &plain(), 0);
    let published = place.publish_file(&file, &options()).await.expect("published");
    assert_eq!(published.uploaded_bytes, published.delta_bytes);
    let swapped = check(follower).await.expect("a generation");
    assert_eq!((swapped.generation, swapped.built_files), (3, 1));
    assert_same_bytes(&place);
}

#[tokio::test]
async fn the_delta_of_a_private_snapshot_is_private() {
    let place = Place::new();
    for version in [0, 1] {
        let file = build(&place, &plain(), version);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
        place.publish_file(&file, &options()).await.expect("published");
    }
    let mode = fs::metadata(last_delta(&place)).expect("a delta").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_delta_with_a_wrong_hash_in_the_manifest_is_refused() {
    let place = Place::new();
    let mut follower = place.follower();
    publish(&place, &plain(), 0).await;
    check(&mut follower).await.expect("a generation");
    publish(&place, &plain(), 1).await;
    let path = place.path("shared/manifest.json");
    let manifest = fs::read_to_string(&path).expect("a manifest");
    let spoiled = manifest.replace("\"from\":\"", "\"from\":\"../../");
    fs::write(&path, spoiled).expect("written");
    assert_eq!(failure(&mut follower).await.code(), "manifest");
}

#[tokio::test]
async fn a_build_that_is_no_longer_needed_leaves_nothing_behind() {
    let place = Place::new();
    let mut follower = place.follower();
    publish(&place, &plain(), 0).await;
    check(&mut follower).await.expect("a generation");
    publish(&place, &plain(), 1).await;
    // The future is dropped while the thread builds.
    {
        let mut checking = Box::pin(follower.check(|_| {}));
        let polled = futures_util::poll!(&mut checking);
        assert!(polled.is_pending());
    }
    let swapped = check(&mut follower).await.expect("a generation");
    assert_eq!(swapped.generation, 2);
    assert_same_bytes(&place);
}
