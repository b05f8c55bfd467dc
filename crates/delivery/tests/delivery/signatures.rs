//! Manifests with signatures.

use crate::place::{Place, check, failure, options};
use nuthatch_delivery::{Error, FollowOptions, PublishOptions, SigningKey, TrustedKey, roll_back};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Creates a pair of keys with OpenSSL. Returns their files.
fn keys(place: &Place, name: &str) -> (PathBuf, PathBuf) {
    let (private, public) =
        (place.path(&format!("{name}.pem")), place.path(&format!("{name}.pub.pem")));
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).output().expect("openssl");
        assert!(output.status.success(), "{output:?}");
    };
    let (private_text, public_text) =
        (private.to_str().expect("UTF-8"), public.to_str().expect("UTF-8"));
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", private_text]);
    openssl(&["pkey", "-in", private_text, "-pubout", "-out", public_text]);
    (private, public)
}

fn key(path: &Path) -> SigningKey {
    SigningKey::read(path).expect("a key")
}

fn signed_by(path: &Path) -> PublishOptions {
    let signing_key = Some(key(path));
    PublishOptions { signing_key, ..options() }
}

fn trusting(keys: &[&PathBuf]) -> FollowOptions {
    let trusted = keys.iter().map(|key| TrustedKey::read(key).expect("a key"));
    FollowOptions { trusted_keys: trusted.collect(), ..FollowOptions::default() }
}

#[tokio::test]
async fn a_follower_with_keys_takes_only_manifests_that_one_of_them_signed() {
    let place = Place::new();
    let (ours, our_public) = keys(&place, "ours");
    let (theirs, their_public) = keys(&place, "theirs");
    assert_eq!(
        SigningKey::read(&ours).expect("a key").trusted_key(),
        TrustedKey::read(&our_public).expect("a key")
    );
    place.publish(1).await;
    let mut follower = place.follower_with(trusting(&[&our_public])).expect("a follower");
    let error = failure(&mut follower).await.to_string();
    assert!(error.ends_with("expected a signature by a trusted key, found none"), "{error}");

    let file = place.build("users.nut", 0, 2);
    place.publish_file(&file, &signed_by(&theirs)).await.expect("published");
    let error = failure(&mut follower).await.to_string();
    assert!(error.ends_with("found one by another key"), "{error}");
    drop(follower);
    let both = trusting(&[&our_public, &their_public]);
    let mut follower = place.follower_with(both).expect("a follower");
    check(&mut follower).await.expect("a generation");

    // Any change of the signed line is found.
    let path = place.path("shared/manifest.json");
    let text = fs::read_to_string(&path).expect("a manifest");
    for (from, to) in [("\"serial\":2", "\"serial\":3"), ("\"entries\":50", "\"entries\":51")] {
        fs::write(&path, text.replacen(from, to, 1)).expect("a manifest");
        assert_eq!(failure(&mut follower).await.code(), "signature");
    }
    assert_eq!(place.seven(), Some(2));
}

/// A signature of ours would vouch for what another program has added.
#[tokio::test]
async fn generations_that_were_not_signed_are_not_kept() {
    let place = Place::new();
    let (ours, _) = keys(&place, "ours");
    place.publish(1).await;
    let error = roll_back(&place.destination(), 1, Some(&key(&ours)), &[]).await;
    assert_eq!(error.expect_err("not signed").code(), "signature");
    // Also if the contents are the same.
    let file = place.build("users.nut", 0, 1);
    let published = place.publish_file(&file, &signed_by(&ours)).await.expect("published");
    assert_eq!((published.generation, &published.removed[..]), (2, &[1][..]));
    assert_eq!(place.objects().len(), 1);
    let again = place.publish_file(&file, &signed_by(&ours)).await.expect("published");
    assert_eq!((again.generation, again.is_unchanged), (2, true));
}

#[tokio::test]
async fn a_key_is_changed_by_trusting_the_one_before() {
    let place = Place::new();
    let (old, old_public) = keys(&place, "old");
    let (new, new_public) = keys(&place, "new");
    let file = place.build("users.nut", 0, 1);
    place.publish_file(&file, &signed_by(&old)).await.expect("published");
    let error = place.publish_file(&file, &signed_by(&new)).await.expect_err("another key");
    assert!(error.to_string().contains("found one by another key; --trust-key"), "{error}");
    let trusted_keys = vec![TrustedKey::read(&old_public).expect("a key")];
    let both = PublishOptions { trusted_keys, ..signed_by(&new) };
    // The contents are the same; only the signature is new.
    let published = place.publish_file(&file, &both).await.expect("published");
    assert_eq!((published.generation, published.is_unchanged), (1, true));
    let mut follower = place.follower_with(trusting(&[&new_public])).expect("a follower");
    check(&mut follower).await.expect("a generation");
}

#[tokio::test]
async fn a_signed_manifest_stays_signed() {
    let place = Place::new();
    let (private, public) = keys(&place, "ours");
    let file = place.build("users.nut", 0, 1);
    place.publish_file(&file, &signed_by(&private)).await.expect("published");
    let file = place.build("users.nut", 0, 2);
    let error = place.publish_file(&file, &options()).await.expect_err("no key");
    assert!(matches!(error, Error::SigningKeyMissing { .. }), "{error}");
    let error = roll_back(&place.destination(), 1, None, &[]).await.expect_err("no key");
    assert!(matches!(error, Error::SigningKeyMissing { .. }), "{error}");
    place.publish_file(&file, &signed_by(&private)).await.expect("published");
    let key = SigningKey::read(&private).expect("a key");
    let trusted = [TrustedKey::read(&public).expect("a key")];
    roll_back(&place.destination(), 1, Some(&key), &trusted).await.expect("rolled back");
    let mut follower = place.follower_with(trusting(&[&public])).expect("a follower");
    check(&mut follower).await.expect("a generation");
    assert_eq!(place.seven(), Some(1));
}

#[test]
fn files_without_a_key_are_errors_that_name_the_command() {
    let place = Place::new();
    let (private, public) = keys(&place, "ours");
    let path = place.path("wrong.pem");
    fs::write(&path, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
        .expect("a key");
    for wrong in [&path, &private] {
        let error = TrustedKey::read(wrong).expect_err("no key").to_string();
        assert!(error.contains("expected an Ed25519 public key in PEM (openssl"), "{error}");
    }
    for wrong in [&path, &public] {
        let error = SigningKey::read(wrong).expect_err("no key").to_string();
        assert!(error.contains("expected an Ed25519 private key in PEM (openssl"), "{error}");
    }
    assert_eq!(SigningKey::read(&place.path("none")).expect_err("no file").code(), "io");
}
