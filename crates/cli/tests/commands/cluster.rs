//! `nuthatch cluster` with a node that has no etcd. `crates/server/clients/cluster` has tests with
//! etcd.

use crate::folder::{Folder, Run};
use crate::store_remote::certificates;
use std::net::TcpListener;

/// Runs `nuthatch cluster` for the node at this address.
fn run(folder: &Folder, words: &[&str], server: &str, options: &[&str]) -> Run {
    folder.run(&[&["cluster"], words, &["--server", server], options].concat())
}

#[test]
fn a_node_is_asked_with_tls_and_a_login() {
    let folder = Folder::new();
    certificates(&folder, "one");
    folder.file("password", "sesame\n").mode("password", 0o600);
    // No etcd listens there.
    let options = ["--cluster=etcd://127.0.0.1:1/cache", "--resp=tls:127.0.0.1:0"];
    let access = ["--tls-cert=cert.pem", "--tls-key=key.pem", "--password-file=password"];
    let server = folder.serve(&[&options[..], &access].concat(), &[]);
    let port = server.addresses[0].rsplit(':').next().expect("a port");
    let server = format!("localhost:{port}");
    let all = ["--tls", "--tls-ca=one.ca", "--password-file=password"];
    let status = run(&folder, &["status"], &server, &all);
    assert_eq!(status.status, Some(1), "{status:?}");
    let expected = "0 nodes; of 16,384 slots, 0 have an owner and 0 are served\n";
    assert!(status.stdout.starts_with(expected), "{status:?}");
    let problem = "problem: the node at --server has no lease: check that it reaches etcd\n";
    assert!(status.stdout.contains(problem), "{status:?}");
    let json = run(&folder, &["status", "--json"], &server, &all).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["slots"]["total"], &json["nodes"]), (&16_384.into(), &serde_json::json!([])));
    let join = run(&folder, &["join", "cache-1:1"], &server, &all);
    assert_eq!(join.status, Some(3), "{join:?}");
    assert!(join.stderr.contains("--server knows no nodes: it has just started, or"), "{join:?}");
    for (options, expected) in [
        (&all[..2], "NOAUTH Authentication required.; give the password with --password-file"),
        (&all[2..], ": connect with --tls"),
        (&["--tls", "--password-file=password"], "invalid peer certificate"),
        (&["--tls", "--tls-ca=absent.ca"], "absent.ca: expected a certificate chain in PEM"),
    ] {
        let mut command =
            folder.command(&[&["cluster", "status", "--server", &server], options].concat());
        command.env("SSL_CERT_FILE", folder.path("cert.pem")).env("SSL_CERT_DIR", "");
        let status = Run::of(command, b"");
        assert_eq!(status.status, Some(3), "{options:?}: {status:?}");
        assert!(status.stderr.contains(expected), "{options:?}: {status:?}");
    }
    let status = run(&folder, &["status", "--user=me"], &server, &all[..2]);
    assert_eq!(
        (status.status, &status.stderr[..]),
        (Some(2), "nuthatch: --user: expected --password-file too, found none\n")
    );
}

#[test]
fn an_address_without_a_port_is_refused() {
    for server in ["cache-1", ":6379", "cache-1:redis"] {
        let status = run(&Folder::new(), &["status"], server, &[]);
        assert_eq!(status.status, Some(2), "{status:?}");
        assert!(status.stderr.contains("expected HOST:PORT, such as cache-1:6379"), "{status:?}");
    }
}

#[test]
fn a_server_without_a_cluster_and_a_closed_port_are_errors() {
    let folder = Folder::new();
    let server = folder.serve(&[], &[]);
    let status = run(&folder, &["status"], &server.addresses[0], &[]);
    assert_eq!(status.status, Some(3), "{status:?}");
    let expected =
        "cluster support disabled; expected a node of a cluster: start it with --cluster";
    assert!(status.stderr.contains(expected), "{status:?}");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.expect("a free port").to_string();
    let status = run(&folder, &["rebalance"], &free, &[]);
    assert_eq!(status.status, Some(3), "{status:?}");
    assert!(
        status.stderr.starts_with(&format!("nuthatch: nothing listens at {free}")),
        "{status:?}"
    );
}
