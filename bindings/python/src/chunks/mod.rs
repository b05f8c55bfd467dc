//! The chunk cache in Python, with blocking calls.
//!
//! `cache` is the class of a folder, `blocks` that of objects with an address, and `flights` has
//! the fetches of missing ranges. All of them use `folder`, which opens the folder again in a child
//! made by `fork`.

mod block_object;
mod blocks;
mod cache;
mod failure;
mod flights;
mod folder;
mod key;
mod options;
mod results;
mod view;

pub(crate) use cache::Chunks;
pub(crate) use folder::Folder;
use pyo3::prelude::*;

/// Adds the classes of the chunk cache to the module. Their names in the module differ from those
/// of the store.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Chunks", py.get_type::<cache::Chunks>())?;
    module.add("ChunksBlocks", py.get_type::<blocks::Blocks>())?;
    module.add("ChunksSingleFlight", py.get_type::<flights::SingleFlight>())?;
    module.add("ChunksKey", py.get_type::<key::Key>())?;
    module.add("ChunksMissing", py.get_type::<results::Missing>())?;
    module.add("ChunksObject", py.get_type::<results::Object>())?;
    module.add("ChunksRead", py.get_type::<results::Read>())?;
    module.add("ChunksStat", py.get_type::<results::Stat>())?;
    module.add("ChunksStored", py.get_type::<results::Stored>())?;
    module.add("ChunksFlight", py.get_type::<flights::Flight>())?;
    module.add("ChunksVerified", py.get_type::<results::Verified>())?;
    module.add("ChunksView", py.get_type::<view::View>())?;
    module.add("ChunksWaiter", py.get_type::<flights::Waiter>())?;
    module.add_function(wrap_pyfunction!(flights::_merge_gaps, module)?)
}
