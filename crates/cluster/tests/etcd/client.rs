//! The client, with a real server.

use crate::server::{Servers, connect};
use nuthatch_cluster::etcd::{Etcd, EtcdTls, Watch, WatchUpdate};
use nuthatch_cluster::request::{Change, Compare, Failure, Reply, Request, Response, Txn, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(10);

async fn execute(etcd: &Etcd, request: Request) -> Response {
    etcd.execute(&request, DEADLINE).await.expect("a response")
}

async fn put(etcd: &Etcd, key: &str, lease: i64, compares: Vec<Compare>) -> Result<bool, Failure> {
    let writes = vec![Write::Put { key: key.into(), value: "v".into(), lease }];
    let request = Request::Commit(Txn { compares, writes });
    let response = etcd.execute(&request, DEADLINE).await?;
    Ok(response.reply == Reply::Committed { succeeded: true })
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_conditions_are_those_of_etcd() {
    let servers = Servers::start(1, &[]);
    let etcd = connect(servers.options()).await;
    let granted = execute(&etcd, Request::Grant { ttl_s: 60 }).await;
    let Reply::Granted { lease, ttl_s: 60 } = granted.reply else { panic!("{granted:?}") };
    assert!(granted.term > 0);
    let absent = |key: &str| vec![Compare::Absent(key.into())];
    assert_eq!(put(&etcd, "/t/a", lease, absent("/t/a")).await, Ok(true));
    assert_eq!(put(&etcd, "/t/a", lease, absent("/t/a")).await, Ok(false));
    let of_lease = vec![Compare::Lease("/t/a".into(), lease)];
    assert_eq!(put(&etcd, "/t/b", 0, of_lease).await, Ok(true));
    let of_other = vec![Compare::Lease("/t/a".into(), lease + 1)];
    assert_eq!(put(&etcd, "/t/b", 0, of_other).await, Ok(false));
    let never = vec![Compare::Revision("/t/c".into(), 0)];
    assert_eq!(put(&etcd, "/t/c", 0, never.clone()).await, Ok(true));
    assert_eq!(put(&etcd, "/t/c", 0, never).await, Ok(false));
    assert_eq!(put(&etcd, "/t/d", 12345, Vec::new()).await, Err(Failure::LeaseAbsent));
    let read = execute(&etcd, Request::ReadPrefix("/t/".into())).await;
    let Reply::Read(keys) = &read.reply else { panic!("{read:?}") };
    let found: Vec<(&str, i64)> = keys.iter().map(|key| (key.key.as_str(), key.lease)).collect();
    assert_eq!(found, [("/t/a", lease), ("/t/b", 0), ("/t/c", 0)]);
    assert_eq!(keys.iter().map(|key| key.revision).max(), Some(read.revision));
    let kept = execute(&etcd, Request::KeepAlive { lease }).await;
    assert_eq!(kept.reply, Reply::KeptAlive { ttl_s: 60 });
    assert_eq!(kept.term, read.term);
    let rest = etcd.time_to_live(lease, DEADLINE).await.expect("a response");
    assert!(rest.is_some_and(|rest| rest > 0 && rest <= 60), "{rest:?}");
    execute(&etcd, Request::Revoke { lease }).await;
    assert_eq!(etcd.time_to_live(lease, DEADLINE).await, Ok(None));
    let kept = execute(&etcd, Request::KeepAlive { lease }).await;
    assert_eq!(kept.reply, Reply::KeptAlive { ttl_s: 0 });
    let read = execute(&etcd, Request::Read("/t/a".into())).await;
    assert_eq!(read.reply, Reply::Read(Vec::new()));
    watches(&etcd, &servers).await;
}

/// Checks that a watch reports what happened before it, and a compaction.
async fn watches(etcd: &Arc<Etcd>, servers: &Servers) {
    let mut watch = Watch::new(etcd.clone(), "/t/", 1);
    let mut seen = Vec::new();
    while seen.len() < 4 {
        match watch.next().await {
            WatchUpdate::Changes { changes, .. } => seen.extend(changes),
            WatchUpdate::Compacted => panic!("compacted"),
        }
    }
    assert!(matches!(&seen[0], Change::Put(key) if key.key == "/t/a"));
    assert!(
        matches!(&seen[3], Change::Deleted { key, revision } if key == "/t/a" && *revision > 0)
    );
    let newest = execute(etcd, Request::Read("/t/b".into())).await.revision;
    etcdctl(servers, &["compact", &newest.to_string()]);
    assert_eq!(Watch::new(etcd.clone(), "/t/", 1).next().await, WatchUpdate::Compacted);
}

fn etcdctl(servers: &Servers, arguments: &[&str]) {
    let options = format!("{:?}", servers.options());
    let endpoint = options.split('"').nth(1).expect("an endpoint").to_owned();
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", &endpoint]).args(arguments);
    let output = command.output().expect("etcdctl is installed");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_have_a_token() {
    let servers = Servers::start(1, &[]);
    connect(servers.options()).await;
    etcdctl(&servers, &["user", "add", "root:a5ecret"]);
    etcdctl(&servers, &["user", "grant-role", "root", "root"]);
    etcdctl(&servers, &["auth", "enable"]);
    let without = Etcd::new(servers.options()).expect("options");
    let failure = put(&without, "/t/a", 0, Vec::new()).await.expect_err("no user");
    assert!(matches!(&failure, Failure::Unknown(text) if text.contains("user name is empty")));
    let file = servers.folder().join("user");
    std::fs::write(&file, "root:a5ecret\n").expect("a file");
    let options = servers.options().credentials(&file).expect("credentials");
    let etcd = connect(options).await;
    assert_eq!(put(&etcd, "/t/a", 0, Vec::new()).await, Ok(true));
    let mut watch = Watch::new(etcd.clone(), "/t/", 1);
    assert!(matches!(watch.next().await, WatchUpdate::Changes { .. }));
    let granted = execute(&etcd, Request::Grant { ttl_s: 60 }).await;
    let Reply::Granted { lease, .. } = granted.reply else { panic!("{granted:?}") };
    let kept = execute(&etcd, Request::KeepAlive { lease }).await;
    assert_eq!(kept.reply, Reply::KeptAlive { ttl_s: 60 });
    std::fs::write(&file, "root:wrong\n").expect("a file");
    let options = servers.options().credentials(&file).expect("credentials");
    let wrong = Etcd::new(options).expect("options");
    let failure = put(&wrong, "/t/a", 0, Vec::new()).await.expect_err("another password");
    assert!(!format!("{failure:?}").contains("wrong"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_clients_have_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = vec!["127.0.0.1".to_owned()];
    let mut params = rcgen::CertificateParams::new(names).expect("names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).expect("a certificate");
    let issuer = rcgen::Issuer::new(params, &key);
    let names = vec!["127.0.0.1".to_owned()];
    let own_key = rcgen::KeyPair::generate().expect("a key");
    let leaf = rcgen::CertificateParams::new(names).expect("names");
    let leaf = leaf.signed_by(&own_key, &issuer).expect("a certificate");
    for (name, text) in [("ca", ca.pem()), ("cert", leaf.pem()), ("key", own_key.serialize_pem())] {
        std::fs::write(path(name), text).expect("a file");
    }
    let arguments = [
        format!("--cert-file={}", path("cert")),
        format!("--key-file={}", path("key")),
        format!("--trusted-ca-file={}", path("ca")),
        "--client-cert-auth".to_owned(),
    ];
    let servers = Servers::start(1, &arguments);
    let tls = EtcdTls::open(path("ca").as_ref()).expect("a certificate");
    let with = tls.clone().identity(path("cert").as_ref(), path("key").as_ref()).expect("a key");
    let etcd = connect(servers.options().tls(with)).await;
    assert_eq!(put(&etcd, "/t/a", 0, Vec::new()).await, Ok(true));
    let without = Etcd::new(servers.options().tls(tls)).expect("options");
    assert!(put(&without, "/t/a", 0, Vec::new()).await.is_err());
}
