//! Requests in other protocols than RESP, as they are counted.

use super::metrics::Metrics;
use super::{Client, Server};
use crate::resp::commands::subcommands;

macro_rules! others {
    ($($name:ident = $text:literal,)+) => {
        /// A request in another protocol than RESP. It is counted under a name such as
        /// `memcached|mg`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is named as its protocol names it")]
        pub enum Other {
            $($name,)+
        }

        const NAMES: &[&str] = &[$($text,)+];
    };
}

others! {
    Get = "memcached|get",
    Gat = "memcached|gat",
    Set = "memcached|set",
    Add = "memcached|add",
    Replace = "memcached|replace",
    Append = "memcached|append",
    Prepend = "memcached|prepend",
    Cas = "memcached|cas",
    Incr = "memcached|incr",
    Decr = "memcached|decr",
    Touch = "memcached|touch",
    Delete = "memcached|delete",
    FlushAll = "memcached|flush_all",
    Stats = "memcached|stats",
    Version = "memcached|version",
    Verbosity = "memcached|verbosity",
    Quit = "memcached|quit",
    Mg = "memcached|mg",
    Ms = "memcached|ms",
    Md = "memcached|md",
    Ma = "memcached|ma",
    Me = "memcached|me",
    Mn = "memcached|mn",
    PmcGet = "pmc|get",
    PmcSet = "pmc|set",
    PmcDel = "pmc|del",
    PmcFault = "pmc|fault",
    MrcacheGet = "mrcache|get",
    MrcacheSet = "mrcache|set",
    MrcacheGetZ = "mrcache|getz",
    MrcacheSetZ = "mrcache|setz",
    MrcacheStat = "mrcache|stat",
}

/// How many names there are that requests are counted under.
pub(crate) fn count() -> usize {
    subcommands::count() + NAMES.len()
}

/// Those names, by their numbers.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    subcommands::everything().map(|command| command.name).chain(NAMES.iter().copied())
}

impl Client {
    /// A request of so many bytes begins.
    #[inline]
    pub fn begin(&self, server: &Server, request_len: usize) {
        self.metrics.begin(Metrics::is_short_len(request_len, &server.settings), &server.settings);
    }

    /// The request is done that [began](Self::begin) last.
    #[inline]
    pub fn end(
        &self,
        server: &Server,
        (other, request_len, reply_len): (Other, usize, usize),
        now_ms: u64,
    ) {
        let number = subcommands::count() + other as usize;
        let short = Metrics::is_short_len(request_len, &server.settings);
        self.metrics.end(number, (short, reply_len), &server.settings);
        self.connection.command.set(number as u64 + 1);
        self.connection.active_ms.set(now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_name() {
        assert_eq!(NAMES[Other::Get as usize], "memcached|get");
        assert_eq!(NAMES[Other::Mn as usize], "memcached|mn");
        assert_eq!(NAMES[Other::MrcacheStat as usize], "mrcache|stat");
        assert_eq!(names().count(), count());
    }
}
