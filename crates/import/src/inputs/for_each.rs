//! Parses inputs on the calling thread.

use super::list::Inputs;
use super::source::{Buffers, Source};
use crate::error::Error;
use crate::sink::RowSink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl Inputs {
    /// Adds all rows to a sink, in order. Calls `empty` with the sink and the number of bytes read
    /// so far whenever the sink is full or a chunk of about 1 MiB is parsed. `empty` must empty a
    /// full sink.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`], [`Error::Text`] or [`Error::Format`] if an input cannot be read or is
    /// invalid, [`Error::Snapshot`] for an error of the sink, or an error of `empty`. Rows before
    /// the error were added.
    pub fn for_each<S: RowSink, E: From<Error>>(
        &self,
        sink: &mut S,
        mut empty: impl FnMut(&mut S, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = Arc::new(AtomicU64::new(0));
        let mut buffers = Buffers::default();
        for (file, format) in self.files() {
            let mut source = Source::open(file, *format, self.options(), &read)?;
            while let Some(mut chunk) = source.next(Vec::new())? {
                while !chunk.is_done() {
                    let parsed = source.parser().parse(&mut chunk, &mut buffers, sink);
                    parsed.map_err(|error| Error::row(&file.name, error))?;
                    empty(sink, read.load(Ordering::Relaxed))?;
                }
            }
        }
        Ok(())
    }
}
