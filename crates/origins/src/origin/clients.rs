//! The clients of origins, which all objects of a cache share.

use super::Origin;
use super::file::FileOrigin;
use super::http::{Http, HttpOrigin};
use super::store::{self, Stores};
use crate::access::Access;
use crate::address::{Address, Place};
use crate::error::Result;
use crate::settings::Settings;
use std::sync::{Arc, OnceLock};

/// The clients that all objects of a cache share.
pub(crate) struct Clients {
    /// Created at the first use, since that reads files, such as the CA certificates of the system.
    http: OnceLock<Arc<Http>>,
    stores: Stores,
    settings: Settings,
}

/// Returns the address in the form that keys of the cache have.
pub(crate) fn plain(address: Address) -> String {
    match address.place {
        Place::Store(place) => format!("{}/{}", store::located(&place), place.name),
        Place::Http(_) | Place::File(_) => address.plain,
    }
}

impl Clients {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (http, stores) = (OnceLock::new(), Stores::new(settings));
        Self { http, stores, settings: settings.clone() }
    }

    /// Returns whether the origin of an object can be created without reading files.
    pub(crate) fn ready_for(&self, place: &Place) -> bool {
        match place {
            Place::Http(_) => self.http.get().is_some(),
            Place::Store(_) => false,
            Place::File(_) => true,
        }
    }

    fn http(&self) -> Result<&Arc<Http>> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let http = Arc::new(Http::new(&self.settings)?);
        Ok(self.http.get_or_init(|| http))
    }

    /// Returns the origin of an address, and the address in the form that keys have. May read files
    /// with certificates and credentials.
    pub(crate) fn origin(&self, address: Address, access: &Access) -> Result<(Origin, String)> {
        let Address { place, plain } = address;
        Ok(match place {
            Place::Http(place) => {
                let origin = HttpOrigin::new(self.http()?.clone(), place, access, &plain)?;
                (Origin::Http(origin), plain)
            }
            Place::Store(place) => {
                let (origin, plain) = self.stores.origin(&place, &plain)?;
                (Origin::Store(origin), plain)
            }
            Place::File(path) => (Origin::File(FileOrigin::new(path, plain.clone())), plain),
        })
    }
}
