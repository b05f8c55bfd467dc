//! Jobs that read only what changed.

use crate::place::Place;
use nuthatch_populate::{Error, Job, Observer, Progress, run};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn job(more: &str) -> String {
    format!(
        "output = \"a.nut\"\n{more}\n[[source]]\nfrom = \"sqlite:a.db\"\n\
         query = \"select id, v, w, changed from t\"\nkey = \"{{id}}.{{column}}\"\n\
         values = [\"v\", \"w\"]\nsince = \"changed\"\n"
    )
}

const TABLE: &str = "
    create table t(id integer primary key, v text, w text, changed text);
    insert into t values (1, 'a', 'x', '2026-01-01'), (2, 'b', 'y', '2026-01-02');
";

#[test]
fn changed_rows_are_merged_with_the_last_generation() {
    let place = Place::new();
    place.sqlite(TABLE);
    let report = place.job(&job("")).report();
    assert_eq!((&report["incremental"], &report["entries"]), (&false.into(), &4.into()));
    // A row that became NULL, a new one, and one whose column did not grow with its change.
    place.sqlite(
        "update t set w = null, changed = '2026-01-03' where id = 2;
         insert into t values (3, 'c', 'z', '2026-01-04');
         update t set v = 'unmarked' where id = 1;",
    );
    let report = place.job(&job("")).report();
    assert_eq!((&report["incremental"], &report["sources"][0]["rows"]), (&true.into(), &2.into()));
    let expected = [
        "1.v=String(\"a\")",
        "1.w=String(\"x\")",
        "2.v=String(\"b\")",
        "3.v=String(\"c\")",
        "3.w=String(\"z\")",
    ];
    assert_eq!(place.entries("a.nut"), expected);
    // A row of the same time as the last one, which was not there yet.
    place.sqlite("insert into t values (4, 'd', null, '2026-01-04')");
    place.job(&job("")).report();
    assert_eq!(place.entries("a.nut").len(), 6);
}

#[test]
fn a_full_build_follows_when_it_is_time_or_the_job_changed() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    place.sqlite("delete from t where id = 1");
    assert_eq!(place.job(&job("")).report()["incremental"], true);
    assert_eq!(place.entries("a.nut").len(), 4, "what was deleted stays until the full build");
    let report = place.job(&job("full_every = \"0\"")).report();
    assert_eq!((&report["incremental"], &report["entries"]), (&false.into(), &2.into()));
    assert_eq!(place.job(&job("")).report()["incremental"], true);
    let changed = job("").replace("values = [\"v\", \"w\"]", "values = [\"v\"]");
    let report = place.job(&changed).report();
    assert_eq!((&report["incremental"], &report["entries"]), (&false.into(), &1.into()));
}

#[test]
fn an_incremental_job_without_changes_makes_the_same_bytes() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    let before = std::fs::read(place.path().join("a.nut")).expect("a file");
    assert_eq!(place.job(&job("")).report()["incremental"], true);
    assert_eq!(std::fs::read(place.path().join("a.nut")).expect("a file"), before);
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&format!("{}types = {{ w = \"flatten\" }}\n", job(""))).failed(3, "\"flatten\"");
    place.job(&job("on_duplicate = \"last\"")).failed(3, "on_duplicate");
    let more =
        "[[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select 1 as a, 2 as b\"\nkey = \"{a}\"";
    place.job(&format!("{}{more}", job(""))).failed(3, "\"since\" for all sources or for none");
}

/// In SQLite, a number is less than each text: the highest value must be compared as a number.
#[test]
fn the_column_since_can_be_a_float() {
    let place = Place::new();
    place.sqlite(
        "create table t(id integer primary key, v text, w text, changed);
         insert into t values (1, 'a', 'x', 1.5), (2, 'b', 'y', 2.5)",
    );
    place.job(&job("")).report();
    place.sqlite("insert into t values (3, 'c', 'z', 3.25)");
    let report = place.job(&job("")).report();
    assert_eq!((&report["incremental"], &report["sources"][0]["rows"]), (&true.into(), &2.into()));
    assert_eq!(place.entries("a.nut").len(), 6);
}

/// A NULL of one source removed the entry of another one.
#[test]
fn several_sources_cannot_remove_each_others_entries() {
    let place = Place::new();
    place.sqlite(TABLE);
    let other = "[[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select id, v, changed from t\"\n\
                 key = \"{id}.o\"\nvalues = [\"v\"]\nsince = \"changed\"\n";
    place.job(&format!("{}{other}", job(""))).failed(3, "a NULL of one would remove");
    let kept = format!("{}nulls = \"empty\"\n{other}nulls = \"empty\"\n", job(""));
    place.job(&kept).report();
    assert_eq!(place.job(&kept).report()["incremental"], true);
}

#[test]
fn a_damaged_last_generation_says_what_to_do() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    place.file("a.nut", "damaged");
    place.job(&job("")).failed(3, "the last generation cannot be read");
    place.job(&job("")).failed(3, "remove the file to run without it");
}

