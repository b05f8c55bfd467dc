//! Delivery of snapshots in Python: publication, generations, and followers.
//!
//! | module | content |
//! |---|---|
//! | `failure` | failures of delivery, and their conversion into exceptions |
//! | `work` | operations that run on threads of their own |
//! | `publish` | publication, and the generations of a destination |
//! | `follower` | the class `Follower` |
//! | `shards` | shards that tasks of a job upload |
//! | `staging` | staged files of jobs, and downloads |
//!
//! The functions return tuples, of which `nuthatch.delivery` makes data classes.

mod failure;
mod follower;
mod publish;
mod shards;
mod staging;
mod work;

use pyo3::prelude::*;

/// Adds the classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<follower::FollowerHandle>()?;
    module.add_function(wrap_pyfunction!(follower::_open_follower, module)?)?;
    module.add_function(wrap_pyfunction!(staging::_stage_file, module)?)?;
    module.add_function(wrap_pyfunction!(staging::_fetch_staged, module)?)?;
    module.add_function(wrap_pyfunction!(staging::_remove_staged, module)?)?;
    module.add_function(wrap_pyfunction!(staging::_download, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_upload_shards, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_fetch_headers, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_publish_shards, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_remove_uploads, module)?)?;
    module.add_function(wrap_pyfunction!(publish::_publish, module)?)?;
    module.add_function(wrap_pyfunction!(publish::_generations, module)?)?;
    module.add_function(wrap_pyfunction!(publish::_roll_back, module)?)
}
