//! What a trainer decides, from samples that codecs collect.

use nuthatch_compress::{
    Codec, Decision, Dictionaries, Encoded, Error, Evaluation, Sampler, Trainer, TrainerOptions,
    ValueInfo,
};
use nuthatch_testing::random::{Random, bytes};
use std::sync::Arc;

const MINUTE_MS: u64 = 60_000;

/// Returns a JSON document of a kind.
fn document(kind: &str, n: u64) -> Vec<u8> {
    let mut random = Random::new(n ^ kind.len() as u64);
    let (one, two) = (random.below(1_000_000), random.below(100));
    let text = match kind {
        "user" => format!(
            "{{\"id\":{n},\"type\":\"user\",\"profile\":{{\"first\":\"name {one}\",\"verified\":\
             true,\"language\":\"en\"}},\"karma\":{two}}}"
        ),
        _ => format!(
            "<order number='{n}'><item sku='{one}' quantity='{two}' warehouse='north-1'/>\
             <status state='shipped' carrier='post'/></order>"
        ),
    };
    text.into_bytes()
}

/// A cache without storage: one codec, and a trainer.
struct Server {
    dictionaries: Arc<Dictionaries>,
    sampler: Arc<Sampler>,
    codec: Codec,
    trainer: Trainer,
}

impl Server {
    fn new(memory_limit: usize) -> Self {
        let dictionaries = Arc::new(Dictionaries::new(3, memory_limit));
        let sampler = Arc::new(Sampler::new(1, 8, 2 << 20, 5));
        let options = TrainerOptions::new().interval_ms(MINUTE_MS).max_dictionary_bytes(16 << 10);
        let trainer = Trainer::new(&dictionaries, &sampler, options).expect("memory");
        let codec = Codec::new(&dictionaries).expect("memory").sampler(&sampler);
        Self { dictionaries, sampler, codec, trainer }
    }

    /// Writes values. Returns the last one, compressed.
    fn write(&mut self, key: &str, count: u64, value: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
        let (mut buffer, mut last) = (Vec::new(), Vec::new());
        for n in 0..count {
            let (key, raw) = (key.replace('#', &n.to_string()), value(n));
            let encoded = self.codec.compress(key.as_bytes(), &raw, &mut buffer);
            if let Encoded::Compressed(encoded) = encoded {
                last = encoded.to_vec();
                if n + 1 < count {
                    self.codec.release(encoded).expect("a header");
                }
            }
        }
        last
    }

    fn step(&mut self, now_ms: u64) -> Evaluation {
        self.trainer.step(now_ms).expect("an evaluation")
    }
}

fn dictionary(encoded: &[u8]) -> Option<u32> {
    ValueInfo::read(encoded).expect("a header").dictionary.map(std::num::NonZeroU32::get)
}

