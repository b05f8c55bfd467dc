//! Secrets are sent to the origin only.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::{Access, plain_address};
use std::fs;

const SECRETS: [&str; 5] = ["pa55word", "5ignature", "t0ken", "9uery", "2nd-5ignature"];

fn assert_clean(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} has {secret}: {text}");
    }
}

#[tokio::test]
async fn secrets_are_in_no_error_no_debug_and_no_file() {
    let server = Server::new(noise(3 * BLOCK as usize, 1));
    let basic = "Basic dXNlcjpwYTU1d29yZA==".to_owned();
    server.configure(|behaviour| behaviour.required_header = Some(("authorization".into(), basic)));
    let place = Place::new(quick().max_age(std::time::Duration::from_mins(1)));
    let url = server.url("/a?X-Amz-Signature=5ignature&key=9uery");
    let url = url.replace("http://", "http://user:pa55word@");
    let access = Access::new().header("x-extra", "t0ken");
    let object = place.cache.object_as(&url, &access).await.expect("an object");
    object.bytes(0..2 * BLOCK).await.expect("bytes");
    let first = server.requests()[0].clone();
    assert_eq!(first.target, "/a?X-Amz-Signature=5ignature&key=9uery");
    assert_eq!(first.headers["x-extra"], "t0ken");
    assert_clean("the address", object.address());
    assert_clean("debug", &format!("{object:?} {:?} {access:?}", place.cache));
    for status in [404, 403, 400, 301] {
        server.configure(|behaviour| behaviour.statuses = [status].into());
        let error = object.bytes(2 * BLOCK..3 * BLOCK).await.expect_err("an error");
        assert_clean("an error", &format!("{error} {error:?}"));
    }
    for bad in ["http://user:pa55word@:x/", "s3://t0ken:5ignature@bucket/key", "x://pa55word"] {
        let error = place.cache.object(bad).await.expect_err("no address");
        assert_clean("an error", &format!("{error} {error:?}"));
    }
    for entry in fs::read_dir(place.folder.path()).expect("a folder") {
        let path = entry.expect("a file").path();
        assert_clean("a name", &path.to_string_lossy());
        let bytes = fs::read(&path).expect("a file");
        for secret in SECRETS {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} has {secret}", path.display());
        }
    }
}

#[tokio::test]
async fn another_signature_finds_the_cached_blocks() {
    let server = Server::new(noise(2 * BLOCK as usize, 2));
    let place = Place::new(quick());
    for signature in ["5ignature", "2nd-5ignature"] {
        let url = server.url(&format!("/a?X-Amz-Signature={signature}&X-Amz-Date={signature}"));
        let object = place.cache.object(&url).await.expect("an object");
        object.bytes(0..2 * BLOCK).await.expect("bytes");
        assert_eq!(plain_address(&url).expect("an address"), server.url("/a"));
    }
    assert_eq!(server.ranges().len(), 1);
}

#[tokio::test]
async fn credentials_are_not_sent_to_the_target_of_a_redirect() {
    let body = noise(2 * BLOCK as usize, 3);
    let (server, other) = (Server::new(body.clone()), Server::new(body));
    server.configure(|behaviour| behaviour.redirects_to = Some(other.url("/there")));
    let place = Place::new(quick());
    let access = Access::new().bearer("t0ken").header("x-extra", "9uery");
    let url = server.url("/moved").replace("http://", "http://user:pa55word@");
    place.cache.object_as(&url, &access).await.expect("an object");
    let headers = &other.requests()[0].headers;
    assert!(!headers.contains_key("authorization") && !headers.contains_key("x-extra"));
    assert!(server.requests()[0].headers.contains_key("x-extra"));
}

#[tokio::test]
async fn netrc_has_user_and_password_of_a_host() {
    let server = Server::new(noise(BLOCK as usize, 3));
    let basic = "Basic dXNlcjpwYTU1d29yZA==".to_owned();
    server.configure(|behaviour| behaviour.required_header = Some(("authorization".into(), basic)));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("netrc");
    let url = server.url("/a");
    let open = async |text: &str, access: &Access| {
        fs::write(&file, text).expect("a file");
        let place = Place::new(quick().netrc(Some(file.clone())));
        let opened = place.cache.object_as(&url, access).await;
        assert_clean("debug", &format!("{:?} {opened:?}", place.cache));
        opened.map(drop).map_err(|error| (error.code(), error.to_string()))
    };
    let none = Access::new();
    let good = "machine other.org login user password t0ken\n\
                machine 127.0.0.1 login user password pa55word\n";
    assert_eq!(open(good, &none).await, Ok(()));
    let denied = open("machine other.org login user password pa55word", &none).await;
    assert_eq!(denied.expect_err("another host").0, "denied");
    let both = url.replace("http://", "http://user:pa55word@");
    let place = Place::new(quick().netrc(None));
    let denied = place.cache.object_as(&both, &Access::new().bearer("t0ken")).await;
    assert_eq!(denied.expect_err("a header has precedence over a user").code(), "denied");
    assert_eq!(
        server.requests().last().expect("a request").headers["authorization"],
        "Bearer t0ken"
    );
    let denied = open(good, &Access::new().bearer("t0ken")).await;
    assert_eq!(denied.expect_err("a header has precedence over netrc").0, "denied");
    let (code, text) = open("machine a\npassword b pa55word", &none).await.expect_err("a bad file");
    assert_eq!(code, "setup");
    assert!(text.contains("netrc, line 2: expected machine"), "{text}");
    assert_clean("an error", &text);
    fs::remove_file(&file).expect("a file");
    let place = Place::new(quick().netrc(Some(file.clone())));
    let error = place.cache.object(&url).await.expect_err("no file").to_string();
    assert!(error.contains(file.to_str().expect("a path")), "{error}");
    let place = Place::new(quick().netrc(None));
    assert_eq!(place.cache.object(&url).await.expect_err("no credentials").code(), "denied");
}
