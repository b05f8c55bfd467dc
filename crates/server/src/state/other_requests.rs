//! Requests of protocols other than RESP, for metrics.

use super::catalog::{Catalog, RESP_COMMANDS};

macro_rules! others {
    ($($name:ident = $text:literal,)+) => {
        /// The kind of a request in a protocol other than RESP. Requests are counted by kind, under
        /// names such as `memcached|mg`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is named as its protocol names it")]
        pub enum OtherRequest {
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

impl OtherRequest {
    /// Returns the number under which the request is counted: those of RESP come first.
    #[inline]
    pub(crate) fn number(self) -> usize {
        RESP_COMMANDS + self as usize
    }
}

/// The number of names under which requests are counted.
pub(crate) const COUNT: usize = RESP_COMMANDS + NAMES.len();

/// Returns those names, in the order of their numbers.
pub(crate) fn names(catalog: &Catalog) -> impl Iterator<Item = &'static str> {
    catalog.all().iter().map(|command| command.name).chain(NAMES.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_their_names() {
        assert_eq!(NAMES[OtherRequest::Get as usize], "memcached|get");
        assert_eq!(NAMES[OtherRequest::Mn as usize], "memcached|mn");
        assert_eq!(NAMES[OtherRequest::MrcacheStat as usize], "mrcache|stat");
    }
}
