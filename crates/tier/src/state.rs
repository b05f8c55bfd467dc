//! In which state a process leaves a folder.

/// The state in which the last process left a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderState {
    /// There was no folder, or nothing in it.
    #[default]
    New,
    /// The process died. Its records are valid as far as the removal log does not name them.
    NotClosed,
    /// The process closed the folder with [`Tier::close`](crate::Tier::close).
    Closed,
    /// The system stopped while the folder was open. Entries of the removal log may be lost then,
    /// so records may be deleted or overwritten ones. The caller either calls
    /// [`Tier::clear`](crate::Tier::clear), or removes the item files that it cannot vouch for and
    /// calls [`Tier::trust_records`](crate::Tier::trust_records). Until then each opening reports
    /// it.
    LostPower,
    /// The process used the items without recording in the removal log which of them changed: see
    /// [`Tier::mark_outdated`](crate::Tier::mark_outdated). The caller calls
    /// [`Tier::clear`](crate::Tier::clear). Until then each opening reports it.
    Outdated,
}
