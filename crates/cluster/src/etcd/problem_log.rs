//! Which problems have begun and not ended, so that each is reported once.

use super::problem::{EtcdProblem, EtcdReport, Operation};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A problem that was not seen for this long may have ended unnoticed, since other endpoints were
/// used: it is reported anew.
const FORGET: Duration = Duration::from_mins(10);

/// The problems of a client.
pub(super) struct ProblemLog {
    report: Box<dyn Fn(EtcdReport) + Send + Sync>,
    open: Mutex<Vec<Open>>,
}

/// A problem that has not ended.
struct Open {
    problem: EtcdProblem,
    /// When it was seen last; `None` to report it anew.
    seen: Option<Instant>,
}

impl ProblemLog {
    pub(super) fn new(report: Box<dyn Fn(EtcdReport) + Send + Sync>) -> Self {
        Self { report, open: Mutex::default() }
    }

    /// Notes a request that etcd did not execute. Reports the problem, unless that has happened.
    pub(super) fn failed(&self, problem: EtcdProblem, now: Instant) {
        let mut open = self.open();
        let known = open.iter_mut().find(|open| is_same(&open.problem, &problem));
        if let Some(known) = known {
            let is_recent = known.seen.is_some_and(|seen| now.duration_since(seen) < FORGET);
            known.seen = Some(now);
            if is_recent {
                return;
            }
            known.problem = problem.clone();
        } else {
            open.push(Open { problem: problem.clone(), seen: Some(now) });
        }
        drop(open);
        (self.report)(EtcdReport::Began(problem));
    }

    /// Notes that an endpoint has executed a request. Reports the end of its problems. A login or
    /// the begin of a watch proves nothing about requests that need a leader.
    pub(super) fn succeeded(&self, endpoint: &str, operation: Operation) {
        let has_ended = |open: &mut Open| {
            let problem = &open.problem;
            if problem.kind.is_of_endpoint() {
                let is_proof = !matches!(operation, Operation::Login | Operation::Watch);
                problem.endpoint == endpoint && is_proof
            } else {
                problem.request == operation
            }
        };
        let mut open = self.open();
        if open.is_empty() {
            return;
        }
        let ended: Vec<Open> = open.extract_if(.., has_ended).collect();
        drop(open);
        for Open { problem, .. } in ended {
            (self.report)(EtcdReport::Ended(problem));
        }
    }

    /// Notes that the client has other certificates or another login. Problems that they do not
    /// solve are reported anew.
    pub(super) fn reloaded(&self, has_login: bool) {
        self.open().iter_mut().for_each(|open| open.seen = None);
        if !has_login {
            self.succeeded("", Operation::Login);
        }
    }

    /// Returns the problems that have not ended.
    pub(super) fn current(&self) -> Vec<EtcdProblem> {
        self.open().iter().map(|open| open.problem.clone()).collect()
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether two requests failed for the same problem.
fn is_same(one: &EtcdProblem, other: &EtcdProblem) -> bool {
    let is_same_place = if one.kind.is_of_endpoint() {
        one.endpoint == other.endpoint
    } else {
        one.request == other.request
    };
    one.kind == other.kind && is_same_place
}

impl fmt::Debug for ProblemLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProblemLog").field("open", &self.current()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::ProblemKind;
    use super::*;
    use std::sync::Arc;

    type Reports = Arc<Mutex<Vec<String>>>;

    fn log() -> (ProblemLog, Reports) {
        let reports = Reports::default();
        let kept = Arc::clone(&reports);
        let report = move |report| {
            let text = match report {
                EtcdReport::Began(EtcdProblem { kind, endpoint, request, .. }) => {
                    format!("{kind:?} {endpoint} {request}")
                }
                EtcdReport::Ended(EtcdProblem { kind, endpoint, .. }) => {
                    format!("end of {kind:?} {endpoint}")
                }
            };
            kept.lock().expect("a lock").push(text);
        };
        (ProblemLog::new(Box::new(report)), reports)
    }

    fn problem(kind: ProblemKind, endpoint: &str, request: Operation) -> EtcdProblem {
        let (endpoint, found) = (endpoint.to_owned(), String::new());
        EtcdProblem { kind, endpoint, request, found, advice: "".into() }
    }

    #[test]
    fn a_problem_is_reported_when_it_begins_and_when_it_ends() {
        let (log, reports) = log();
        let now = Instant::now();
        for request in [Operation::Grant, Operation::Watch, Operation::Grant] {
            log.failed(problem(ProblemKind::Unreachable, "a:1", request), now);
        }
        log.failed(problem(ProblemKind::Unreachable, "b:1", Operation::Grant), now);
        assert_eq!(log.current().len(), 2);
        log.succeeded("a:1", Operation::Login);
        log.succeeded("a:1", Operation::Read);
        log.succeeded("a:1", Operation::Read);
        log.failed(problem(ProblemKind::Unreachable, "a:1", Operation::Watch), now);
        let expected = [
            "Unreachable a:1 grant of a lease",
            "Unreachable b:1 grant of a lease",
            "end of Unreachable a:1",
            "Unreachable a:1 watch of the cluster's keys",
        ];
        assert_eq!(*reports.lock().expect("a lock"), expected);
    }

    #[test]
    fn a_reload_that_does_not_solve_a_problem_is_seen_in_the_log() {
        let (log, reports) = log();
        let now = Instant::now();
        let refused = problem(ProblemKind::LoginRefused, "a:1", Operation::Login);
        log.failed(refused.clone(), now);
        log.reloaded(true);
        log.failed(refused.clone(), now);
        log.failed(refused, now);
        log.reloaded(false);
        let expected =
            ["LoginRefused a:1 login", "LoginRefused a:1 login", "end of LoginRefused a:1"];
        assert_eq!(*reports.lock().expect("a lock"), expected);
        assert!(log.current().is_empty());
    }

    /// A lease can be granted and kept alive without a permission for keys.
    #[test]
    fn a_denied_read_does_not_end_with_a_keep_alive() {
        let (log, reports) = log();
        for _ in 0..3 {
            let denied = problem(ProblemKind::PermissionDenied, "a:1", Operation::Read);
            log.failed(denied, Instant::now());
            log.succeeded("a:1", Operation::KeepAlive);
        }
        log.succeeded("b:1", Operation::Read);
        let expected =
            ["PermissionDenied a:1 read of the cluster's keys", "end of PermissionDenied a:1"];
        assert_eq!(*reports.lock().expect("a lock"), expected);
    }

    #[test]
    fn a_problem_of_an_endpoint_that_was_not_used_for_long_is_reported_anew() {
        let (log, reports) = log();
        let now = Instant::now();
        let lost = problem(ProblemKind::Unreachable, "a:1", Operation::Read);
        log.failed(lost.clone(), now);
        log.failed(lost.clone(), now + FORGET / 2);
        log.failed(lost.clone(), now + FORGET);
        assert_eq!(reports.lock().expect("a lock").len(), 1);
        log.failed(lost, now + FORGET * 2);
        assert_eq!(reports.lock().expect("a lock").len(), 2);
    }
}
