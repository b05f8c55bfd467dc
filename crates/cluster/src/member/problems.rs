//! Problems with keys that have begun and not ended, so that each is reported once.

use super::messages::Event;
use std::collections::BTreeMap;

/// The problem of each key.
#[derive(Debug, Default)]
pub(super) struct Problems {
    open: BTreeMap<String, String>,
    events: Vec<Event>,
}

impl Problems {
    /// Notes a problem, which is reported unless it is known.
    pub(super) fn begin(&mut self, key: &str, problem: String) {
        if self.open.get(key) != Some(&problem) {
            self.events.push(Event::Problem(problem.clone()));
            self.open.insert(key.to_owned(), problem);
        }
    }

    /// Notes that a key has no problem, or does not exist.
    pub(super) fn end(&mut self, key: &str) {
        if let Some(problem) = self.open.remove(key) {
            self.events.push(Event::ProblemEnded(problem));
        }
    }

    /// Notes that only these keys exist.
    pub(super) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        for (_, problem) in self.open.extract_if(.., |key, _| !exists(key)) {
            self.events.push(Event::ProblemEnded(problem));
        }
    }

    /// Takes what has to be reported.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_reported_when_it_begins_and_when_it_ends() {
        let mut problems = Problems::default();
        for _ in 0..3 {
            problems.begin("a", "one".into());
            problems.begin("b", "two".into());
        }
        problems.begin("a", "three".into());
        problems.retain(|key| key == "a");
        problems.end("a");
        problems.end("a");
        let events = problems.take_events();
        let texts = events.iter().map(|event| match event {
            Event::Problem(text) => format!("begin {text}"),
            Event::ProblemEnded(text) => format!("end {text}"),
            event => panic!("{event:?}"),
        });
        let expected = ["begin one", "begin two", "begin three", "end two", "end three"];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        assert!(problems.take_events().is_empty());
    }
}
