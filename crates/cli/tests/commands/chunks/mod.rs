//! `nuthatch chunks`.

mod upkeep;
