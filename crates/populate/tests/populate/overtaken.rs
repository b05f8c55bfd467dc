//! Runs during which the manifest of the destination is replaced.

use crate::place::Place;
use nuthatch_delivery::{Destination, Error as DeliveryError, Manifest, generations, roll_back};
use nuthatch_populate::{Error, Job, Observer, Progress, Result, run};
use std::mem::discriminant;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

const GATES: &str = "[gates]\nmax_value_change = \"50%\"\n";
const CHECKING: Progress = Progress::Checking;
const PUBLISHING: Progress = Progress::Publishing { bytes: 0, total_bytes: 0 };

fn job(gates: &str) -> String {
    format!(
        "output = \"a.nut\"\npublish = \"shared\"\n\
         [[source]]\nfrom = \"sqlite:a.db\"\nquery = \"select id, v from t\"\nkey = \"{{id}}\"\n\
         {gates}"
    )
}

/// Returns a place whose table has a first state, and its job.
fn place(gates: &str) -> Place {
    let place = Place::new();
    place.sqlite(
        // A run that reads the table does not prevent changes.
        "pragma journal_mode = wal; create table t(id integer primary key, v text);
         insert into t values (1, 'old'), (2, 'old'), (3, 'old'), (4, 'old')",
    );
    place.file("job.toml", job(gates));
    place
}

/// An observer that acts once, when a run makes this progress.
struct Acting<'a> {
    at: Progress,
    act: Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>,
}

impl Observer for Acting<'_> {
    fn progress(&self, progress: Progress) {
        if discriminant(&progress) == discriminant(&self.at)
            && let Some(act) = self.act.lock().expect("no panic").take()
        {
            act();
        }
    }

    fn attempt_failed(&self, _attempt: u32, error: &Error, _wait: Duration) {
        panic!("{error}");
    }

    fn warning(&self, message: &str) {
        panic!("{message}");
    }
}

/// Runs the job of a place, and does something during the run.
fn run_during(place: &Arc<Place>, at: Progress, act: fn(&Place)) -> Result<()> {
    let job = Job::read(&place.path().join("job.toml")).expect("a job");
    let other = Arc::clone(place);
    let act: Box<dyn FnOnce() + Send> = Box::new(move || act(&other));
    let observer: Arc<dyn Observer> = Arc::new(Acting { at, act: Mutex::new(Some(act)) });
    let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    run(&job, now, &Arc::default(), &observer).map(drop)
}

fn check_overtaken(result: Result<()>) {
    let error = result.expect_err("a conflict");
    assert!(matches!(error, Error::Delivery(DeliveryError::Conflict { .. })), "{error}");
    let text = error.to_string();
    let expected = "shared/manifest.json: another run, publisher or rollback replaced the manifest \
                    during this run; nothing was published. Look at its generations, then run the";
    assert!(text.contains(expected), "{text}");
}

/// Publishes a second state of the table by another run.
fn publish_new_state(place: &Place) {
    place.sqlite("update t set v = 'new'");
    place.run(&["job.toml", "--accept-change", "--json"]).report();
}

fn roll_back_to_the_first(place: &Place) {
    on_destination(place, async |destination| {
        roll_back(destination, 1, None, &[]).await.expect("generation 1");
    });
}

fn manifest(place: &Place) -> Manifest {
    on_destination(place, async |destination| generations(destination, &[]).await)
        .expect("a manifest")
}

fn on_destination<T>(place: &Place, act: impl AsyncFnOnce(&Destination) -> T) -> T {
    let destination = Destination::open(place.path().join("shared").to_str().expect("UTF-8"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(act(&destination.expect("a folder")))
}

/// The run that was overtaken published the old state.
#[test]
fn of_two_runs_the_one_that_publishes_second_fails() {
    for gates in ["", GATES] {
        for is_first in [true, false] {
            let place = Arc::new(place(gates));
            if !is_first {
                place.run(&["job.toml", "--json"]).report();
                place.sqlite("update t set v = 'older' where id = 1");
            }
            check_overtaken(run_during(&place, CHECKING, publish_new_state));
            let generations = if is_first { 1 } else { 2 };
            assert_eq!(manifest(&place).current, generations);
            // The output is that of the other run.
            assert_eq!(place.entries("a.nut")[0], "1=String(\"new\")");
            let report = place.run(&["job.toml", "--json"]).report();
            assert_eq!(report["published"]["unchanged"], true);
        }
    }
}

/// The generation that followers no longer should have was published again.
#[test]
fn a_rollback_during_a_run_stays() {
    let place = Arc::new(place(""));
    place.run(&["job.toml", "--json"]).report();
    publish_new_state(&place);
    check_overtaken(run_during(&place, CHECKING, roll_back_to_the_first));
    assert_eq!(manifest(&place).current, 1);
}

/// The output of the run is in place then, and is not the last generation.
#[test]
fn a_run_that_is_overtaken_while_it_publishes_is_not_the_last_generation() {
    let place = Arc::new(place(GATES));
    place.run(&["job.toml", "--json"]).report();
    place.sqlite("update t set v = 'lost' where id = 1");
    check_overtaken(run_during(&place, PUBLISHING, |place| {
        place.sqlite("update t set v = 'new'");
        let arguments = ["job.toml", "--accept-change", "--json", "-o", "b.nut"];
        place.run(&arguments).report();
    }));
    assert_eq!(manifest(&place).current, 2);
    assert_eq!(place.entries("a.nut")[0], "1=String(\"lost\")");
    place.sqlite("update t set v = 'next' where id <= 2");
    let report = place.run(&["job.toml", "--json"]).report();
    assert_eq!(report["gates"][1]["found"], "50.0%: 2 changed, 0 added, 0 removed");
    assert_eq!(report["published"]["generation"], 3);
}
