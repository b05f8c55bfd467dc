//! The objects that a destination has, whatever its manifest says.

use crate::destination::Destination;
use crate::error::Result;
use crate::manifest::DataFile;
use std::collections::HashMap;

/// The objects of a destination, and their lengths.
pub(super) struct StoredObjects(HashMap<String, u64>);

impl StoredObjects {
    /// Lists the objects of a destination.
    pub(super) async fn list(destination: &Destination) -> Result<Self> {
        let objects = destination.objects().await?;
        Ok(Self(objects.into_iter().map(|object| (object.name, object.bytes)).collect()))
    }

    /// Returns whether there is the object of a file, with its length.
    pub(super) fn has(&self, file: &DataFile) -> bool {
        self.0.get(&file.object) == Some(&file.bytes)
    }
}
