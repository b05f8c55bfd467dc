//! The name that somebody meant who wrote another.

/// Of these names the one that is most like `wrong`, if one is.
pub(crate) fn nearest<'a>(
    wrong: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const ALIKE_FROM: f64 = 0.8;
    // No name is that long, and comparing takes the product of the lengths.
    const LONGEST: usize = 64;
    if wrong.len() > LONGEST {
        return None;
    }
    let alike = names.into_iter().map(|name| (strsim::jaro_winkler(wrong, name), name));
    let best = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(alike, _)| *alike >= ALIKE_FROM).map(|(_, name)| name)
}

/// `; did you mean ...?`, or nothing.
pub(crate) fn hint<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_none() {
        let names = ["memory", "memcache", "max-clients", "timeout"];
        for (wrong, name) in [("memroy", "memory"), ("maxclients", "max-clients")] {
            assert_eq!(nearest(wrong, names), Some(name));
        }
        assert_eq!(nearest("xyz", names), None);
        assert_eq!(nearest(&"memory".repeat(11), names), None);
        assert_eq!(hint("time-out", names), "; did you mean `timeout`?");
        assert_eq!(hint("", names), "");
    }
}
