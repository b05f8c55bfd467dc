//! What describes this process, and the time.

use nuthatch_clock::{Clock, SystemClock};
use opentelemetry::{Key, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the instrumentation scope.
pub(super) const SCOPE: &str = "nuthatch";

/// Returns what describes this process: the attributes of the environment, and otherwise our own.
pub(super) fn resource(service: &str) -> Resource {
    let detected = Resource::builder().build();
    let has = |name: &'static str| detected.get(&Key::new(name)).is_some();
    let name = detected.get(&Key::new("service.name"));
    let is_unknown = name.is_none_or(|name| name.as_str().starts_with("unknown_service"));
    let mut attributes = Vec::new();
    if is_unknown {
        attributes.push(KeyValue::new("service.name", service.to_owned()));
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    for (name, value) in [("service.version", version), ("service.instance.id", instance_id())] {
        if !has(name) {
            attributes.push(KeyValue::new(name, value));
        }
    }
    Resource::builder().with_attributes(attributes).build()
}

/// Returns a random name of this process, in the form of a UUID of version 4.
fn instance_id() -> String {
    let random = u128::from_le_bytes(RandomIdGenerator::default().new_trace_id().to_bytes());
    let version = random & !(0xf << 76) | 4 << 76;
    let digits = format!("{:032x}", version & !(3 << 62) | 2 << 62);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// Returns the time of the system's clock, in whole milliseconds.
pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(SystemClock.now_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processes_differ_and_are_uuids() {
        let (one, other) = (instance_id(), instance_id());
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"), "{one}");
        assert!("89ab".contains(&one[19..20]), "{one}");
    }
}
