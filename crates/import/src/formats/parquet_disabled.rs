//! Replaces `parquet` in builds without it. Opening a file fails, so no value of these types
//! exists.

use super::columns::ColumnNames;
use crate::error::RowError;
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use std::convert::Infallible;
use std::fs::File;

pub(crate) fn open(_: File, _: &ColumnNames, _: F32Keys) -> Result<(Parser, Blocks), String> {
    Err("expected another format, because this program was built without Parquet".to_owned())
}

pub(crate) struct Block {
    pub(crate) rows_left: usize,
    _never: Infallible,
}

pub(crate) struct Blocks(Infallible);

impl Blocks {
    pub(crate) fn next(&mut self) -> Result<Option<(Block, u64)>, String> {
        match self.0 {}
    }
}

pub(crate) struct Parser(Infallible);

#[derive(Default)]
pub(crate) struct Buffers;

impl Parser {
    pub(crate) fn parse<S: RowSink>(
        &self,
        _: &mut Block,
        _: &mut Buffers,
        _: &mut S,
    ) -> Result<(), RowError> {
        match self.0 {}
    }
}
