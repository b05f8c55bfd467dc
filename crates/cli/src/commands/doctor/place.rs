//! The addresses to check.

use nuthatch_listen::Address;

/// An address of a setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'s> {
    /// What its finding is called.
    pub(super) name: &'static str,
    pub(super) setting: &'static str,
    pub(super) address: &'s Address,
}
