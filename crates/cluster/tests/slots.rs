//! Slots of keys are those of Redis Cluster: `testdata/cluster/slots.csv`.

use nuthatch_cluster::slot::slot_of;
use std::path::Path;

#[test]
fn slots_are_those_of_redis() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cluster/slots.csv");
    let text = std::fs::read_to_string(path).expect("vectors");
    let mut count = 0;
    for line in text.lines().skip(1) {
        let (key, slot) = line.rsplit_once(',').expect("a key and a slot");
        assert_eq!(slot_of(key.as_bytes()).to_string(), slot, "{key}");
        count += 1;
    }
    assert!(count > 200, "{count} vectors");
}
