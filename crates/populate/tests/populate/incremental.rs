//! Jobs that read only what changed.

use crate::place::Place;

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
