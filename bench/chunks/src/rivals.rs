//! The other systems, configured as their documentation recommends.

#[cfg(feature = "rivals")]
mod foyer;
#[cfg(feature = "rivals")]
mod sccache;
#[cfg(feature = "rivals")]
mod solid;
#[cfg(feature = "rivals")]
mod xet;

use crate::systems::Entrant;

pub fn entrants() -> Vec<Entrant> {
    #[cfg(feature = "rivals")]
    let entrants = vec![xet::ENTRANT, sccache::ENTRANT, foyer::ENTRANT, solid::ENTRANT];
    #[cfg(not(feature = "rivals"))]
    let entrants = Vec::new();
    entrants
}

/// A guard that stops all started servers on drop, even after a panic.
pub struct End;

impl Drop for End {
    fn drop(&mut self) {
        #[cfg(feature = "rivals")]
        solid::stop();
    }
}
