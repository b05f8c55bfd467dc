//! The columns of a table that become rows. One column has the keys. Either one other column has
//! the values, or all others have, under the keys `<key>.<column>`.

/// The names of the columns with keys and values.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnNames {
    /// The name of the column with the keys.
    pub(crate) key: String,
    /// The name of the column with the values; `None` for all columns but the key.
    pub(crate) value: Option<String>,
}

/// A column with values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueColumn {
    /// The index among all columns of the table.
    pub(crate) index: usize,
    /// What is appended to the key: `.` and the name of the column, or nothing.
    pub(crate) suffix: String,
}

impl ColumnNames {
    /// Finds the columns by name. Returns the index of the key and the columns with values.
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

/// Returns the names for an error message, at most 20.
fn list(names: &[String]) -> String {
    const MAX_LISTED: usize = 20;
    let mut list: Vec<_> =
        names.iter().take(MAX_LISTED).map(|name| format!("\"{}\"", name.escape_debug())).collect();
    if names.len() > MAX_LISTED {
        list.push(format!("and {} more", names.len() - MAX_LISTED));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(key: &str, value: Option<&str>, names: &[&str]) -> Result<String, String> {
        let columns = ColumnNames { key: key.to_owned(), value: value.map(str::to_owned) };
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let (key, values) = columns.find(&names)?;
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
    fn missing_and_ambiguous_columns_are_errors() {
        let missing = "expected a column \"x\", found \"a\", \"b\"";
        assert_eq!(find("x", None, &["a", "b"]), Err(missing.to_owned()));
        assert_eq!(find("a", Some("x"), &["a", "b"]), Err(missing.to_owned()));
        let several = "expected one column \"b\", found several";
        assert_eq!(find("a", None, &["a", "b", "b"]), Err(several.to_owned()));
    }
}
