//! Staged files, and downloads of files of generations.

use crate::place::Place;
use nuthatch_delivery::{Error, StagedFile, Staging, download, generations};
use std::fs;

#[tokio::test]
async fn staged_files_come_back_until_they_are_removed() {
    let place = Place::new();
    let (job, other) = (staging(&place, "job"), staging(&place, "other"));
    let (file, back) = (place.path("file"), place.path("back"));
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    fs::write(&file, &bytes).expect("a file");
    let staged = job.put(&file, "00001.shard").await.expect("staged");
    other.put(&file, "00001.shard").await.expect("staged");
    assert_eq!(staged.bytes, bytes.len() as u64);
    job.get("00001.shard", &staged, &back).await.expect("the file");
    assert!(fs::read(&back).expect("a file") == bytes);

    let wrong = StagedFile { blake3: "0".repeat(64), ..staged.clone() };
    let error = job.get("00001.shard", &wrong, &back).await.expect_err("another hash");
    assert!(matches!(error, Error::Contents { .. }), "{error}");
    job.remove().await.expect("removed");
    job.remove().await.expect("nothing is left to remove");
    let error = job.get("00001.shard", &staged, &back).await.expect_err("removed");
    assert!(error.to_string().contains("staging/job/00001.shard"), "{error}");
    other.get("00001.shard", &staged, &back).await.expect("the file of another job");
    other.remove().await.expect("removed");
    assert!(!place.path("shared").join("staging").exists());
}

#[tokio::test]
async fn names_cannot_leave_the_folder() {
    let place = Place::new();
    for name in ["", "..", "a/b", "../a", ".hidden"] {
        assert!(Staging::new(place.destination(), name).is_err(), "{name:?}");
        let file = place.path("file");
        fs::write(&file, "x").expect("a file");
        assert!(staging(&place, "job").put(&file, name).await.is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn files_of_generations_are_downloaded_and_verified() {
    let place = Place::new();
    place.publish(1).await;
    let manifest = generations(&place.destination(), &[]).await.expect("generations");
    let file = &manifest.current().files[0];
    let to = place.path("back");
    download(&place.destination(), file, &to).await.expect("the file");
    assert_eq!(fs::metadata(&to).expect("a file").len(), file.bytes);
    let object = place.path("shared").join("objects").join(&file.object);
    let mut bytes = fs::read(&object).expect("an object");
    bytes[100] ^= 1;
    fs::write(&object, bytes).expect("damaged");
    let error = download(&place.destination(), file, &to).await.expect_err("other bytes");
    assert!(matches!(error, Error::Contents { .. }), "{error}");
}

fn staging(place: &Place, job: &str) -> Staging {
    Staging::new(place.destination(), job).expect("a name")
}
