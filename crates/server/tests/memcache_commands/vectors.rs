//! Checks the vectors in testdata/protocol.

use crate::case::Case;
use crate::engine::{Engine, START_MS};
use std::collections::BTreeMap;

const VECTORS: &str = include_str!("../../../../testdata/protocol/memcache-commands.txt");

/// Numbers by the names that a case gives them.
#[derive(Default)]
struct Names(BTreeMap<u8, String>);

impl Names {
    /// Replaces the names of numbers in a request.
    fn replace(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.0.is_empty() {
            return bytes;
        }
        let mut text = String::from_utf8(bytes).expect("text where there are names");
        for (name, number) in &self.0 {
            text = text.replace(&format!("<{}>", char::from(*name)), number);
        }
        text.into_bytes()
    }

    /// Compares a reply with the expected one. A new name stands for the number at its place, which
    /// must have no other name.
    fn agree(&mut self, mut expected: &str, mut found: &str) -> bool {
        while let Some((before, after)) = expected.split_once('<') {
            let (name, after) = after.split_once('>').expect("a name ends");
            let Some(rest) = found.strip_prefix(before) else { return false };
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = rest.split_at(digits);
            let name = name.bytes().next().expect("a name of one letter");
            let known = self.0.get(&name);
            let is_new = known.is_none() && !self.0.values().any(|other| other == number);
            if number.is_empty() || !(is_new || known.is_some_and(|known| known == number)) {
                return false;
            }
            self.0.insert(name, number.to_owned());
            (expected, found) = (after, rest);
        }
        expected == found
    }
}

fn check(case: &Case, engine: &Engine) {
    let (mut received, mut expected) = (Vec::new(), Vec::new());
    let (mut now_ms, mut names) = (START_MS, Names::default());
    let mut compare = |received: &mut Vec<u8>, expected: &mut Vec<u8>, now_ms| {
        engine.set_time(now_ms);
        let found = engine.run(&names.replace(std::mem::take(received)));
        let expected = String::from_utf8(std::mem::take(expected)).expect("text");
        assert!(names.agree(&expected, &found), "{}:\n{expected:?}\n{found:?}", case.name);
    };
    for (word, strings) in case.lines() {
        let number = || String::from_utf8_lossy(&strings[0]).parse().expect("milliseconds");
        if word != "out" && !expected.is_empty() {
            compare(&mut received, &mut expected, now_ms);
        }
        match word {
            "in" => received.extend(strings.concat()),
            "out" => expected.extend(strings.concat()),
            "at" => now_ms = number(),
            "after" => now_ms += number(),
            other => panic!("{}: {other}", case.name),
        }
    }
    compare(&mut received, &mut expected, now_ms);
}

#[test]
fn replies_match_the_vectors() {
    for case in Case::all(VECTORS) {
        check(&case, &Engine::new());
    }
}

#[test]
fn replies_match_the_vectors_with_compression() {
    for case in Case::all(VECTORS) {
        check(&case, &Engine::compressed());
    }
}

#[test]
fn names_in_vectors_stand_for_numbers() {
    let mut names = Names::default();
    assert!(names.agree("c<a> and <b>", "c1 and 2"));
    assert_eq!(names.replace(b"<a><b>".to_vec()), b"12");
    assert!(names.agree("<a>", "1"));
    for (expected, found) in [("<a>", "2"), ("<c>", "1"), ("<c>", ""), ("<d>x", "3y"), ("x", "y")] {
        assert!(!names.agree(expected, found), "{expected} is not {found}");
    }
}
