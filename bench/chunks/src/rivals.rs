//! The other systems, each set up as its own documentation has it.

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

/// Ends what was started beside this program.
pub fn stop() {
    #[cfg(feature = "rivals")]
    solid::stop();
}
