//! The connection of a node of a cluster to etcd: settings, log and reload. Tests with etcd itself
//! are those of `scripts/test cluster`.

use crate::folder::Folder;
use crate::server::wait_until;
use crate::tls::Certificate;
use rustix::process::Signal;
use std::net::TcpListener;

const SMALL: &[&str] = &["--memory=16MiB", "--resp=127.0.0.1:0", "--admin=off"];

#[test]
fn settings_of_etcd_that_do_not_belong_together_are_named() {
    let folder = Folder::new();
    folder.file("p", "s3cret").mode("p", 0o600);
    let (plain, tls) = ("--cluster=etcd://127.0.0.1:1/x", "--cluster=etcds://etcd-1/x");
    let remote = "--cluster=etcd://127.0.0.1,etcd-1/x";
    for (arguments, expected) in [
        (&["--etcd-ca=ca"][..], "--etcd-ca: expected a cluster, found none; name one with"),
        (&["--etcd-user=me"], "--etcd-user: expected a cluster, found none; name one with"),
        (&[plain, "--etcd-key=k"], "--etcd-key: expected etcds:// in --cluster, which"),
        (&[tls, "--etcd-cert=c"], "--etcd-cert: expected etcd-key too, found none"),
        (&[tls, "--etcd-key=k"], "--etcd-key: expected etcd-cert too, found none"),
        (&[plain, "--etcd-user=me"], "--etcd-user: expected etcd-password-file or etcd-password"),
        (&[plain, "--etcd-password-file=p"], "--etcd-password-file: expected etcd-user too"),
        (
            &[remote, "--etcd-user=me", "--etcd-password-file=p"],
            "--cluster: the password of etcd-user would be sent to etcd-1:2379 unencrypted; \
             expected etcds://, found etcd://; --insecure allows it",
        ),
    ] {
        let run = folder.run_serve(&[SMALL, arguments].concat(), &[]);
        assert_eq!(run.status, Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
    let variable = ("NUTHATCH_ETCD_PASSWORD", "s3cret");
    let both = [SMALL, &[plain, "--etcd-user=me", "--etcd-password-file=p"]].concat();
    let run = folder.run_serve(&both, &[variable]);
    assert!(run.stderr.contains("expected one of etcd-password and etcd-password-file"), "{run:?}");
    let shown = [SMALL, &[remote, "--insecure", "--etcd-user=me", "--show-config"]].concat();
    let run = folder.run_serve(&shown, &[variable]);
    assert!(run.stdout.contains("\netcd-user = \"me\""), "{run:?}");
    assert!(run.stdout.contains("\n# etcd-password = \"(hidden)\""), "{run:?}");
    assert!(!run.stdout.contains("s3cret"), "{run:?}");
    for (arguments, expected) in [
        (&[tls, "--etcd-ca=absent"][..], "absent: expected a certificate chain in PEM"),
        (
            &[plain, "--etcd-user=me", "--etcd-password-file=absent"],
            "absent: expected a file, but there is no such file",
        ),
    ] {
        let run = folder.run_serve(&[SMALL, arguments].concat(), &[]);
        assert_eq!(run.status, Some(3), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
}

/// The node tries to reach etcd five times in a second.
#[test]
fn an_etcd_that_cannot_be_reached_is_logged_once() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let etcd = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let cluster = format!("--cluster=etcd://{etcd}/x");
    let server = folder.serve(&[&cluster], &[]);
    let down = "WARN nuthatch::cluster: the node has no lease in etcd, so requests with keys fail";
    wait_until(down, || server.messages().contains(down));
    let log = server.messages();
    let line = log.lines().find(|line| line.contains("etcd cannot be reached")).expect(&log);
    for part in [
        "WARN nuthatch::cluster: etcd cannot be reached; check that etcd listens there, and that",
        &format!("endpoint=\"{etcd}\""),
        "request=grant of a lease",
        "Connection refused",
    ] {
        assert!(line.contains(part), "{part}: {log}");
    }
    assert_eq!(log.matches("etcd cannot be reached;").count(), 1, "{log}");
    assert!(log.contains("problem=\"etcd cannot be reached\""), "{log}");
}

#[test]
fn sighup_reads_the_certificates_for_etcd_again() {
    let folder = Folder::new();
    let (certificate, other) = (Certificate::new(), Certificate::new());
    folder.file("cert.pem", &certificate.cert).file("key.pem", &certificate.key);
    folder.mode("key.pem", 0o600).file("ca.pem", &other.issuer);
    // A server with TLS, which is none of etcd.
    let arguments = ["--resp=tls:127.0.0.1:0", "--tls-cert=cert.pem", "--tls-key=key.pem"];
    let peer = folder.serve(&arguments, &[]);
    let port = peer.addresses[0].rsplit_once(':').expect("a port").1;
    let cluster = format!("--cluster=etcds://localhost:{port}/x");
    let elsewhere = Folder::new();
    let ca = format!("--etcd-ca={}", folder.text("ca.pem"));
    let server = elsewhere.serve(&[&cluster, &ca, "--log=info"], &[]);
    let logged = |text: &str| wait_until(text, || server.messages().contains(text));
    logged("the TLS handshake with etcd fails; name a PEM file with the certificate of the issuer");
    folder.file("ca.pem", "garbage");
    server.signal(Signal::HUP);
    logged("reload failed");
    folder.file("ca.pem", &certificate.issuer);
    server.signal(Signal::HUP);
    logged("nuthatch::server: reloaded");
    logged("the endpoint is no server of etcd; name an endpoint for clients of etcd");
}
