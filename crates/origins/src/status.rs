//! What HTTP statuses and `Cache-Control` of origins mean: one rule for the library, the command
//! and Python.

/// Returns whether a request that got this status may succeed when it is retried: 408, 425, 429,
/// 500, 502 to 504 and 506 to 599. A server that does not support the method (501) or the HTTP
/// version (505) responds to a retry in the same way.
#[must_use]
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502..=504 | 506..=599)
}

/// Returns whether this status means that the origin is unavailable, so that a stale version may be
/// used: 429, and 500, 502, 503 and 504 as in RFC 5861. 408 and 425 are temporary, too, but show
/// that the origin is available.
#[must_use]
pub fn is_unavailable(status: u16) -> bool {
    matches!(status, 429 | 500 | 502..=504)
}

/// Returns for how many seconds an origin allows a stale version while it is unavailable: the value
/// of `stale-if-error` in `Cache-Control` (RFC 5861). `None` if there is no such directive, or if
/// `must-revalidate`, `no-cache` or `no-store` forbids stale versions.
#[must_use]
pub fn stale_if_error(cache_control: &str) -> Option<u64> {
    let directives = || cache_control.split(',').map(str::trim);
    let forbids = |directive: &str| {
        let name = directive.split_once('=').map_or(directive, |(name, _)| name).trim();
        ["must-revalidate", "no-cache", "no-store"]
            .iter()
            .any(|forbidding| name.eq_ignore_ascii_case(forbidding))
    };
    if directives().any(forbids) {
        return None;
    }
    directives().find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("stale-if-error").then(|| value.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_an_unavailable_origin_is_transient_and_not_the_other_way_round() {
        let statuses = |rule: fn(u16) -> bool| (100..600).filter(move |status| rule(*status));
        assert!(statuses(is_unavailable).eq([429, 500, 502, 503, 504]));
        assert!(statuses(is_unavailable).all(is_transient));
        let others = statuses(is_transient).filter(|status| !is_unavailable(*status));
        assert!(others.eq([408, 425].into_iter().chain(506..600)));
    }

    #[test]
    fn an_origin_says_for_how_long_an_answer_may_be_used_while_it_is_away() {
        for (value, expected) in [
            ("stale-if-error=60", Some(60)),
            ("max-age=1, Stale-If-Error = \"7\"", Some(7)),
            ("max-age=1", None),
            ("stale-if-error", None),
            ("stale-if-error=x", None),
            ("stale-if-error=60, must-revalidate", None),
            ("no-cache=\"Set-Cookie\", stale-if-error=60", None),
        ] {
            assert_eq!(stale_if_error(value), expected, "{value}");
        }
    }
}
