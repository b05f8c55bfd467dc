//! Object stores, read through the crate `object_store` with settings from the environment.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::{Error, plain_address};
use std::process::Command;

/// The environment variable with the address that the child reads.
const ADDRESS: &str = "NUTHATCH_TEST_STORE";

/// The child process: reads an object of a store, and prints the result.
#[test]
fn child_of_a_store() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let place = Place::new(quick());
    let object = place.cache.object_blocking(&address).map(|object| {
        assert_eq!(object.object().address(), plain_address(&address).expect("an address"));
        assert!(object.object().key().is_some(), "the object is cached");
        let mut all = vec![0; object.object().len() as usize];
        object.read_at(0, &mut all).map(|len| (len, all))
    });
    let first = |bytes: &[u8]| bytes.iter().take(4).map(u8::to_string).collect::<Vec<_>>();
    match object.and_then(|read| read) {
        Ok((len, all)) => println!("\nread {len} {}", first(&all).join(",")),
        Err(error) => println!("\nfailed {} {error} {error:?}", error.code()),
    }
    for odd in [format!("{address}/"), format!("{address}//b"), format!("{address}/../b")] {
        let error =
            place.cache.object_blocking(&odd).expect_err("a name that the library would change");
        assert!(matches!(error, Error::Address { .. }), "{error}");
    }
    println!("debug {:?}", place.cache);
}

/// Returns the output of a child that reads an address. `ORIGIN` in variables is the origin.
fn output(server: &Server, address: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "stores::child_of_a_store", "--nocapture"]).env(ADDRESS, address);
    for (name, value) in variables {
        command.env(name, value.replace("ORIGIN", &server.url("")));
    }
    let output = command.output().expect("the child");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("5ecret"), "{text}");
    text
}

/// Starts an origin that responds as a store does, with a tag and a time of modification.
fn store(body: &[u8]) -> Server {
    let server = Server::new(body.to_vec());
    server.configure(|behaviour| behaviour.modified = Some("Sun, 06 Nov 1994 08:49:37 GMT".into()));
    server
}

const S3: &[(&str, &str)] = &[
    ("AWS_ENDPOINT_URL", "ORIGIN"),
    ("AWS_REGION", "eu-central-1"),
    ("AWS_ACCESS_KEY_ID", "some5ecretid"),
    ("AWS_SECRET_ACCESS_KEY", "some5ecretkey"),
];
const GOOGLE: &[(&str, &str)] = &[("GOOGLE_BASE_URL", "ORIGIN"), ("GOOGLE_SKIP_SIGNATURE", "true")];
const AZURE: &[(&str, &str)] = &[
    ("AZURE_ENDPOINT", "ORIGIN"),
    ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
    ("AZURE_STORAGE_ACCOUNT_KEY", "NWVjcmV0"),
    ("AZURE_ALLOW_HTTP", "true"),
];

#[test]
fn objects_of_stores_are_read() {
    let body = noise(5 * BLOCK as usize + 7, 1);
    let expected = format!("read {} {},{},{},{}", body.len(), body[0], body[1], body[2], body[3]);
    let stores = [("s3://bucket", S3), ("gs://bucket", GOOGLE), ("az://bucket", AZURE)];
    for (bucket, variables) in stores {
        let server = store(&body);
        let text = output(&server, &format!("{bucket}/a key"), variables);
        assert!(text.contains(&expected), "{bucket}: {text}");
        let requests = server.requests();
        assert_eq!(requests[0].method, "HEAD", "{bucket}");
        assert!(requests[0].target.ends_with("bucket/a%20key"), "{bucket}: {}", requests[0].target);
        let ranges = server.ranges();
        assert_eq!(ranges, std::slice::from_ref(&(0..body.len() as u64)), "{bucket}");
        assert_eq!(requests[1].headers["if-match"], "\"one\"", "{bucket}");
        assert_eq!(requests[1].headers.contains_key("authorization"), variables != GOOGLE);
    }
}

#[test]
fn weak_tags_are_not_sent_in_if_match() {
    let server = store(&noise(BLOCK as usize, 4));
    server.configure(|behaviour| {
        behaviour.etag = Some("W/\"one\"".into());
        behaviour.s3_version = Some("7".into());
    });
    let text = output(&server, "s3://bucket/key", S3);
    assert!(text.contains("read 4096"), "{text}");
    assert!(!server.requests()[1].headers.contains_key("if-match"));
}

#[test]
fn missing_settings_of_a_store_are_a_setup_error() {
    let server = store(&[]);
    let text = output(&server, "az://bucket/key", &[("AZURE_ENDPOINT", "ORIGIN")]);
    assert!(text.contains("failed setup cannot set up a store: az://bucket: "), "{text}");
    assert!(server.requests().is_empty());
}

#[test]
fn faults_of_stores_have_different_codes() {
    let body = noise(2 * BLOCK as usize, 2);
    let cases: [(&[u16], &str); 6] = [
        (&[503, 200, 500, 429], "read 8192"),
        (&[404], "failed not-found"),
        (&[403], "failed denied"),
        (&[200, 412], "failed changed"),
        (&[200, 400], "failed status"),
        (&[503; 4], "failed status"),
    ];
    for (statuses, expected) in cases {
        let server = store(&body);
        server.configure(|behaviour| behaviour.statuses = statuses.iter().copied().collect());
        let text = output(&server, "s3://bucket/key", S3);
        assert!(text.contains(expected), "{statuses:?}: {text}");
    }
    let server = store(&body);
    server.configure(|behaviour| behaviour.cuts = [5000, 10].into());
    assert!(output(&server, "s3://bucket/key", S3).contains("read 8192"));
    assert_eq!(server.ranges(), [0..8192, 5000..8192, 5010..8192]);
    let server = store(&body);
    let changed = (1, std::sync::Arc::new(noise(2 * BLOCK as usize, 3)), "\"two\"".to_owned());
    server.configure(|behaviour| {
        behaviour.cuts = [5000].into();
        behaviour.changes_after = Some(changed);
        behaviour.ignores_conditions = true;
    });
    assert!(output(&server, "s3://bucket/key", S3).contains("failed changed"));
    let nobody = [S3, &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]].concat();
    let text = output(&server, "s3://bucket/key", &nobody);
    assert!(text.contains("failed unreachable"), "{text}");
}
