//! Random operations, which are independent of the protocol.

use crate::store::Store;
use proptest::prelude::*;

/// Random numbers for one request. The protocol decides which request they mean.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) verb: u8,
    /// The index of the lane's key, and of two keys if a request has two.
    pub(crate) key: u8,
    pub(crate) value: Value,
    pub(crate) number: u16,
    pub(crate) coin: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(u32),
    Bytes(Vec<u8>),
    Long(u16),
}

impl Value {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Long(len) => (0..*len).map(|at| b'a' + (at % 23) as u8).collect(),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let special = prop_oneof![
        Just(b'\r'),
        Just(b'\n'),
        Just(b' '),
        Just(0x1f_u8),
        Just(b'0'),
        Just(b'9'),
        any::<u8>(),
    ];
    prop_oneof![
        4 => (0..200_u32).prop_map(Value::Number),
        1 => any::<u32>().prop_map(Value::Number),
        4 => proptest::collection::vec(special, 0..12).prop_map(Value::Bytes),
        1 => (200..300_u16).prop_map(Value::Long),
        1 => (0..20_000_u16).prop_map(Value::Long),
    ]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    (any::<u8>(), 0..4_u8, value(), any::<u16>(), any::<bool>())
        .prop_map(|(verb, key, value, number, coin)| Op { verb, key, value, number, coin })
}

/// A request, and the expected reply.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) request: Vec<u8>,
    pub(crate) answer: Vec<Part>,
}

/// A part of a reply.
#[derive(Debug)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    /// A number for compare-and-set, which stands for this version of the key's value.
    Number {
        key: Vec<u8>,
        version: u64,
    },
}

impl Exchange {
    pub(crate) fn new(request: impl Into<Vec<u8>>) -> Self {
        Self { request: request.into(), answer: Vec::new() }
    }

    /// Appends bytes to the expected reply.
    #[must_use]
    pub(crate) fn then(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.answer.push(Part::Bytes(bytes.as_ref().to_vec()));
        self
    }

    /// Appends the number for compare-and-set of this version to the expected reply.
    #[must_use]
    pub(crate) fn then_number(mut self, key: &[u8], version: u64) -> Self {
        self.answer.push(Part::Number { key: key.to_vec(), version });
        self
    }
}

/// The requests of one protocol. Changes the model as the server should change, and returns the
/// bytes to send. `keys` are the lane's.
pub(crate) type Ask = fn(&Op, [&[u8]; 2], &mut Store) -> Exchange;
