//! Gates, and what remains if one does not let a snapshot pass.

use crate::place::Place;

fn job(gates: &str) -> String {
    format!(
        "output = \"a.nut\"\npublish = \"shared\"\n\
         [[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select id, v from t\"\nkey = \"{{id}}\"\n\
         [gates]\n{gates}\n"
    )
}

const TABLE: &str = "
    create table t(id integer primary key, v text);
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 100)
    insert into t select i, 'value ' || i from n;
";

#[test]
fn a_snapshot_that_all_gates_let_pass_is_published() {
    let place = Place::new();
    place.sqlite(TABLE);
    let gates = "min_entries = 100\nmax_entry_change = \"10%\"\nmax_byte_change = \"50%\"\n\
                 max_value_change = \"10%\"\nrequired_keys = [\"1\", \"100\"]\nsample = 20\n\
                 [[gates.query]]\nsql = \"select count(*) * 0.5 from t; -- half\"";
    let report = place.job(&job(gates)).report();
    assert_eq!(report["published"]["generation"], 1);
    let all = report["gates"].as_array().expect("gates");
    assert_eq!(all.len(), 8, "{all:?}");
    assert!(all.iter().all(|gate| gate["passed"] == true), "{all:?}");
    assert_eq!(all[1]["found"], "no last generation");
    let sample = all[7]["found"].as_str().expect("text");
    assert_eq!(sample, "20 entries of 20 rows are equal");

    place.sqlite("update t set v = 'new' where id <= 10");
    let report = place.job(&job(gates)).report();
    assert_eq!(report["gates"][3]["found"], "10.0%: 10 changed, 0 added, 0 removed");
    assert_eq!(report["published"]["generation"], 2);
    let report = place.job(&job(gates)).report();
    assert_eq!(report["published"]["unchanged"], true);
}

#[test]
fn a_gate_that_fails_leaves_the_last_generation() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    let before = std::fs::read(place.path().join("a.nut")).expect("a file");
    let names = place.names();
    place.sqlite(
        "delete from t where id <= 20; insert into t values (200, 'x');
         update t set v = v || ' and more' where id between 30 and 34;",
    );
    for (gates, expected) in [
        ("min_entries = 1000", "min_entries: expected at least 1,000, found 81"),
        (
            "max_entry_change = \"5%\"",
            "max_entry_change: expected at most 5.00%, found 19.0%: 100 entries before, 81",
        ),
        ("max_byte_change = \"0.1%\"", "max_byte_change: expected at most 0.10%, found "),
        (
            "max_value_change = \"25%\"",
            "max_value_change: expected at most 25.0%, found 26.0%: 5 changed, 1 added, 20 removed",
        ),
        ("required_keys = [\"1\"]", "required_keys: expected \"1\", found no such key"),
        (
            "[[gates.query]]\nsql = \"select count(*) > 90 from t\"",
            "query: expected true from select count(*) > 90 from t, found 0",
        ),
        ("[[gates.query]]\nsql = \"select 1 where false\"", "found no value"),
        ("[[gates.query]]\nsql = \"select 0.0;\"", "found 0.0"),
        ("[[gates.query]]\nsql = \"select 'no'\"", "found \"no\""),
    ] {
        let run = place.job(&job(gates));
        run.failed(1, expected);
        run.failed(1, "1 gate failed, so nothing was published:");
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("a report");
        let all = report["gates"].as_array().expect("gates");
        assert_eq!(all.iter().filter(|gate| gate["passed"] == false).count(), 1, "{report}");
        assert_eq!(std::fs::read(place.path().join("a.nut")).expect("a file"), before);
        assert_eq!(place.names(), names, "no file remains");
    }
}

#[test]
fn the_published_generation_is_the_last_one_if_there_is_no_file() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    std::fs::remove_file(place.path().join("a.nut")).expect("a file");
    place.sqlite("delete from t where id <= 50");
    place.job(&job("max_entry_change = \"10%\"")).failed(1, "50.0%: 100 entries before, 50 now");
    assert!(!place.path().join("a.nut").exists());
    assert!(!place.names().iter().any(|name| name.contains(".last-")), "{:?}", place.names());
}

#[test]
fn a_sample_finds_values_that_the_source_does_not_return_again() {
    let place = Place::new();
    place.sqlite(TABLE);
    let job = |column: &str| {
        format!(
            "output = \"a.nut\"\n[[source]]\nfrom = \"sqlite:a.db\"\n\
             query = \"select id, {column} as v from t\"\nkey = \"{{id}}\"\n[gates]\nsample = 10\n"
        )
    };
    place.job(&job("v")).report();
    place.job(&job("random()")).failed(1, "10 entries of 10 rows: 10 differ");
    place.file("a.csv", "id,v\n1,x\n2,y\n3,\n");
    let files =
        "output = \"b.nut\"\n[[source]]\nfrom = \"a.csv\"\nkey = \"{id}\"\n[gates]\nsample = 10\n";
    let report = place.job(files).report();
    assert_eq!(report["gates"][1]["found"], "2 entries of 3 rows are equal");
}

