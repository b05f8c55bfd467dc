//! Buffers for decompressed values.

use super::value::nuthatch_snapshot_value;
use crate::error::{Failure, NUTHATCH_ERROR_COMPRESSED, Result, nuthatch_error};
use crate::memory::export_body;
use snapshot_engine::{OwnedValue, Scratch, StoredValue};
use std::sync::Arc;

/// A buffer for decompressed values, which any snapshot can use. One thread at a time may use it.
/// It grows to the largest value that it held, at most 16 MiB. After `nuthatch_snapshot_get_many`,
/// it holds all compressed values of that call.
#[derive(Default)]
pub struct nuthatch_snapshot_scratch {
    buffer: Scratch,
    /// Decompressed values of the last call, if it read several.
    values: Vec<Arc<OwnedValue>>,
}

impl nuthatch_snapshot_scratch {
    /// Returns a value that is in the file, or decompresses it into the buffer, in place of all
    /// earlier values.
    pub(crate) fn read(
        scratch: Option<&mut Self>,
        stored: &StoredValue<'_>,
    ) -> Result<nuthatch_snapshot_value> {
        if let Some(value) = stored.in_place()? {
            return Ok(nuthatch_snapshot_value::new(value, true));
        }
        let scratch = Self::required(scratch)?;
        scratch.values.clear();
        Ok(nuthatch_snapshot_value::new(stored.decompress(&mut scratch.buffer)?, false))
    }

    /// Returns a value that is in the file, or decompresses it and keeps earlier values.
    pub(crate) fn read_also(
        scratch: Option<&mut Self>,
        stored: &StoredValue<'_>,
    ) -> Result<nuthatch_snapshot_value> {
        if let Some(value) = stored.in_place()? {
            return Ok(nuthatch_snapshot_value::new(value, true));
        }
        let scratch = Self::required(scratch)?;
        let value: OwnedValue = stored.decompress(&mut scratch.buffer)?.into();
        Self::keep(Some(scratch), &Arc::new(value))
    }

    /// Keeps a decompressed value, and earlier ones.
    pub(crate) fn keep(
        scratch: Option<&mut Self>,
        value: &Arc<OwnedValue>,
    ) -> Result<nuthatch_snapshot_value> {
        let kept = Self::required(scratch)?.values.push_mut(Arc::clone(value));
        Ok(nuthatch_snapshot_value::new(kept.as_value(), false))
    }

    /// Frees all values.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    fn required(scratch: Option<&mut Self>) -> Result<&mut Self> {
        let text = "the value is compressed: expected a scratch buffer, found null";
        scratch.ok_or_else(|| Failure::Library(NUTHATCH_ERROR_COMPRESSED, text.to_owned()))
    }
}

/// Creates a buffer for decompressed values. Returns it in `scratch`. The caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_scratch_create(
    scratch: *mut *mut nuthatch_snapshot_scratch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("scratch", scratch)?;
        out.put(Box::into_raw(Box::default()));
        Ok(())
    })
}

/// Frees a buffer. Pointers to values in it become invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_scratch_free(
    scratch: *mut nuthatch_snapshot_scratch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| caller.take("scratch", scratch).map(drop))
}
