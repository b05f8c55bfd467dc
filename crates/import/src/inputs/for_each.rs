//! Reads inputs on the calling thread, for what takes rows one after the other.

use super::error::Error;
use super::pipeline::Inputs;
use super::rows::RowSink;
use super::source::{Rooms, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl Inputs {
    /// Gives all rows to a sink, in order. `empty` is called whenever the sink is full or some rows
    /// are parsed, with the bytes that were read by then.
    pub fn for_each<S: RowSink, E: From<Error>>(
        &self,
        sink: &mut S,
        mut empty: impl FnMut(&mut S, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = Arc::new(AtomicU64::new(0));
        let mut rooms = Rooms::default();
        for (place, format) in self.places() {
            let mut source = Source::open(place, *format, self.options(), &read)?;
            while let Some(mut chunk) = source.next(Vec::new())? {
                while !chunk.is_done() {
                    let parsed = source.parser().parse(&mut chunk, &mut rooms, sink);
                    parsed.map_err(|error| Error::row(&place.name, error))?;
                    empty(sink, read.load(Ordering::Relaxed))?;
                }
            }
        }
        Ok(())
    }
}
