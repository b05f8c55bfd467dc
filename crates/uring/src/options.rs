//! The size of a ring, and how it waits.

/// The size of a ring, and how it waits.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Maximum operations of one submission. More take several system calls. The kernel rounds it
    /// up to a power of two and limits it to 32,768.
    pub operations: u32,
    /// Completions for which the ring has room, at least as many as `operations`. The kernel keeps
    /// further ones until they fit.
    pub completions: u32,
    /// Whether a thread that waits counts as waiting for I/O in the statistics of the system.
    /// Before Linux 6.15, it always does.
    pub counts_as_iowait: bool,
}
