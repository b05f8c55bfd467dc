//! Maximum width of lines, and maximum lengths of functions and files.

use super::mask::mask;
use super::{File, Finding};

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_FILE_LINES: usize = 600;

/// Finds lines with more than 100 characters. Comments that contain an address may be wider.
pub fn wide_lines(file: &File) -> Vec<Finding> {
    let expected = format!("at most {MAX_COLUMNS} columns");
    file.lines()
        .map(|(number, line)| (number, line, line.chars().count()))
        .filter(|&(_, line, width)| width > MAX_COLUMNS && !is_comment_with_address(line))
        .map(|(number, _, width)| Finding::new(file, number, &expected, width.to_string()))
        .collect()
}

fn is_comment_with_address(line: &str) -> bool {
    let line = line.trim_start();
    let comment = ["//", "#", "*", "/*"].iter().any(|mark| line.starts_with(mark));
    comment && (line.contains("https://") || line.contains("http://"))
}

/// Finds files with more than 600 lines.
pub fn long_files(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().count();
    if lines <= MAX_FILE_LINES {
        return Vec::new();
    }
    let expected = format!("at most {MAX_FILE_LINES} lines in a file");
    vec![Finding::new(file, lines, expected, lines.to_string())]
}

/// Finds Rust functions with more than 70 lines, from `fn` to the closing brace. Requires the
/// layout of rustfmt, in which the closing brace has the indentation of the item.
pub fn long_functions(file: &File) -> Vec<Finding> {
    let code = mask(&file.text);
    let lines: Vec<&str> = code.lines().collect();
    let expected = format!("at most {MAX_FUNCTION_LINES} lines in a function");
    let named = lines.iter().enumerate().filter_map(|(at, line)| Some((at, function_name(line)?)));
    named
        .map(|(at, name)| (at, name, function_end(&lines, at) + 1 - at))
        .filter(|&(_, _, length)| length > MAX_FUNCTION_LINES)
        .map(|(at, name, length)| {
            Finding::new(file, at + 1, &expected, format!("{length} in {name}")).about(name)
        })
        .collect()
}

/// Returns the name of the function whose item begins on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let qualifier = |word: &str| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern"].contains(&word)
    };
    words.find(|word| !qualifier(word)).filter(|&word| word == "fn")?;
    words.next()?.split(['(', '<']).next()
}

/// Returns the index of the last line of the function that begins at line `start`.
fn function_end(lines: &[&str], start: usize) -> usize {
    let last = lines.len() - 1;
    let header_ends = |line: &str| line.trim_end().ends_with(['{', ';', '}']);
    let header = (start..=last).find(|&at| header_ends(lines[at])).unwrap_or(last);
    if !lines[header].trim_end().ends_with('{') {
        return header; // a declaration, or a body on one line
    }
    let closes =
        |line: &str| line.trim_start().starts_with('}') && indent(line) == indent(lines[start]);
    (header + 1..=last).find(|&at| closes(lines[at])).unwrap_or(last)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> File {
        File::text("src/a.rs", text)
    }

    fn function_of(body_lines: usize) -> String {
        format!(
            "    pub(crate) fn long<T>(\n        a: T,\n    ) {{\n{}    }}\n",
            "        a();\n".repeat(body_lines)
        )
    }

    #[test]
    fn a_wide_line_is_found() {
        let findings = wide_lines(&rust(&format!("let a = 1;\n{}\n", "é".repeat(101))));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].to_string(), "src/a.rs:2: expected at most 100 columns, found 101");
    }

    #[test]
    fn a_full_line_and_an_address_in_a_comment_pass() {
        let address = format!("    // see https://example.org/{}", "a".repeat(100));
        assert_eq!(wide_lines(&rust(&format!("{}\n{address}\n", "é".repeat(100)))), []);
        assert_eq!(wide_lines(&rust(&address.replace("//", "  "))).len(), 1, "no comment");
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(long_files(&rust(&"\n".repeat(600))), []);
        assert_eq!(long_files(&rust(&"\n".repeat(601))).len(), 1);
    }

    #[test]
    fn a_long_function_is_found_by_name() {
        assert_eq!(long_functions(&rust(&function_of(66))), []);
        let findings = long_functions(&rust(&function_of(67)));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].line, findings[0].item.as_str()), (1, "long"));
    }

    #[test]
    fn the_end_of_a_function_is_found() {
        let short = "trait A {\n    fn a(\n        &self,\n    );\n    fn b() {}\n    fn c();\n}\n";
        let text = format!("{short}{}mod m {{\n{}}}\n", "\n".repeat(90), function_of(66));
        assert_eq!(long_functions(&rust(&text)), []);
    }

    #[test]
    fn braces_in_literals_do_not_end_a_function() {
        let text = format!("fn a() {{\n    b(\"\n}}\n\");\n{}}}\n", "    c();\n".repeat(70));
        assert_eq!(long_functions(&rust(&text)).len(), 1);
    }
}
