//! Links in Markdown: each refers to an existing file or folder of the repository, and to an
//! existing heading. Network addresses are not checked.

use super::{File, Finding, Tree};

/// Finds dead relative links in Markdown files.
pub fn dead(tree: &Tree) -> Vec<Finding> {
    tree.ending("md").flat_map(|file| dead_in(tree, file)).collect()
}

fn dead_in(tree: &Tree, file: &File) -> Vec<Finding> {
    prose(&file.text)
        .into_iter()
        .flat_map(|(n, line)| targets(&without_code(line)).into_iter().map(move |t| (n, t)))
        .filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|(number, target)| Some((number, expectation(tree, file, &target)?, target)))
        .map(|(number, expected, target)| {
            Finding::new(file, number, expected, format!("a link to {target}"))
        })
        .collect()
}

/// Returns the requirement that a link violates, or `None` if its target exists.
fn expectation(tree: &Tree, from: &File, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { Some(from.path.clone()) } else { resolve(&from.path, path) };
    let Some(path) = path.filter(|path| tree.has(path)) else {
        return Some("a file of this repository, by a relative path".to_owned());
    };
    let page = tree.file(&path).filter(|page| page.ending() == "md")?;
    let missing = !anchor.is_empty() && !anchors(&page.text).contains(&anchor.to_owned());
    missing.then(|| format!("a heading #{anchor} in {path}"))
}

/// Returns the path from the root for a link `to` in the file `from`, or `None` if the link leaves
/// the root.
fn resolve(from: &str, to: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.trim_end_matches('/').split('/') {
        match part {
            "" => return None,
            "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines outside code blocks, with their numbers.
pub(super) fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut open = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fence = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (open, fence) {
            (None, None) => lines.push((number, line)),
            (None, Some(_)) => open = fence,
            (Some(_), _) if open == fence => open = None,
            (Some(_), _) => {}
        }
    }
    lines
}

/// Returns a line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Returns the targets of a line's links and images: `[text](target "title")` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(t, _)| t);
    let defined = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let named = defined.filter(|(name, _)| !name.contains(']')).map(|(_, target)| target);
    inline
        .chain(named)
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_matches(['<', '>']).to_owned())
        .collect()
}

/// Returns the anchors of a page: those that forges generate from headings, and explicit ones.
fn anchors(text: &str) -> Vec<String> {
    let lines = prose(text);
    let headings = lines.iter().filter(|(_, line)| line.starts_with('#'));
    let names: Vec<String> = headings.map(|(_, line)| anchor(line)).collect();
    let numbered = names.iter().enumerate().map(|(at, name)| {
        match names[..at].iter().filter(|earlier| *earlier == name).count() {
            0 => name.clone(),
            repeats => format!("{name}-{repeats}"),
        }
    });
    let set = lines.iter().filter_map(|(_, line)| line.split_once("<a id=\"")?.1.split_once('"'));
    numbered.chain(set.map(|(name, _)| name.to_owned())).collect()
}

/// Returns the anchor of a heading: its words in lower case, joined by hyphens, without
/// punctuation.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim();
    let mut parts = heading.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    // Replaces each link by its text.
    let text = parts.fold(first, |text, rest| text + rest.split_once(')').map_or(rest, |r| r.1));
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings for a page at docs/page.md, in a tree with docs/other.md and
    /// src/lib.rs.
    fn check(page: &str) -> Vec<String> {
        let other = "# Other page\n## Two `words`, [one](x.md) link\n## Same\n## Same\n\
                     <a id=\"set\"></a>\n```\n# In code\n```\n";
        let tree = Tree::new(vec![
            File::text("docs/page.md", page),
            File::text("docs/other.md", &other.replace("x.md", "page.md")),
            File::text("src/lib.rs", ""),
        ]);
        dead(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dead_links_are_found() {
        for target in ["gone.md", "../../out.md", "/docs/other.md", "other", "<gone.md>"] {
            assert_eq!(check(&format!("text\nsee [a]({target}) here\n")).len(), 1, "{target}");
        }
        let defined = check("[a]: gone.md\n");
        let expected = "docs/page.md:1: expected a file of this repository, by a relative path, \
                        found a link to gone.md";
        assert_eq!(defined, [expected]);
    }

    #[test]
    fn dead_anchors_are_found() {
        for target in ["#gone", "other.md#gone", "other.md#in-code", "other.md#same-2"] {
            assert_eq!(check(&format!("# Title\n[a]({target})\n")).len(), 1, "{target}");
        }
    }

    #[test]
    fn live_links_pass() {
        let targets = [
            "other.md",
            "../src",
            "../src/",
            "../src/lib.rs#L7",
            "./other.md#other-page",
            "#a-title",
            "other.md#two-words-one-link",
            "other.md#same-1",
            "other.md#set",
            "https://example.org/x",
            "mailto:a@example.org",
            "other.md \"title\"",
            "<other.md>",
        ];
        for target in targets {
            assert_eq!(check(&format!("# A title!\n![a]({target})\n")), [""; 0], "{target}");
        }
    }

    #[test]
    fn code_is_no_link() {
        assert_eq!(check("`a[b](c)`\n```text\n[a](b)\n```\n"), [""; 0]);
        assert_eq!(check("```\n```\n`a` [a](gone.md)\n").len(), 1);
    }
}
