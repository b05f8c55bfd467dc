//! Shards that tasks upload, and the publication of their set.

use crate::place::{Place, check, now, options};
use nuthatch_delivery::{
    Error, PublishOptions, Published, Result, ShardUploadOptions, ShardUploads, UploadedShard,
    generations,
};
use nuthatch_snapshot::{Value, WriterOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SHARDS: u32 = 8;
const OPTIONS: ShardUploadOptions =
    ShardUploadOptions { shards: SHARDS as usize, delta_limit: 1 << 30, delta_memory: 64 << 20 };

/// Builds the shards that have the keys, as a task does. The value of key 7 is `seven`.
fn build_shards(place: &Place, folder: &str, keys: i64, seven: i64) -> Vec<PathBuf> {
    let folder = place.path(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let mut writer = WriterOptions::new().shards(SHARDS).create(folder.join("users.nut"));
    let writer_ref = writer.as_mut().expect("a writer");
    for key in 0..keys {
        let value = if key == 7 { seven } else { key };
        writer_ref.insert(key.to_string().as_bytes(), Value::I64(value)).expect("a row");
    }
    let built = writer.expect("a writer").finish_shards().expect("shards");
    built.into_iter().map(|shard| shard.path).collect()
}

fn uploads(place: &Place, job: &str) -> ShardUploads {
    ShardUploads::new(place.destination(), job).expect("a name")
}

/// Makes the set of uploaded shards, and publishes it.
async fn publish(place: &Place, job: &str, shards: &[UploadedShard]) -> Result<Published> {
    publish_with(place, (job, shards), &options()).await
}

async fn publish_with(
    place: &Place,
    (job, shards): (&str, &[UploadedShard]),
    options: &PublishOptions,
) -> Result<Published> {
    let folder = place.path(&format!("driver-{job}"));
    fs::create_dir_all(&folder).expect("a folder");
    let uploads = uploads(place, job);
    let mut paths = Vec::new();
    for shard in shards {
        paths.push(uploads.fetch_header(shard, &folder).await?);
    }
    let path = folder.join("users.nut");
    WriterOptions::new().shards(SHARDS).join_shards(&path, &paths, &[])?;
    uploads.publish(&path, shards, options, |_| {}).await
}

fn objects_of(place: &Place, job: &str) -> usize {
    let suffix = format!("-job-{job}");
    place.objects().iter().filter(|name| name.ends_with(&suffix)).count()
}

#[tokio::test]
async fn a_set_of_uploaded_shards_is_that_of_one_build() {
    let place = Place::new();
    let files = build_shards(&place, "task", 50, 1);
    let shards = uploads(&place, "a").upload(&files, OPTIONS).await.expect("uploaded");
    let published = publish(&place, "a", &shards).await.expect("published");
    assert_eq!((published.generation, published.uploaded_bytes), (1, published.bytes));
    let mut follower = place.follower();
    check(&mut follower).await.expect("a generation");
    assert_eq!(place.seven(), Some(1));
    // The same set from `publish` is no new generation.
    let file = place.build("one/users.nut", SHARDS, 1);
    let again = place.publish_file(&file, &options()).await.expect("published");
    assert!(again.is_unchanged, "{again:?}");
    uploads(&place, "a").remove().await.expect("removed");
    assert_eq!(objects_of(&place, "a"), files.len(), "a generation names them");
}

#[tokio::test]
async fn shards_of_earlier_generations_are_not_uploaded_again_and_changed_ones_have_deltas() {
    let place = Place::new();
    let first = build_shards(&place, "first", 40_000, 1);
    let shards = uploads(&place, "a").upload(&first, OPTIONS).await.expect("uploaded");
    publish(&place, "a", &shards).await.expect("published");
    let second = build_shards(&place, "second", 40_000, 2);
    let shards = uploads(&place, "b").upload(&second, OPTIONS).await.expect("uploaded");
    assert_eq!(shards.iter().filter(|shard| !shard.is_reused).count(), 1);
    let published = publish(&place, "b", &shards).await.expect("published");
    assert!(published.delta_bytes > 0 && published.delta_bytes * 10 < published.bytes);
    assert_eq!(objects_of(&place, "b"), 2, "the shard and its delta");
}

#[tokio::test]
async fn attempts_that_are_repeated_or_run_twice_leave_one_object_of_a_shard() {
    let place = Place::new();
    let (one, two) = (build_shards(&place, "one", 50, 1), build_shards(&place, "two", 50, 1));
    let (first, second) = (uploads(&place, "a"), uploads(&place, "a"));
    let (a, b) = tokio::join!(first.upload(&one, OPTIONS), second.upload(&two, OPTIONS));
    let (a, b) = (a.expect("uploaded"), b.expect("uploaded"));
    assert_eq!(a, b);
    assert_eq!(place.objects().len(), one.len());
    publish(&place, "a", &a).await.expect("published");
    // An attempt that ends after the job adds no object either.
    first.upload(&one, OPTIONS).await.expect("uploaded");
    assert_eq!(objects_of(&place, "a"), one.len());
}

#[tokio::test]
async fn a_job_that_fails_leaves_no_shard_and_removes_no_other() {
    let place = Place::new();
    place.publish(1).await;
    let kept = place.objects();
    let files = build_shards(&place, "task", 50, 2);
    uploads(&place, "other-job-a").upload(&files[..1], OPTIONS).await.expect("uploaded");
    uploads(&place, "a").upload(&files, OPTIONS).await.expect("uploaded");
    let unfinished = format!("{}-job-a#0123456789abcdef", "0".repeat(64));
    fs::write(place.path("shared/objects").join(unfinished), "x").expect("a file");
    uploads(&place, "a").remove().await.expect("removed");
    assert_eq!(objects_of(&place, "other-job-a"), 1);
    uploads(&place, "other-job-a").remove().await.expect("removed");
    assert_eq!(place.objects(), kept);
}

#[tokio::test]
async fn shards_of_a_job_whose_driver_was_killed_are_removed_by_a_publication_after_a_day() {
    let place = Place::new();
    place.publish(1).await;
    let files = build_shards(&place, "task", 50, 2);
    for (job, hours) in [("old", 25), ("young", 23)] {
        let shards = uploads(&place, job).upload(&files, OPTIONS).await.expect("uploaded");
        assert_eq!(objects_of(&place, job), shards.len());
        for shard in shards {
            let object = fs::File::open(place.path("shared/objects").join(shard.object));
            let time = now() - Duration::from_hours(hours);
            object.and_then(|object| object.set_modified(time)).expect("a time");
        }
    }
    place.publish(3).await;
    assert_eq!((objects_of(&place, "old"), objects_of(&place, "young")), (0, files.len()));
}

#[tokio::test]
async fn a_shard_that_was_lost_or_cut_after_its_upload_is_not_published() {
    for is_lost in [true, false] {
        let place = Place::new();
        let files = build_shards(&place, "task", 50, 1);
        let shards = uploads(&place, "a").upload(&files, OPTIONS).await.expect("uploaded");
        let object = place.path("shared/objects").join(&shards[3].object);
        let error = if is_lost {
            fs::remove_file(&object).expect("removed");
            publish(&place, "a", &shards).await.expect_err("an error")
        } else {
            cut(&object);
            publish(&place, "a", &shards).await.expect_err("an error")
        };
        assert!(matches!(error, Error::Contents { .. }), "{error}");
        assert!(error.to_string().contains(&shards[3].object), "{error}");
        let none = generations(&place.destination(), &[]).await.expect_err("nothing");
        assert_eq!(none.code(), "nothing-published");
    }
}

#[tokio::test]
async fn a_shard_that_a_task_has_found_damaged_is_replaced_by_the_one_that_it_has_uploaded() {
    for seven in [1, 2] {
        let place = Place::new();
        let files = build_shards(&place, "task", 50, 1);
        let shards = uploads(&place, "a").upload(&files, OPTIONS).await.expect("uploaded");
        publish(&place, "a", &shards).await.expect("published");
        let objects = place.path("shared/objects");
        for shard in &shards {
            let mut bytes = fs::read(objects.join(&shard.object)).expect("an object");
            bytes[600] ^= 1;
            fs::write(objects.join(&shard.object), bytes).expect("damaged");
        }
        let files = build_shards(&place, "again", 50, seven);
        let again = uploads(&place, "b").upload(&files, OPTIONS).await.expect("uploaded");
        assert!(again.iter().all(|shard| !shard.is_reused));
        // The driver does not read the objects.
        let options = PublishOptions { read_back_limit: 0, ..options() };
        publish_with(&place, ("b", &again), &options).await.expect("published");
        uploads(&place, "b").remove().await.expect("removed");
        check(&mut place.follower()).await.expect("a generation");
        assert_eq!(place.seven(), Some(seven));
    }
}

#[tokio::test]
async fn a_reused_shard_that_another_publisher_drops_meanwhile_is_not_published() {
    let place = Place::new();
    let files = build_shards(&place, "task", 50, 1);
    let shards = uploads(&place, "a").upload(&files, OPTIONS).await.expect("uploaded");
    publish(&place, "a", &shards).await.expect("published");
    let reused = uploads(&place, "b").upload(&files, OPTIONS).await.expect("reused");
    assert!(reused.iter().all(|shard| shard.is_reused));
    // The other publisher has replaced the manifest, and has not yet removed the objects.
    let objects = place.path("shared/objects");
    fs::rename(&objects, place.path("aside")).expect("set aside");
    fs::remove_file(place.path("shared/manifest.json")).expect("removed");
    place.publish(3).await;
    for entry in fs::read_dir(place.path("aside")).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::rename(entry.path(), objects.join(entry.file_name())).expect("moved");
    }
    let error = publish(&place, "b", &reused).await.expect_err("an error");
    assert!(error.to_string().contains("another publisher has removed from"), "{error}");
}

#[test]
fn jobs_have_names_of_files() {
    let place = Place::new();
    for name in ["", "..", "a/b", ".hidden", &"a".repeat(161)] {
        assert!(ShardUploads::new(place.destination(), name).is_err(), "{name:?}");
    }
}

/// Removes the last byte of a file.
fn cut(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("a file");
    file.set_len(file.metadata().expect("a file").len() - 1).expect("cut");
}
