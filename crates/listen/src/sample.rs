//! Parses samples of metrics in the text format of Prometheus.

/// A sample of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSample<'t> {
    /// The name, with the suffix of the sample.
    pub name: &'t str,
    /// The labels and their values, in the order of the text.
    pub labels: Vec<(&'t str, String)>,
    /// The value as in the text. It is a number.
    pub value: &'t str,
}

impl<'t> MetricSample<'t> {
    /// Parses a line such as `name{label="value"} 1 1700000000000`. The last number is a timestamp,
    /// which is not returned. Returns `None` for other lines.
    #[must_use]
    pub fn parse(line: &'t str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at(end);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => parse_labels(rest)?,
            None => (Vec::new(), rest),
        };
        let mut words = rest.split_ascii_whitespace();
        let value = words.next().filter(|value| value.parse::<f64>().is_ok())?;
        words.next().is_none_or(|time| time.parse::<f64>().is_ok()).then_some(())?;
        (words.next().is_none() && !name.is_empty()).then_some(Self { name, labels, value })
    }
}

/// Labels and their values.
type Labels<'t> = Vec<(&'t str, String)>;

/// Parses labels up to the closing brace. Returns them and the rest of the line.
fn parse_labels(mut text: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    escaped => escaped,
                }),
                (_, character) => value.push(character),
            }
        };
        labels.push((name.trim(), value));
        text = &rest[end..];
        text = text.strip_prefix(',').unwrap_or(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_labels_and_a_number() {
        let sample = MetricSample::parse("b{x=\"1\",y=\"q\\\"\\\\\\n}\"} 2.5e3 17").expect("valid");
        assert_eq!((sample.name, sample.value), ("b", "2.5e3"));
        assert_eq!(sample.labels, [("x", "1".to_owned()), ("y", "q\"\\\n}".to_owned())]);
        assert_eq!(MetricSample::parse("c{} +Inf").map(|sample| sample.value), Some("+Inf"));
        for line in ["# TYPE a gauge", "a", "a{b} 1", "a b", "a 1 b", "a 1 2 3", "{} 1", ""] {
            assert_eq!(MetricSample::parse(line), None, "{line}");
        }
    }
}
