//! The arguments for requests to the origin: whether to send them, and the maximum age of a version
//! that the origin does not confirm.

use clap::Args;
use nuthatch_origins::Settings;
use nuthatch_units::parse_time;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct FreshnessArgs {
    /// Read versions of any age from the cache only, and never connect to the origin
    #[arg(long)]
    offline: bool,
    /// Maximum age of a version to use while the origin is unavailable, such as 1h
    ///
    /// The age is the time since the origin last confirmed the version. By default the origin
    /// decides with "Cache-Control: stale-if-error"; without that header no stale version is used.
    /// With --offline, versions older than this are refused.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_stale: Option<Duration>,
}

impl FreshnessArgs {
    pub(super) fn apply(self, settings: Settings) -> Settings {
        let settings = settings.offline(self.offline);
        self.max_stale.map_or(settings.clone(), |age| settings.max_stale(age))
    }

    pub(super) fn is_offline(self) -> bool {
        self.offline
    }
}
