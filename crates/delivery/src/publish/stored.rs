//! The objects that a destination has, whatever its manifest says.

use crate::destination::{Destination, StoredObject};
use crate::error::Result;
use crate::manifest::DataFile;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// The objects of a destination by name, at the beginning of a publication.
pub(super) struct StoredObjects(HashMap<String, StoredObject>);

impl StoredObjects {
    /// Lists the objects of a destination.
    pub(super) async fn list(destination: &Destination) -> Result<Self> {
        let objects = destination.objects().await?;
        Ok(Self(objects.into_iter().map(|object| (object.name.clone(), object)).collect()))
    }

    /// Returns whether there is the object of a file, with its length.
    pub(super) fn has(&self, file: &DataFile) -> bool {
        self.0.get(&file.object).is_some_and(|object| object.bytes == file.bytes)
    }

    /// Returns the names of objects that are older than the newest one by more than this. Their
    /// times are by the clock of the store; this machine may have another.
    pub(super) fn older_than(&self, age: Duration) -> impl Iterator<Item = &str> {
        let newest: Option<SystemTime> = self.0.values().map(|object| object.modified).max();
        let is_old = move |object: &&StoredObject| {
            let found = newest.and_then(|newest| newest.duration_since(object.modified).ok());
            found.is_some_and(|found| found > age)
        };
        self.0.values().filter(is_old).map(|object| object.name.as_str())
    }
}
