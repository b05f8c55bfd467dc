//! `nuthatch chunks`.

mod files;
mod get;
mod limit;
mod log;
mod not_kept;
/// An origin that misbehaves on request.
#[allow(dead_code, reason = "shared with the tests of origins, which do more with it")]
#[path = "../../../../origins/tests/reading/server.rs"]
mod origin;
mod serve;
mod stat;
mod unavailable;
mod upkeep;
mod warnings;