/// SQLite refuses a literal with a NUL character.
#[test]
fn the_column_since_can_have_a_nul_character() {
    for encoding in ["UTF-8", "UTF-16"] {
        let place = Place::new();
        place.sqlite(&format!(
            "pragma encoding = '{encoding}';
             create table t(id integer primary key, v text, w text, changed);
             insert into t values (1, 'a', 'x', 7), (2, 'b', 'y', 'it''s ' || char(0, 1) || 'é');",
        ));
        place.job(&job("")).report();
        place.sqlite("insert into t values (3, 'c', 'z', 'it''s ' || char(0, 2))");
        let report = place.job(&job("")).report();
        let found = (&report["incremental"], &report["sources"][0]["rows"]);
        assert_eq!(found, (&true.into(), &2.into()), "{encoding}");
        assert_eq!(place.entries("a.nut").len(), 6);
    }
}

#[test]
fn a_run_is_full_while_the_highest_value_of_since_is_not_finite() {
    let place = Place::new();
    place.sqlite(
        "create table t(id integer primary key, v text, w text, changed);
         insert into t values (1, 'a', 'x', 1.5), (2, 'b', 'y', 2.5)",
    );
    place.job(&job("")).report();
    place.sqlite("insert into t values (3, 'c', 'z', 0); delete from t where id = 1");
    // PostgreSQL's times and numbers are texts.
    for (value, found) in [("9e999", "inf"), ("'infinity'", "inf"), ("'NaN'", "NaN")] {
        place.sqlite(&format!("update t set changed = {value} where id = 3"));
        for _ in 0..2 {
            let run = place.job(&job(""));
            let report = run.report();
            assert_eq!((&report["incremental"], &report["entries"]), (&false.into(), &4.into()));
            let expected = format!(
                "since: expected a finite number or time as the highest value of \"changed\", \
                 found {found}; this is a full run"
            );
            assert!(run.stderr.contains(&expected), "{run:?}");
        }
    }
    place.sqlite("update t set changed = 3.5 where id = 3");
    assert_eq!(place.job(&job("")).report()["incremental"], false);
    assert_eq!(place.job(&job("")).report()["incremental"], true);
}

struct Quiet;

impl Observer for Quiet {
    fn progress(&self, _: Progress) {}
    fn attempt_failed(&self, _: u32, error: &Error, _: Duration) {
        panic!("{error}");
    }
    fn warning(&self, message: &str) {
        panic!("{message}");
    }
}

/// Regression test: no full run followed until that time.
#[test]
fn a_run_is_full_if_the_last_full_one_is_in_the_future() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.file("job.toml", job(""));
    let job = Job::read(&place.path().join("job.toml")).expect("a job");
    let observer: Arc<dyn Observer> = Arc::new(Quiet);
    let is_incremental = |hours| {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(hours);
        run(&job, now, &Arc::default(), &observer).expect("a report").is_incremental
    };
    assert_eq!([500_000, 500_001].map(is_incremental), [false, true]);
    assert_eq!([499_999, 500_000, 499_998].map(is_incremental), [false, true, false]);
}

/// Removes the output, so that the last generation is fetched. Returns the path of its object.
fn remove_output(place: &Place) -> PathBuf {
    std::fs::remove_file(place.path().join("a.nut")).expect("a file");
    let manifest = std::fs::read_to_string(place.path().join("shared/manifest.json"));
    let manifest = manifest.expect("a manifest");
    let (_, object) = manifest.rsplit_once("\"object\":\"").expect("an object");
    place.path().join("shared/objects").join(object.split('"').next().expect("its name"))
}

/// Removes or changes the file of an object.
type Damage = fn(&Path);

#[test]
fn a_run_is_full_if_the_published_generation_is_missing_or_damaged() {
    let place = Place::new();
    place.sqlite(TABLE);
    let job = job("publish = \"shared\"");
    place.job(&job).report();
    let damages: [(Damage, &str); 4] = [
        (|path| std::fs::remove_file(path).expect("an object"), "the object does not exist"),
        (|path| std::fs::write(path, "short").expect("an object"), "found 5 bytes"),
        (|path| std::fs::write(path, "").expect("an object"), "found 0 bytes"),
        (
            |path| {
                let mut bytes = std::fs::read(path).expect("an object");
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(path, bytes).expect("an object");
            },
            "expected the BLAKE3 hash",
        ),
    ];
    for (generation, (damage, expected)) in (2..).zip(damages) {
        damage(&remove_output(&place));
        place.sqlite(&format!("update t set v = 'v{generation}' where id = 1"));
        let run = place.job(&job);
        let report = run.report();
        assert_eq!((&report["incremental"], &report["entries"]), (&false.into(), &4.into()));
        assert_eq!(report["published"]["generation"], generation);
        let warning = "nuthatch: warning: the last generation cannot be read: ";
        for text in [warning, expected, "; this is a full run"] {
            assert!(run.stderr.contains(text), "expected {text:?}, found {run:?}");
        }
        let run = place.job(&job);
        assert_eq!((&run.report()["incremental"], &*run.stderr), (&true.into(), ""));
        assert!(!place.names().iter().any(|name| name.contains(".last")), "{:?}", place.names());
    }
}

#[test]
fn a_last_generation_that_cannot_be_looked_up_stays_an_error() {
    let place = Place::new();
    place.sqlite(TABLE);
    let job = job("publish = \"shared\"");
    place.job(&job).report();
    place.file("shared/manifest.json", "damaged");
    place.job(&job).failed(3, "manifest.json");
}
