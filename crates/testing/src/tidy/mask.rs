//! Rust code without comments and literals, for rules that apply to code only.

/// Replaces comments and literals by spaces. Line breaks and therefore line numbers are preserved.
pub(crate) fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = hidden_end(&chars, at).min(chars.len());
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Returns the end of the comment or literal that begins at `at`, or `at` if there is none.
fn hidden_end(chars: &[char], at: usize) -> usize {
    match (chars[at], chars.get(at + 1)) {
        ('/', Some('/')) => at + chars[at..].iter().take_while(|&&c| c != '\n').count(),
        ('/', Some('*')) => block_comment_end(chars, at),
        ('"', _) => quoted_end(chars, at, '"'),
        ('r', Some('"' | '#')) => raw_string_end(chars, at),
        // Any other apostrophe begins a lifetime.
        ('\'', Some(&next)) if next == '\\' || chars.get(at + 2) == Some(&'\'') => {
            quoted_end(chars, at, '\'')
        }
        _ => at,
    }
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|&&c| c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return start; // r#name, an identifier
    }
    let closes = |at: usize| {
        chars[at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes
    };
    let close = (open + 1..chars.len()).find(|&at| closes(at));
    close.map_or(chars.len(), |at| at + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[track_caller]
    fn becomes(text: &str, code: &str) {
        let masked = mask(text);
        let words: Vec<&str> = masked.split_whitespace().collect();
        assert_eq!(words.join(" "), code, "of {text}");
        assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "lines of {text}");
        assert_eq!(masked.chars().count(), text.chars().count(), "length of {text}");
    }

    #[test]
    fn comments_are_masked() {
        becomes("a // b\nc", "a c");
        becomes("a /* b /* c */ d\n */ e", "a e");
        becomes("a /* never closed", "a");
    }

    #[test]
    fn literals_are_masked() {
        becomes(r#"a("b \" } c", d)"#, "a( , d)");
        becomes("a('{', '\\'', '\u{e9}')", "a( , , )");
        becomes("a(r#\"b \" }\"#, c)", "a( , c)");
        becomes("a(\"b\n}\n\", c)", "a( , c)");
        becomes("a(\"never closed", "a(");
    }

    #[test]
    fn code_is_kept() {
        becomes("fn a<'b>(r: &'b str) { r#fn / 2 }", "fn a<'b>(r: &'b str) { r#fn / 2 }");
    }
}
