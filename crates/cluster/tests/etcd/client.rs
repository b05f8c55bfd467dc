//! The client, with a real server.

use crate::server::{Servers, connect};
use nuthatch_cluster::etcd::{Etcd, Watch, WatchUpdate};
use nuthatch_cluster::request::{Change, Compare, Failure, Reply, Request, Response, Txn, Write};
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
    let etcd = connect(&servers.options()).await;
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
    servers.etcdctl(&["compact", &newest.to_string()]);
    assert_eq!(Watch::new(etcd.clone(), "/t/", 1).next().await, WatchUpdate::Compacted);
}
