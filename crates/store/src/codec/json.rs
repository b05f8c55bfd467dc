//! Values of any type that serde supports, as JSON.

use super::Value;
use crate::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::marker::PhantomData;

/// Values of any type that serde supports, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(PhantomData<T>);

impl<T: Serialize + DeserializeOwned + 'static> Value for Json<T> {
    type Item<'t> = T;

    fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>> {
        let bytes = serde_json::to_vec(item);
        bytes
            .map(Cow::Owned)
            .map_err(|e| Error::decode("a value that JSON can hold", e.to_string()))
    }

    fn decode(bytes: &[u8]) -> Result<Self::Item<'_>> {
        serde_json::from_slice(bytes).map_err(|e| Error::decode("JSON of the type", e.to_string()))
    }
}
