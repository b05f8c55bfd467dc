//! The end of a query: queries become parts of other ones, where a semicolon is an error.

/// What can hide a semicolon, and how it ends, in any of the databases.
const QUOTES: [(&str, &str); 6] =
    [("'", "'"), ("\"", "\""), ("`", "`"), ("[", "]"), ("$", "$"), ("/*", "*/")];

/// Returns a query without the semicolon at its end, and without the comments after it.
///
/// A semicolon before comments stays if it can be in quotes or in a comment, such as that of
/// `select '; -- a'`: a quote is open before it and ends after it.
pub(super) fn without_end(query: &str) -> String {
    let query = query.trim().trim_end_matches(';').trim_end();
    let is_end = |at: usize| {
        let (head, tail) = (&query[..at], &query[at + 1..]);
        let is_quoted = |(open, end): &(&str, &str)| head.contains(open) && tail.contains(end);
        has_only_comments(tail) && !QUOTES.iter().any(is_quoted)
    };
    let end = query.match_indices(';').map(|(at, _)| at).find(|at| is_end(*at));
    query[..end.unwrap_or(query.len())].trim_end().to_owned()
}

/// Returns whether a text has only comments, semicolons and white space.
fn has_only_comments(mut text: &str) -> bool {
    loop {
        text = text.trim_start_matches(|c: char| c == ';' || c.is_whitespace());
        if text.is_empty() {
            return true;
        }
        let rest = if let Some(comment) = text.strip_prefix("/*") {
            comment.split_once("*/").map(|(_, rest)| rest)
        } else if text.starts_with("--") || text.starts_with('#') {
            Some(text.split_once('\n').map_or("", |(_, rest)| rest))
        } else {
            None
        };
        let Some(rest) = rest else { return false };
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::without_end;

    #[test]
    fn a_semicolon_before_comments_is_removed() {
        for end in [
            "",
            ";",
            " ; ",
            ";;",
            "; -- all",
            "; -- don't; stop\n",
            ";\n-- one\n  -- two\n",
            "; /* all\nrows */",
            "; # all",
            "; -- all\n;",
        ] {
            assert_eq!(without_end(&format!("select 1{end}")), "select 1", "{end:?}");
        }
    }

    #[test]
    fn a_semicolon_in_quotes_or_in_a_comment_stays() {
        for query in [
            "select '; -- a'",
            "select '\n; -- a\n-- b'",
            "select 1 as \"; -- a\"",
            "select 1 as [; -- a]",
            "select $$; -- a$$",
            "select 1 /* a; -- b */",
            "select 1; select 2",
            "select ';' -- a",
        ] {
            assert_eq!(without_end(query), query);
        }
    }

    #[test]
    fn a_comment_without_a_semicolon_stays() {
        assert_eq!(without_end("select 1 -- all"), "select 1 -- all");
        assert_eq!(without_end("select 1 -- a; -- b"), "select 1 -- a");
    }
}
