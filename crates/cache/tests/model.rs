//! Random commands, compared with a simple model.

use nuthatch_cache::{
    BatchKey, Cache, Clock, Condition, Error, Eviction, Expiry, Guard, Item, ManualClock, Options,
    Outcome, Result, Write,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

const MEMORY: u64 = 32 << 20;

/// Length in bytes from which items may have a segment of their own. Few keys have such items.
const LARGE: usize = 60_000;
const LARGE_KEYS: u8 = 0x70;

/// Runs an operation as servers do: without memory, again under the next guard.
fn with_room<R>(
    guard: &mut Guard<'_>,
    mut operation: impl FnMut(&Guard<'_>) -> Result<R>,
) -> Result<R> {
    match operation(guard) {
        Err(Error::Full) if guard.renew() => operation(guard),
        other => other,
    }
}

#[derive(Clone, Debug)]
enum When {
    Never,
    In(u64),
    Keep,
}

#[derive(Clone, Debug)]
enum If {
    Always,
    Absent,
    Present,
    SameCas,
    OtherCas,
    SameValue,
    OtherValue,
}

/// The protocol bits of an item, and whether it is marked as compressed.
type Marks = (u8, bool);

#[derive(Clone, Debug)]
enum Command {
    Set { key: u8, len: usize, when: When, only: If, flags: u32, marks: Marks },
    Append { key: u8, len: usize },
    Get { key: u8 },
    Cas { key: u8 },
    Remove { key: u8 },
    Clear,
    Wait { ms: u64 },
    EndTurn,
}

fn command() -> impl Strategy<Value = Command> {
    let when = prop_oneof![
        3 => Just(When::Never),
        3 => (0..200_u64).prop_map(When::In),
        1 => (0..20_000_000_u64).prop_map(When::In),
        1 => Just(When::In(u64::MAX)),
        1 => Just(When::Keep),
    ];
    let only = prop_oneof![
        8 => Just(If::Always),
        1 => Just(If::Absent),
        1 => Just(If::Present),
        1 => Just(If::SameCas),
        1 => Just(If::OtherCas),
        1 => Just(If::SameValue),
        1 => Just(If::OtherValue),
    ];
    let len = prop_oneof![
        16 => 0..40_usize,
        4 => 200..300_usize,
        2 => 0..LARGE,
        1 => LARGE..600_000_usize,
    ];
    let flags = prop_oneof![3 => Just(0), 1 => any::<u32>()];
    prop_oneof![
        12 => (any::<u8>(), len.clone(), when, only, flags, (0..4_u8, any::<bool>())).prop_map(
            |(key, len, when, only, flags, marks)| {
                let key = if len < LARGE { key } else { key & LARGE_KEYS };
                Command::Set { key, len, when, only, flags, marks }
            }
        ),
        4 => (any::<u8>(), len).prop_map(|(key, len)| Command::Append { key, len: len % 500 }),
        8 => any::<u8>().prop_map(|key| Command::Get { key }),
        2 => any::<u8>().prop_map(|key| Command::Cas { key }),
        4 => any::<u8>().prop_map(|key| Command::Remove { key }),
        1 => (0..100_u64).prop_map(|ms| Command::Wait { ms }),
        1 => Just(Command::EndTurn),
        1 => Just(Command::Clear),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    value: Vec<u8>,
    expires_ms: Option<u64>,
    flags: u32,
    cas: Option<u64>,
    marks: Marks,
}

/// Returns keys of many lengths, the empty one included.
fn key_of(number: u8) -> Vec<u8> {
    let len =
        if number.is_multiple_of(16) { usize::from(number) * 20 } else { usize::from(number) % 21 };
    let mut key = vec![b'k'; len];
    if let Some(last) = key.last_mut() {
        *last = number;
    }
    key
}

struct Model {
    entries: HashMap<Vec<u8>, Entry>,
    now_ms: u64,
    max_value_len: usize,
    written: u8,
    /// All keys by their numbers, prefetched whenever a new guard begins.
    prefetched: Vec<BatchKey>,
}

impl Model {
    fn live(&self, key: &[u8]) -> Option<&Entry> {
        let is_over = |entry: &&Entry| entry.expires_ms.is_some_and(|at| at <= self.now_ms);
        self.entries.get(key).filter(|entry| !is_over(entry))
    }

    fn value(&mut self, len: usize) -> Vec<u8> {
        self.written = self.written.wrapping_add(1);
        (0..len).map(|at| self.written.wrapping_add(at as u8)).collect()
    }

    fn apply(&mut self, guard: &mut Guard<'_>, command: &Command) {
        match command {
            Command::Set { key, len, when, only, flags, marks } => {
                let key = key_of(*key);
                let value = self.value(*len);
                self.set(guard, &key, value, (when, only), (*flags, *marks));
            }
            Command::Append { key, len } => {
                let (key, more) = (key_of(*key), self.value(*len));
                let appended = with_room(guard, |guard| {
                    guard.update(&key, |item, value| {
                        value.extend_from_slice(item.map_or(&[], |item| item.value()));
                        value.extend_from_slice(&more);
                        (Some(Write::new().expiry(Expiry::Keep)), value.len())
                    })
                });
                let old = self.live(&key);
                let mut value = old.map_or(Vec::new(), |entry| entry.value.clone());
                let expires_ms = old.and_then(|entry| entry.expires_ms);
                value.extend_from_slice(&more);
                if value.len() > self.max_value_len {
                    assert!(appended.is_err());
                    return;
                }
                assert_eq!(appended.expect("room"), value.len());
                let entry = Entry { value, expires_ms, flags: 0, cas: None, marks: (0, false) };
                self.entries.insert(key, entry);
            }
            Command::Get { key } => {
                let (key, prefetched) = (key_of(*key), &self.prefetched[usize::from(*key)]);
                assert_eq!(entry(guard.get(&key), &key).as_ref(), self.live(&key));
                let item = guard.get_prefetched(&key, prefetched);
                assert_eq!(entry(item, &key).as_ref(), self.live(&key));
            }
            Command::Cas { key } => {
                let key = key_of(*key);
                let cas =
                    with_room(guard, |guard| Ok(guard.get_with_cas(&key)?.map(|(_, cas)| cas)));
                let cas = cas.expect("room");
                assert_eq!(cas.is_some(), self.live(&key).is_some());
                if let (Some(cas), Some(entry)) = (cas, self.entries.get_mut(&key)) {
                    assert!(entry.cas.is_none_or(|old| old == cas));
                    entry.cas = Some(cas);
                }
            }
            Command::Remove { key } => {
                let key = key_of(*key);
                assert_eq!(guard.remove(&key), self.live(&key).is_some());
                self.entries.remove(&key);
            }
            Command::Clear => {
                guard.clear();
                self.entries.clear();
            }
            Command::Wait { .. } | Command::EndTurn => {}
        }
    }

    fn set(
        &mut self,
        guard: &mut Guard<'_>,
        key: &[u8],
        value: Vec<u8>,
        (when, only): (&When, &If),
        (flags, marks): (u32, Marks),
    ) {
        let live = self.live(key).cloned();
        let same = live.as_ref().map_or(Vec::new(), |entry| entry.value.clone());
        let cas = live.as_ref().and_then(|entry| entry.cas);
        let condition = match only {
            If::Always => Condition::Always,
            If::Absent => Condition::Absent,
            If::Present => Condition::Present,
            If::SameCas => Condition::Cas(cas.unwrap_or(u64::MAX)),
            If::OtherCas => Condition::Cas(cas.unwrap_or(0).wrapping_add(1)),
            If::SameValue => Condition::Value(&same),
            If::OtherValue => Condition::Value(b"nobody's"),
        };
        let expiry = match when {
            When::Never => Expiry::Never,
            When::In(ms) => Expiry::In(*ms),
            When::Keep => Expiry::Keep,
        };
        let expected = match (only, &live) {
            (If::Always | If::Absent, None)
            | (If::Always | If::Present | If::SameValue, Some(_)) => Outcome::Stored,
            (If::SameCas, Some(entry)) if entry.cas.is_some() => Outcome::Stored,
            (If::Present | If::SameCas | If::OtherCas | If::SameValue | If::OtherValue, None) => {
                Outcome::Missing
            }
            _ => Outcome::Exists,
        };
        let write = Write::new()
            .expiry(expiry)
            .condition(condition)
            .flags(flags)
            .protocol_bits(marks.0)
            .compressed(marks.1);
        let outcome = with_room(guard, |guard| guard.set(key, &value, &write));
        assert_eq!(outcome.expect("room"), expected);
        if expected == Outcome::Stored {
            let expires_ms = match when {
                When::Never => None,
                When::In(ms) => Some(self.now_ms.saturating_add(*ms).min((1 << 48) - 1)),
                When::Keep => live.and_then(|entry| entry.expires_ms),
            };
            let entry = Entry { value, expires_ms, flags, cas: None, marks };
            self.entries.insert(key.to_vec(), entry);
        }
    }
}

fn entry(item: Option<Item<'_>>, key: &[u8]) -> Option<Entry> {
    let item = item?;
    assert_eq!(item.key(), key);
    Some(Entry {
        value: item.value().to_vec(),
        expires_ms: item.expires_ms(),
        flags: item.flags(),
        cas: item.cas(),
        marks: (item.protocol_bits(), item.is_compressed()),
    })
}

fn run(commands: &[Command], eviction: Eviction) {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let options = Options::new().memory(MEMORY).clock(Arc::<ManualClock>::clone(&clock));
    let cache = Cache::new(options.eviction(eviction).seed(7)).expect("a cache");
    let mut session = cache.session().expect("a session");
    let now_ms = clock.now_ms();
    let hashes = (0..=255).map(|number| cache.hash(&key_of(number)));
    let mut model = Model {
        entries: HashMap::new(),
        now_ms,
        max_value_len: cache.max_value_len(),
        written: 0,
        prefetched: hashes.map(BatchKey::to_read).collect(),
    };
    let mut guard = session.guard();
    guard.prefetch(&mut model.prefetched);
    for command in commands {
        model.apply(&mut guard, command);
        if let Command::Wait { ms } = command {
            clock.advance(*ms);
        }
        if matches!(command, Command::Wait { .. } | Command::EndTurn) {
            drop(guard);
            guard = session.guard();
            model.now_ms = clock.now_ms();
            guard.prefetch(&mut model.prefetched);
        }
    }
    for number in 0..=255 {
        let key = key_of(number);
        assert_eq!(entry(guard.get(&key), &key).as_ref(), model.live(&key), "key {number}");
    }
    let stats = cache.stats();
    assert!(stats.memory <= MEMORY && stats.evicted == 0, "{stats:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cache_with_room_is_a_map(commands in vec(command(), 1..400)) {
        run(&commands, Eviction::S3Fifo);
    }

    /// Writes much more than fits, and overwritten memory is reused.
    #[test]
    fn nothing_is_lost_without_eviction(commands in vec(command(), 2000..3000)) {
        run(&commands, Eviction::None);
    }
}
