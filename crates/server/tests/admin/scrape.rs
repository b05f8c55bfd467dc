//! Parses the response to `/metrics` as strictly as a scraper can.

use crate::serving::{Resp, get, serve};
use nuthatch_server::Running;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Labels = BTreeMap<String, String>;

/// A metric with its type, its help and its samples.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    help: String,
    unit: String,
    /// The samples, by name and labels.
    pub(crate) samples: BTreeMap<(String, Labels), f64>,
}

/// Returns the families of a text, by their names. Panics if a scraper would refuse the text.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if line == "# EOF" {
            continue;
        }
        if let Some(meta) = line.strip_prefix("# ") {
            let (what, rest) = meta.split_once(' ').expect(line);
            let (name, value) = rest.split_once(' ').expect(line);
            if what == "HELP" {
                assert!(!families.contains_key(name), "{name} occurs twice");
                assert!(!value.is_empty() && !value.contains(['"', '\\']), "{line}");
                name.clone_into(&mut current);
            }
            assert_eq!(name, current, "{line}: samples of a family lie together");
            let family = families.entry(current.clone()).or_default();
            let field = match what {
                "HELP" => &mut family.help,
                "TYPE" => &mut family.kind,
                "UNIT" => &mut family.unit,
                _ => panic!("{line}"),
            };
            assert!(field.is_empty() && family.samples.is_empty(), "{line}");
            value.clone_into(field);
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = families.get_mut(&current).unwrap_or_else(|| panic!("no family: {line}"));
        assert!(name.starts_with(&current), "{name} among those of {current}");
        let earlier = family.samples.insert((name, labels), value);
        assert_eq!(earlier, None, "{line}: there already");
    }
    families
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (id, value) = line.rsplit_once(' ').expect(line);
    let value = value.parse().expect(line);
    let (name, labels) = id
        .split_once('{')
        .map_or((id, ""), |(name, labels)| (name, labels.strip_suffix('}').expect(line)));
    assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
    let labels = labels.split(',').filter(|label| !label.is_empty()).map(|label| {
        let (name, value) = label.split_once('=').expect(line);
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        (name.to_owned(), value.expect(line).to_owned())
    });
    (name.to_owned(), labels.collect(), value)
}

/// Returns the head and the text of a server that has executed a few commands.
fn scraped(accept: &str) -> (String, String) {
    let server = serve(2);
    converse(&server);
    get(&server, "/metrics", accept)
}

fn converse(server: &Running) {
    let mut client = Resp::connect(server);
    for words in ["SET k v", "GET k", "GET nothing", "INCR k", "GET", "FOO", "CLIENT ID"] {
        client.ask(words);
    }
}

#[test]
fn every_family_has_a_help_a_type_and_a_valid_name() {
    for accept in ["text/plain", "application/openmetrics-text"] {
        let (head, body) = scraped(accept);
        assert!(head.contains(&format!("content-type: {accept}; version=")), "{head}");
        let open = accept.contains("open");
        assert_eq!(body.ends_with("\n# EOF\n"), open);
        for (name, family) in parse(&body) {
            let Family { kind, help, unit, samples } = family;
            assert!(!help.is_empty(), "{name}");
            let is_counter = kind == "counter";
            assert_eq!(name.ends_with("_total"), is_counter && !open, "{name}");
            for (sample, _) in samples.keys() {
                assert_eq!(sample.ends_with("_total"), is_counter, "{sample}");
            }
            assert!(["counter", "gauge", "histogram"].contains(&&kind[..]), "{name}: {kind}");
            assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name}: {unit}");
            assert!(kind != "histogram" || name.ends_with("_seconds"), "{name}");
            assert!(name.starts_with("nuthatch_") || name.starts_with("process_"), "{name}");
        }
    }
}

#[test]
fn histograms_are_cumulative_and_end_at_infinity() {
    let (_, body) = scraped("text/plain");
    let families = parse(&body);
    let histograms: Vec<_> = families.iter().filter(|(_, f)| f.kind == "histogram").collect();
    assert_eq!(histograms.len(), 2);
    let mut seen = 0;
    for (name, family) in histograms {
        let series: BTreeSet<Labels> = family
            .samples
            .keys()
            .map(|(_, labels)| labels.clone())
            .map(|mut labels| {
                labels.remove("le");
                labels
            })
            .collect();
        for labels in series {
            let of = |suffix: &str| family.samples[&(format!("{name}{suffix}"), labels.clone())];
            let mut buckets: Vec<(f64, f64)> = family
                .samples
                .iter()
                .filter(|((sample, found), _)| {
                    let mut found = found.clone();
                    sample.ends_with("_bucket") && found.remove("le").is_some() && found == labels
                })
                .map(|((_, found), count)| (found["le"].parse().expect("a number"), *count))
                .collect();
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.len() > 20, "{name} {labels:?}");
            assert!(buckets.windows(2).all(|two| two[0].1 <= two[1].1), "{buckets:?}");
            let last = buckets.last().expect("a bucket");
            assert!(last.0.is_infinite() && (last.1 - of("_count")).abs() < 0.5, "{buckets:?}");
            assert!(of("_sum") > 0.0 || of("_count") < 0.5, "{name} {labels:?}");
            seen += 1;
        }
    }
    // Two threads, and at least four commands.
    assert!(seen >= 6, "{seen}");
}

#[test]
fn all_metrics_exist_before_the_first_request() {
    let server = serve(1);
    let families = parse(&get(&server, "/metrics", "*/*").1);
    let value = |name: &str| families[name].samples.values().copied().collect::<Vec<f64>>();
    assert_eq!(value("nuthatch_connections"), [0.0]);
    assert_eq!(value("nuthatch_misses_total"), [0.0; 3]);
    assert_eq!(value("nuthatch_memory_limit_bytes"), [f64::from(64 << 20)]);
    assert!(value("nuthatch_commands_total").is_empty());
}

#[test]
fn the_parser_rejects_invalid_text() {
    let head = "# HELP a_total A.\n# TYPE a_total counter\n";
    parse(&format!("{head}a_total 1\n"));
    for wrong in [
        "a_total 1\n".to_owned(),
        format!("{head}a_total 1\na_total 1\n"),
        format!("{head}b_total 1\n"),
        format!("{head}a_total 1\n{head}"),
        format!("{head}a_total one\n"),
        format!("{head}a_total 1"),
    ] {
        let caught = std::panic::catch_unwind(|| parse(&wrong));
        assert!(caught.is_err(), "{wrong}");
    }
}
