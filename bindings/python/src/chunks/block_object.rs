//! An object that is stored as blocks, without its Python class.

use super::folder::Folder;
use super::results::raised;
use nuthatch_chunks::{Chunks, Result};
use pyo3::prelude::*;
use std::sync::Arc;

/// An object that is stored as blocks, in a folder that each process opens itself.
#[derive(Clone)]
pub(crate) struct BlockObject {
    pub(super) folder: Arc<Folder>,
    address: Arc<str>,
    validator: Arc<str>,
    pub(super) object_len: u64,
    pub(super) block_len: u64,
    pub(super) key: nuthatch_chunks::Key,
}

impl BlockObject {
    pub(super) fn open(
        py: Python<'_>,
        folder: Arc<Folder>,
        address: String,
        validator: String,
        object_len: u64,
        block_len: u64,
    ) -> PyResult<Self> {
        let chunks = folder.chunks(py)?;
        let blocks = raised(py, chunks.blocks(&address, &validator, object_len, block_len))?;
        let key = blocks.key().clone();
        let (address, validator) = (address.into(), validator.into());
        Ok(Self { folder, address, validator, object_len, block_len, key })
    }

    /// Returns the same object in `chunks`, the folder as this process has it open.
    pub(super) fn of<'a>(&self, chunks: &'a Chunks) -> Result<nuthatch_chunks::Blocks<'a>> {
        chunks.blocks(&self.address, &self.validator, self.object_len, self.block_len)
    }

    /// Runs `work` on the object, without the interpreter's lock.
    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&nuthatch_chunks::Blocks<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let chunks = self.folder.chunks(py)?;
        raised(py, py.detach(|| work(&self.of(&chunks)?)))
    }
}
