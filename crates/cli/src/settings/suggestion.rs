//! Suggestions for misspelled names.

/// Returns the name that is most similar to `wrong`, if one is similar enough.
pub(crate) fn closest_name<'a>(
    wrong: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const MIN_SIMILARITY: f64 = 0.8;
    // All names are shorter, and the time of a comparison is the product of the lengths.
    const MAX_LEN: usize = 64;
    if wrong.len() > MAX_LEN {
        return None;
    }
    let similarity = names.into_iter().map(|name| (strsim::jaro_winkler(wrong, name), name));
    let best = similarity.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY).map(|(_, name)| name)
}

/// Returns `; did you mean ...?` with the most similar name, or nothing.
pub(crate) fn suggestion<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    closest_name(wrong, names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_have_a_suggestion() {
        let names = ["memory", "memcache", "max-clients", "timeout"];
        for (wrong, name) in [("memroy", "memory"), ("maxclients", "max-clients")] {
            assert_eq!(closest_name(wrong, names), Some(name));
        }
        assert_eq!(closest_name("xyz", names), None);
        assert_eq!(closest_name(&"memory".repeat(11), names), None);
        assert_eq!(suggestion("time-out", names), "; did you mean `timeout`?");
        assert_eq!(suggestion("", names), "");
    }
}
