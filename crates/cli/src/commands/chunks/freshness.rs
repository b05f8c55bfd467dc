//! Whether an origin is asked, and how old a version may be that it does not confirm.

use super::parse_time;
use clap::Args;
use nuthatch_origins::Settings;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Freshness {
    /// Never connect to the origin: read what the cache has, whatever its age, and fail otherwise
    #[arg(long)]
    offline: bool,
    /// Maximum age of a version that is used while the origin is away, such as 1h
    ///
    /// The age is the time since the origin last confirmed the version. Without it: as long as the
    /// origin allows by "Cache-Control: stale-if-error", otherwise not at all. With --offline, such
    /// a limit refuses older versions.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_stale: Option<Duration>,
}

impl Freshness {
    pub(super) fn on(self, settings: Settings) -> Settings {
        let settings = settings.offline(self.offline);
        self.max_stale.map_or(settings.clone(), |age| settings.max_stale(age))
    }

    pub(super) fn is_offline(self) -> bool {
        self.offline
    }
}
