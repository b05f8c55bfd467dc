//! Tests the commands that change a part of a value, against the same operations on a list of bits
//! and on a number.

use crate::engine::Engine;
use nuthatch_server::resp::Version;
use proptest::prelude::*;

/// The number of bits of the longest value of the model.
const BITS: usize = 200;

#[derive(Clone, Debug)]
enum Operation {
    Append(Vec<u8>),
    SetRange(usize, Vec<u8>),
    SetBit(usize, bool),
    /// Sets an unsigned field: its width, its first bit and its new number.
    SetField(usize, usize, u64),
    Count(usize, usize),
    Find(bool, usize, usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let bytes = || proptest::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 0..6);
    prop_oneof![
        bytes().prop_map(Operation::Append),
        (0..20usize, bytes()).prop_map(|(at, bytes)| Operation::SetRange(at, bytes)),
        (0..BITS, any::<bool>()).prop_map(|(at, bit)| Operation::SetBit(at, bit)),
        (1..64usize, 0..BITS, any::<u64>()).prop_map(|(width, at, number)| Operation::SetField(
            width,
            at,
            number >> (64 - width)
        )),
        (0..BITS, 0..BITS).prop_map(|(start, end)| Operation::Count(start, end)),
        (any::<bool>(), 0..BITS, 0..BITS)
            .prop_map(|(bit, start, end)| Operation::Find(bit, start, end)),
    ]
}

/// The value as bits, the highest bit of each byte first.
#[derive(Default)]
struct Model {
    bits: Vec<bool>,
}

fn bits_of(bytes: &[u8]) -> impl Iterator<Item = bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1))
}

impl Model {
    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        self.bits.chunks(8).map(byte).collect()
    }

    fn write(&mut self, at: usize, bits: impl Iterator<Item = bool>) {
        for (at, bit) in (at..).zip(bits) {
            let len = self.bits.len().max((at + 1).next_multiple_of(8));
            self.bits.resize(len, false);
            self.bits[at] = bit;
        }
    }

    /// Returns the existing bits from `start` to `end`, each with its index.
    fn range(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, bool)> {
        let bits = self.bits.iter().copied().enumerate();
        bits.filter(move |(at, _)| (start..=end).contains(at))
    }

    /// Executes an operation, and returns the number of its reply.
    fn apply(&mut self, operation: &Operation) -> usize {
        match operation {
            Operation::Append(bytes) => {
                self.bits.extend(bits_of(bytes));
                self.bits.len() / 8
            }
            Operation::SetRange(at, bytes) => {
                self.write(at * 8, bits_of(bytes));
                self.bits.len() / 8
            }
            Operation::SetBit(at, bit) => {
                let old = self.bits.get(*at) == Some(&true);
                self.write(*at, std::iter::once(*bit));
                usize::from(old)
            }
            Operation::SetField(width, at, number) => {
                let old = (*at..at + width)
                    .fold(0, |old, at| old << 1 | usize::from(self.bits.get(at) == Some(&true)));
                let (width, number) = (*width, *number);
                self.write(*at, (0..width).map(|bit| number >> (width - 1 - bit) & 1 == 1));
                old
            }
            Operation::Count(start, end) => {
                self.range(*start, *end).filter(|(_, bit)| *bit).count()
            }
            Operation::Find(..) => unreachable!("it may answer that there is none"),
        }
    }
}

/// Returns the request for an operation.
fn request(operation: &Operation) -> Vec<Vec<u8>> {
    let text = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    match operation {
        Operation::Append(bytes) => vec![b"APPEND".to_vec(), b"k".to_vec(), bytes.clone()],
        Operation::SetRange(at, bytes) => {
            vec![b"SETRANGE".to_vec(), b"k".to_vec(), at.to_string().into_bytes(), bytes.clone()]
        }
        Operation::SetBit(at, bit) => text(&format!("SETBIT k {at} {}", u8::from(*bit))),
        Operation::SetField(width, at, number) => {
            text(&format!("BITFIELD k SET u{width} {at} {number}"))
        }
        Operation::Count(start, end) => text(&format!("BITCOUNT k {start} {end} BIT")),
        Operation::Find(bit, start, end) => {
            text(&format!("BITPOS k {} {start} {end} BIT", u8::from(*bit)))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bit_commands_match_the_model(operations in proptest::collection::vec(operation(), 1..40)) {
        let engine = Engine::new(1);
        let mut connection = engine.connect(Version::Resp2);
        let mut model = Model::default();
        // Stores an empty value: a search for bits in a missing key has another reply.
        connection.run(&["SET", "k", ""]);
        for operation in &operations {
            let answer = match operation {
                Operation::Find(sought, start, end) => model
                    .range(*start, *end)
                    .find(|(_, bit)| bit == sought)
                    .map_or("-1".to_owned(), |(at, _)| at.to_string()),
                operation => model.apply(operation).to_string(),
            };
            let array = if matches!(operation, Operation::SetField(..)) { "*1\r\n" } else { "" };
            let reply = connection.run(&request(operation));
            prop_assert_eq!(String::from_utf8_lossy(&reply), format!("{array}:{answer}\r\n"));
            let value = model.bytes();
            let mut bulk = format!("${}\r\n", value.len()).into_bytes();
            bulk.extend_from_slice(&value);
            bulk.extend_from_slice(b"\r\n");
            prop_assert_eq!(connection.run(&["GET", "k"]), bulk);
        }
    }

    #[test]
    fn number_commands_match_the_model(
        start in any::<i64>(),
        increments in proptest::collection::vec(prop_oneof![-9..9i64, any::<i64>()], 1..20),
    ) {
        let engine = Engine::new(1);
        let mut connection = engine.connect(Version::Resp2);
        connection.run(&["SET", "k", &start.to_string()]);
        let mut number = start;
        for by in increments {
            let reply = connection.run(&["INCRBY", "k", &by.to_string()]);
            let expected = match number.checked_add(by) {
                Some(sum) => {
                    number = sum;
                    format!(":{sum}\r\n")
                }
                None => "-ERR increment or decrement would overflow\r\n".to_owned(),
            };
            prop_assert_eq!(String::from_utf8_lossy(&reply), expected);
        }
        let text = number.to_string();
        let reply = connection.run(&["GET", "k"]);
        prop_assert_eq!(String::from_utf8_lossy(&reply), format!("${}\r\n{text}\r\n", text.len()));
    }
}
