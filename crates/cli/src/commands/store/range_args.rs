//! The arguments with a range of keys.

use clap::Args;
use nuthatch_store::Range;
use std::ffi::OsString;

/// The arguments with a range of keys.
#[derive(Debug, Args)]
pub(super) struct RangeArgs {
    /// Keys from this one on; it is included
    #[arg(long, value_name = "KEY", conflicts_with = "after", help_heading = "Keys")]
    from: Option<OsString>,
    /// Keys after this one; it is excluded
    #[arg(long, value_name = "KEY", help_heading = "Keys")]
    after: Option<OsString>,
    /// Keys up to this one; it is included
    #[arg(long, value_name = "KEY", conflicts_with = "before", help_heading = "Keys")]
    to: Option<OsString>,
    /// Keys before this one; it is excluded
    #[arg(long, value_name = "KEY", help_heading = "Keys")]
    before: Option<OsString>,
    /// Keys that begin with this text
    #[arg(long, value_name = "TEXT", help_heading = "Keys")]
    prefix: Option<OsString>,
}

impl RangeArgs {
    pub(super) fn range(&self) -> Range {
        let bytes = |text: &OsString| text.as_encoded_bytes().to_vec();
        let mut range = Range::all();
        if let Some(key) = &self.from {
            range = range.from(bytes(key));
        }
        if let Some(key) = &self.after {
            range = range.after(bytes(key));
        }
        if let Some(key) = &self.to {
            range = range.to(bytes(key));
        }
        if let Some(key) = &self.before {
            range = range.before(bytes(key));
        }
        match &self.prefix {
            Some(prefix) => range.and(&Range::prefix(bytes(prefix))),
            None => range,
        }
    }

    /// Returns whether any bound is set.
    pub(super) fn is_given(&self) -> bool {
        let Self { from, after, to, before, prefix } = self;
        [from, after, to, before, prefix].iter().any(|bound| bound.is_some())
    }
}