#[test]
fn each_group_gets_a_dictionary_of_its_own() {
    let mut server = Server::new(64 << 20);
    assert!(server.trainer.step(0).is_none());
    server.write("user:#:profile", 2000, |n| document("user", n));
    server.write("order/#", 2000, |n| document("order", n));
    for _ in 0..2 {
        let evaluation = server.step(0);
        assert_eq!(evaluation.decision, Decision::Adopted);
        assert!(evaluation.sizes.saved() > 0.5, "{:?}", evaluation.sizes);
        assert!(evaluation.error.is_none());
    }
    assert!(server.trainer.step(0).is_none());
    let user = server.write("user:#:profile", 1, |n| document("user", n));
    let order = server.write("order/#", 1, |n| document("order", n));
    let stats = server.dictionaries.stats();
    let id_of = |name: &[u8]| {
        let found = stats.iter().find(|stats| stats.groups == [name.to_vec()]);
        Some(found.expect("a group").id.get())
    };
    assert_eq!(dictionary(&user), id_of(b"user:*:"));
    assert_eq!(dictionary(&order), id_of(b"order/"));
    // Small ids need one byte.
    assert_eq!(stats.iter().map(|stats| stats.id.get()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(stats.iter().map(|stats| stats.values).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn values_that_have_nothing_in_common_get_no_dictionary() {
    let mut server = Server::new(64 << 20);
    server.write("random:#", 1000, |n| {
        // Hexadecimal digits, which compress to about half without a dictionary.
        bytes(n, 300).iter().map(|byte| b"0123456789abcdef"[usize::from(byte & 15)]).collect()
    });
    let evaluation = server.step(0);
    assert_eq!((evaluation.decision, evaluation.dictionary), (Decision::NotWorthwhile, None));
    assert!(evaluation.sizes.saved() < 0.1, "{:?}", evaluation.sizes);
    assert!(server.dictionaries.stats().is_empty());
}

#[test]
fn a_dictionary_is_replaced_as_data_drifts_and_kept_while_values_need_it() {
    let mut server = Server::new(64 << 20);
    let write = |server: &mut Server, kind: &'static str| {
        server.write("doc:#", 2000, |n| document(kind, n))
    };
    write(&mut server, "user");
    assert_eq!(server.step(0).decision, Decision::Adopted);
    let old = write(&mut server, "user");
    assert!(server.trainer.step(MINUTE_MS - 1).is_none());
    assert_eq!(server.step(MINUTE_MS).decision, Decision::Kept);
    // The interval doubles after an evaluation that changed nothing.
    write(&mut server, "order");
    assert!(server.trainer.step(3 * MINUTE_MS - 1).is_none());
    let evaluation = server.step(3 * MINUTE_MS);
    assert_eq!(evaluation.decision, Decision::Replaced);
    assert_eq!(evaluation.dictionary.map(std::num::NonZeroU32::get), Some(2));
    assert_eq!(dictionary(&old), Some(1));
    let mut out = Vec::new();
    server.codec.decompress(&old, 1000, &mut out).expect("the old value");
    assert_eq!(out, document("user", 1999));
    // The data changes back: the old dictionary, which is still there, is used again.
    write(&mut server, "user");
    let evaluation = server.step(4 * MINUTE_MS);
    assert_eq!(evaluation.decision, Decision::Replaced);
    assert_eq!(dictionary(&write(&mut server, "user")), Some(1));
}

#[test]
fn a_dictionary_that_saves_nothing_any_more_is_retired_and_removed() {
    let mut server = Server::new(64 << 20);
    let last = server.write("doc:#", 2000, |n| document("user", n));
    assert_eq!(dictionary(&last), None);
    assert_eq!(server.step(0).decision, Decision::Adopted);
    server.write("doc:#", 1000, |n| bytes(n, 300));
    let evaluation = server.step(MINUTE_MS);
    assert_eq!((evaluation.decision, evaluation.dictionary), (Decision::Retired, None));
    server.codec.refresh();
    assert!(server.trainer.step(MINUTE_MS).is_none());
    assert!(server.dictionaries.stats().is_empty());
}

#[test]
fn a_dictionary_without_room_leaves_the_group_as_it_is() {
    let mut server = Server::new(100 << 10);
    server.write("doc:#", 2000, |n| document("user", n));
    let evaluation = server.step(0);
    assert_eq!((evaluation.decision, evaluation.dictionary), (Decision::NotWorthwhile, None));
    assert!(matches!(evaluation.error, Some(Error::NoRoom { limit: 102_400, .. })));
    assert_eq!(server.dictionaries.memory_bytes(), 0);
}

#[test]
fn memory_is_limited_with_any_number_of_groups() {
    let mut server = Server::new(8 << 20);
    for group in 0..200_u32 {
        let name = format!("g{}:#", char::from_u32(0x100 + group).expect("a letter"));
        server.write(&name, 300, |n| document("user", n + u64::from(group)));
        if let Some(evaluation) = server.trainer.step(u64::from(group) * MINUTE_MS) {
            assert!(!matches!(evaluation.error, Some(Error::DuplicateId { .. })));
        }
        assert!(server.sampler.memory_bytes() <= 2 << 20);
        assert!(server.dictionaries.memory_bytes() <= 8 << 20);
        assert!(server.dictionaries.stats().len() < 40);
    }
}

#[test]
fn the_same_values_and_times_yield_the_same_dictionaries() {
    let run = || {
        let mut server = Server::new(64 << 20);
        server.write("user:#:profile", 5000, |n| document("user", n));
        server.step(0);
        let id = server.dictionaries.stats()[0].id;
        server.dictionaries.find(id).expect("it").as_bytes().to_vec()
    };
    assert!(run() == run());
}

#[test]
fn saved_dictionaries_are_adopted_again_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::new(64 << 20);
    server.write("user:#:profile", 2000, |n| document("user", n));
    assert_eq!(server.step(0).decision, Decision::Adopted);
    let stored = server.write("user:#:profile", 10, |n| document("user", n));
    server.dictionaries.save(folder.path()).expect("room");
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    assert_eq!(names, ["1.zdict"]);

    let mut server = Server::new(64 << 20);
    assert_eq!(server.dictionaries.load(folder.path()).expect("dictionaries"), 1);
    let mut out = Vec::new();
    server.codec.decompress(&stored, 1000, &mut out).expect("a value");
    assert_eq!(out, document("user", 9));
    assert!(server.codec.retain(&stored).expect("a header"));
    server.write("user:#:profile", 2000, |n| document("user", n));
    let evaluation = server.step(0);
    assert_eq!(evaluation.decision, Decision::Adopted);
    assert_eq!(evaluation.dictionary.map(std::num::NonZeroU32::get), Some(1));

    // Files that no dictionary needs are removed; those that are none are errors.
    Dictionaries::new(3, 64 << 20).save(folder.path()).expect("room");
    assert!(!folder.path().join("1.zdict").exists());
    let id = evaluation.dictionary.expect("an id");
    let dictionary = server.dictionaries.find(id).expect("it");
    std::fs::write(folder.path().join("2.zdict"), dictionary.as_bytes()).expect("room");
    let error = Dictionaries::new(3, 64 << 20).load(folder.path()).expect_err("another id");
    let error = error.to_string();
    assert!(error.ends_with("2.zdict: load: expected the id 2 as in its name, found 1"), "{error}");
    std::fs::write(folder.path().join("2.zdict"), "").expect("room");
    let error = Dictionaries::new(3, 64 << 20).load(folder.path()).expect_err("no dictionary");
    assert!(error.to_string().contains("2.zdict: load: dictionary: expected the magic number"));
}

/// A folder of an earlier set, which was not loaded, can have another dictionary with the same id.
#[test]
fn saving_replaces_a_file_with_the_same_id_and_another_content() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in ["user", "order"] {
        let mut server = Server::new(64 << 20);
        server.write("doc:#", 2000, |n| document(kind, n));
        assert_eq!(server.step(0).decision, Decision::Adopted);
        let id = server.dictionaries.stats()[0].id;
        for _ in 0..2 {
            server.dictionaries.save(folder.path()).expect("room");
            let saved = std::fs::read(folder.path().join("1.zdict")).expect("a file");
            assert!(saved == server.dictionaries.find(id).expect("it").as_bytes(), "{kind}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}
