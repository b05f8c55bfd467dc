//! What HTTP statuses of origins mean: one rule for the library, the command and Python.

/// Returns whether a request that was answered with this status may succeed when it is repeated:
/// 408, 425, 429, 500, 502 to 504 and 506 to 599. A server that does not support the method (501)
/// or the version (505) answers the same again.
#[must_use]
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502..=504 | 506..=599)
}

/// Returns whether this status means that the origin is unavailable, so that a stale version may be
/// used: 429, and 500, 502, 503 and 504 as in RFC 5861. With 408 and 425 the origin has answered
/// and complains about the request.
#[must_use]
pub fn is_unavailable(status: u16) -> bool {
    matches!(status, 429 | 500 | 502..=504)
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
}
