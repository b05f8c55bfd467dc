//! READMEs of the languages: all have the same shape, so that a reader of one finds the way in any.

use super::links::prose;
use super::{File, Finding};

/// The headings of the second level, in this order. `Speed` may be missing.
const HEADINGS: [&str; 5] = ["Install", "Use", "Speed", "Develop", "Test"];
const OPTIONAL: &str = "Speed";

/// Finds a README whose headings of the second level are not those of all languages.
pub fn other_shape(file: &File) -> Vec<Finding> {
    let headings: Vec<_> =
        prose(&file.text).into_iter().filter_map(|(_, line)| line.strip_prefix("## ")).collect();
    let has_optional = headings.contains(&OPTIONAL);
    let expected: Vec<_> =
        HEADINGS.into_iter().filter(|name| has_optional || *name != OPTIONAL).collect();
    if headings == expected {
        return Vec::new();
    }
    let (expected, found) = (expected.join(", "), headings.join(", "));
    vec![Finding::new(file, 1, format!("the headings {expected}"), found)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_tidy(text: &str) -> bool {
        other_shape(&File::text("bindings/a/README.md", text)).is_empty()
    }

    #[test]
    fn the_shape_of_all_languages_passes() {
        assert!(is_tidy("# A\n\n## Install\n## Use\n### Watch\n## Develop\n## Test\n"));
        assert!(is_tidy("## Install\n```\n## code\n```\n## Use\n## Speed\n## Develop\n## Test\n"));
    }

    #[test]
    fn a_missing_heading_and_another_order_are_found() {
        assert!(!is_tidy("## Install\n## Use\n## Develop\n"));
        assert!(!is_tidy("## Use\n## Install\n## Develop\n## Test\n"));
    }
}
