//! Templates of keys, such as `user:{id}.{column}`.

/// The placeholder of the name of the column that has the value.
const NAME: &str = "column";

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Text that all keys have.
    Text(String),
    /// The value of a column, by its name.
    Column(String),
    /// The name of the column that has the value.
    Name,
}

/// A template of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate(pub Vec<Segment>);

impl KeyTemplate {
    /// Parses a template. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found if it is not one.
    pub fn parse(template: &str) -> Result<Self, String> {
        let (mut segments, mut text) = (Vec::new(), String::new());
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            text.push_str(before);
            if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
                text.push_str(&brace[..1]);
                rest = after;
                continue;
            }
            let named = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let Some((name, after)) = named.filter(|(name, _)| !name.is_empty()) else {
                return Err(format!(
                    "key = \"{template}\": expected the name of a column in braces, such as \
                     {{id}}, found \"{brace}\"; {{{{ stands for a brace"
                ));
            };
            if !text.is_empty() {
                segments.push(Segment::Text(std::mem::take(&mut text)));
            }
            segments.push(match name {
                NAME => Segment::Name,
                name => Segment::Column(name.to_owned()),
            });
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() {
            segments.push(Segment::Text(text));
        }
        if !segments.iter().any(|segment| matches!(segment, Segment::Column(_))) {
            return Err(format!(
                "key = \"{template}\": expected the name of a column in braces, such as {{id}}: \
                 without one, all rows have the same key"
            ));
        }
        Ok(Self(segments))
    }

    /// Returns whether keys contain the name of the column that has the value.
    pub fn has_name(&self) -> bool {
        self.0.contains(&Segment::Name)
    }

    /// Returns the names of the columns whose values keys contain.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Column(name) => Some(name.as_str()),
            Segment::Text(_) | Segment::Name => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_columns_and_text() {
        let template = KeyTemplate::parse("user:{id}.{column}").expect("a template");
        let expected = [
            Segment::Text("user:".into()),
            Segment::Column("id".into()),
            Segment::Text(".".into()),
            Segment::Name,
        ];
        assert_eq!(template.0, expected);
        assert!(template.has_name());
        let template = KeyTemplate::parse("{a}{b}{{x}}").expect("a template");
        assert_eq!(template.columns().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(template.0.last(), Some(&Segment::Text("{x}".into())));
    }

    #[test]
    fn text_that_is_no_template_is_refused() {
        for text in ["user", "user:{", "user:{}", "user:}", "a{id", "{column}", ""] {
            let error = KeyTemplate::parse(text).expect_err(text);
            assert!(error.contains("expected"), "{error}");
        }
    }
}
