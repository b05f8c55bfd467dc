//! Which columns of a table become rows: one is the key, and either another one is the value, or
//! every other one is a value under `<key>.<column>`.

/// The columns that options name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// The column with the keys.
    pub(crate) key: String,
    /// The column with the values; without it every other column has some.
    pub(crate) value: Option<String>,
}

/// A column with values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueColumn {
    /// Its place among all columns.
    pub(crate) index: usize,
    /// What it adds to the key: `.` and its name, or nothing.
    pub(crate) suffix: String,
}

impl Choice {
    /// Finds the columns by name: the key's place and the columns with values.
    pub(crate) fn find(&self, names: &[String]) -> Result<(usize, Vec<ValueColumn>), String> {
        let find = |name: &str| {
            let mut found = names.iter().enumerate().filter(|(_, other)| *other == name);
            match (found.next(), found.next()) {
                (Some((index, _)), None) => Ok(index),
                (None, _) => Err(format!("expected a column \"{name}\", found {}", list(names))),
                (Some(_), Some(_)) => Err(format!("expected one column \"{name}\", found several")),
            }
        };
        let key = find(&self.key)?;
        if let Some(value) = &self.value {
            return Ok((key, vec![ValueColumn { index: find(value)?, suffix: String::new() }]));
        }
        let mut values = Vec::new();
        for (index, name) in names.iter().enumerate().filter(|(index, _)| *index != key) {
            find(name)?;
            values.push(ValueColumn { index, suffix: format!(".{name}") });
        }
        Ok((key, values))
    }
}

fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut list: Vec<_> =
        names.iter().take(MOST).map(|name| format!("\"{}\"", name.escape_debug())).collect();
    if names.len() > MOST {
        list.push(format!("and {} more", names.len() - MOST));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(key: &str, value: Option<&str>, names: &[&str]) -> Result<String, String> {
        let choice = Choice { key: key.to_owned(), value: value.map(str::to_owned) };
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let (key, values) = choice.find(&names)?;
        let values: Vec<_> = values.iter().map(|v| format!("{}{}", v.index, v.suffix)).collect();
        Ok(format!("{key} {}", values.join(" ")))
    }

    #[test]
    fn columns_are_found_by_name() {
        assert_eq!(find("id", Some("b"), &["a", "id", "b"]).as_deref(), Ok("1 2"));
        assert_eq!(find("id", None, &["a", "id", "b"]).as_deref(), Ok("1 0.a 2.b"));
        assert_eq!(find("id", Some("id"), &["id"]).as_deref(), Ok("0 0"));
    }

    #[test]
    fn columns_that_are_missing_or_ambiguous_are_told() {
        let missing = "expected a column \"x\", found \"a\", \"b\"";
        assert_eq!(find("x", None, &["a", "b"]), Err(missing.to_owned()));
        assert_eq!(find("a", Some("x"), &["a", "b"]), Err(missing.to_owned()));
        let several = "expected one column \"b\", found several";
        assert_eq!(find("a", None, &["a", "b", "b"]), Err(several.to_owned()));
    }
}