#[test]
fn sets_of_shards_are_checked_before_their_manifest_is_published() {
    let place = Place::new();
    place.sqlite(TABLE);
    let sharded = |gates: &str| format!("shards = 3\n{}", job(gates));
    place.job(&sharded("min_entries = 100")).report();
    assert_eq!(place.entries("a.nut").len(), 100);
    let names = place.names();
    assert_eq!(names.iter().filter(|name| name.contains(".shard")).count(), 3);
    place.sqlite("delete from t where id > 10");
    place.job(&sharded("min_entries = 100")).failed(1, "at least 100, found 10");
    assert_eq!(place.names(), names, "the new shards are removed");
    assert_eq!(place.entries("a.nut").len(), 100);
}

#[test]
fn a_snapshot_without_entries_is_not_published_unless_the_job_says_so() {
    let place = Place::new();
    place.sqlite("create table t(id integer, v text)");
    place.job(&job("")).failed(1, "min_entries: expected at least 1, found 0");
    assert!(!place.path().join("a.nut").exists() && !place.path().join("shared").exists());
    assert_eq!(place.job(&job("min_entries = 0")).report()["entries"], 0);
}

#[test]
fn gates_compare_with_what_followers_have() {
    let place = Place::new();
    place.sqlite(TABLE);
    let gates = "max_value_change = \"5%\"";
    place.job(&job(gates)).report();
    // A bad generation is accepted, and rolled back.
    place.sqlite("update t set v = 'bad' where id <= 50");
    place.file("job.toml", job(gates));
    place.run(&["job.toml"]).failed(1, "found 50.0%");
    let run = place.run(&["job.toml", "--accept-change", "--json"]);
    assert_eq!(run.report()["published"]["generation"], 2);
    let destination =
        nuthatch_delivery::Destination::open(place.path().join("shared").to_str().expect("UTF-8"));
    let destination = destination.expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let rolled_back = nuthatch_delivery::roll_back(&destination, 1, None, &[]);
    runtime.expect("a runtime").block_on(rolled_back).expect("generation 1");
    // The file of the last run is the bad generation, which followers no longer have.
    place.run(&["job.toml"]).failed(1, "found 50.0%");
    place.sqlite("update t set v = 'value ' || id");
    place.job(&job(gates)).report();
    // A run that could not publish is not the last generation either.
    place.sqlite("update t set v = 'other' where id <= 4");
    let shared = place.path().join("shared/manifest.json");
    let manifest = std::fs::read(&shared).expect("a manifest");
    std::fs::write(&shared, "damaged").expect("a manifest");
    assert_eq!(place.job(&job(gates)).status, Some(3));
    std::fs::write(&shared, manifest).expect("a manifest");
    place.sqlite("update t set v = 'other' where id <= 8");
    place.job(&job(gates)).failed(1, "found 8.00%: 8 changed");
}

/// Removes the output, and the objects of the published generation.
fn lose_last_generation(place: &Place) {
    std::fs::remove_file(place.path().join("a.nut")).expect("a file");
    for object in std::fs::read_dir(place.path().join("shared/objects")).expect("objects") {
        std::fs::remove_file(object.expect("an object").path()).expect("an object");
    }
}

#[test]
fn gates_that_compare_with_a_missing_generation_fail_until_the_change_is_accepted() {
    for more in ["", "values = [\"v\"]\nsince = \"changed\"\n"] {
        let job = |gates: &str| {
            job(gates)
                .replace("select id, v from", "select id, v, id as changed from")
                .replace("key = \"{id}\"", "key = \"{id}.{column}\"")
                .replace("[gates]", &format!("{more}[gates]"))
        };
        let place = Place::new();
        place.sqlite(TABLE);
        place.job(&job("")).report();
        lose_last_generation(&place);
        let gates = "max_entry_change = \"10%\"\nmax_byte_change = \"10%\"\n\
                     max_value_change = \"10%\"";
        let run = place.job(&job(gates));
        run.failed(1, "nuthatch: warning: the last generation cannot be read: ");
        run.failed(1, "3 gates failed, so nothing was published:");
        run.failed(1, "max_value_change: expected at most 10.0%, found a last generation that");
        run.failed(1, "the object does not exist; run the job with --accept-change to publish");
        assert!(!place.path().join("a.nut").exists(), "the output stays as it was");
        place.run(&["job.toml", "--accept-change", "--json"]).report();
        std::fs::remove_file(place.path().join("a.nut")).expect("a file");
        place.job(&job(gates)).report();
    }
}

/// The gates passed: the fetch returned no path, since the folder had the generation.
#[test]
fn gates_compare_with_a_generation_that_a_killed_run_has_fetched() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    std::fs::remove_file(place.path().join("a.nut")).expect("a file");
    let destination =
        nuthatch_delivery::Destination::open(place.path().join("shared").to_str().expect("UTF-8"));
    let follower = nuthatch_delivery::Follower::open(
        destination.expect("a folder"),
        &place.path().join(".a.nut.last"),
        nuthatch_delivery::FollowOptions::default(),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let checked = runtime.expect("a runtime").block_on(follower.expect("a follower").check(|_| {}));
    checked.expect("a check").expect("a generation");
    place.sqlite("delete from t where id <= 50");
    place.job(&job("max_entry_change = \"10%\"")).failed(1, "50.0%: 100 entries before, 50 now");
}

/// The run failed, and only the next one passed.
#[test]
fn a_damaged_folder_of_a_killed_run_does_not_fail_the_next_run() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    let folder = place.path().join(".a.nut.last");
    let manifest = std::fs::read(place.path().join("shared/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let later = serde_json::json!({ "serial": 9, "generation": manifest["generations"][0] });
    for (file, contents) in [
        (".nuthatch/state.json", "damaged"),
        (".nuthatch/state.json", later.to_string().as_str()),
        ("a.nut", "a regular file"),
        ("a.nut/file", "a folder"),
    ] {
        std::fs::remove_file(place.path().join("a.nut")).expect("a file");
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, contents).expect("a file");
        place.job(&job("max_entry_change = \"10%\"")).report();
        assert!(!folder.exists(), "{file}");
    }
}

/// A folder that a link leads to would lose its files.
#[test]
fn a_link_in_place_of_the_folder_of_the_last_generation_is_refused() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    std::fs::remove_file(place.path().join("a.nut")).expect("a file");
    std::fs::create_dir(place.path().join("other")).expect("a folder");
    place.file("other/kept", "");
    std::os::unix::fs::symlink("other", place.path().join(".a.nut.last")).expect("a link");
    place.job(&job("max_entry_change = \"10%\"")).failed(3, "found a symbolic link; remove it");
    assert!(place.path().join("other/kept").exists());
}

/// The second run removed the generation that the first one had fetched.
#[test]
fn a_run_refuses_the_folder_of_another_run_and_leaves_it() {
    let place = Place::new();
    place.sqlite(TABLE);
    place.job(&job("")).report();
    std::fs::remove_file(place.path().join("a.nut")).expect("a file");
    let folder = place.path().join(".a.nut.last");
    std::fs::create_dir(&folder).expect("a folder");
    let other_run = std::fs::File::open(&folder).expect("the folder");
    other_run.try_lock().expect("a lock");
    place
        .job(&job("max_entry_change = \"10%\""))
        .failed(3, "a.nut: another run of the job reads the last generation");
    assert!(folder.exists());
    drop(other_run);
    place.job(&job("max_entry_change = \"10%\"")).report();
    assert!(!folder.exists());
}

#[test]
fn a_sample_finds_rows_whose_key_has_a_nul_character() {
    let place = Place::new();
    place.sqlite(
        "create table t(id text primary key, v text);
         insert into t values ('a', 'x'), ('a' || char(0), 'y'), ('''' || char(0, 0, 1), 'z');",
    );
    let report = place.job(&job("sample = 10")).report();
    assert_eq!(report["gates"][1]["found"], "3 entries of 3 rows are equal");
}

#[test]
fn a_query_that_returns_an_infinite_number_fails_its_gate() {
    let place = Place::new();
    place.sqlite(TABLE);
    let gates = "[[gates.query]]\nsql = \"select 9e999\"";
    place.job(&job(gates)).failed(1, "query: expected true from select 9e999, found inf");
}

/// Rows and columns after the first one were ignored.
#[test]
fn a_query_of_a_gate_that_returns_several_values_is_an_error() {
    let place = Place::new();
    place.sqlite(TABLE);
    for (query, expected) in [
        ("select 1 union all select 0", "expected one row, found more"),
        ("select 1, 2", "select 1, 2: expected one column, found 2"),
        ("select 1, 2 where false", "expected one column, found 2"),
    ] {
        place.job(&job(&format!("[[gates.query]]\nsql = \"{query}\""))).failed(3, expected);
    }
}
