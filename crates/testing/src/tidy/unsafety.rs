//! Unsafe code: the files that may contain it, and the comments that justify it.

use super::mask::mask;
use super::{File, Finding};

/// Maximum number of lines between an unsafe block or impl and the beginning of its comment.
const REASON_WITHIN_LINES: usize = 3;

/// Finds files with unsafe code, and reports its first line. Permitted files are exceptions.
pub fn files(file: &File) -> Vec<Finding> {
    let code = mask(&file.text);
    let first = (1..).zip(code.lines()).find(|(_, line)| has_unsafe(line));
    let expected = "unsafe only in the files listed for it";
    first
        .map(|(number, _)| Finding::new(file, number, expected, "unsafe code"))
        .into_iter()
        .collect()
}

/// Finds unsafe blocks and impls without a justifying comment directly above.
pub fn without_reason(file: &File) -> Vec<Finding> {
    let code = mask(&file.text);
    let text: Vec<&str> = file.text.lines().collect();
    let expected = format!("a SAFETY comment within {REASON_WITHIN_LINES} lines above");
    code.lines()
        .enumerate()
        .filter(|(at, line)| needs_reason(line) && !has_reason(&text, *at))
        .map(|(at, _)| Finding::new(file, at + 1, &expected, text[at].trim()))
        .collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '{').filter(|w| !w.is_empty())
}

fn has_unsafe(line: &str) -> bool {
    words(line).any(|word| word.trim_end_matches('{') == "unsafe")
}

fn needs_reason(line: &str) -> bool {
    let next = words(line).skip(1);
    words(line).zip(next).any(|(a, b)| a == "unsafe" && (b.starts_with('{') || b == "impl"))
}

fn has_reason(text: &[&str], at: usize) -> bool {
    let above = &text[at.saturating_sub(REASON_WITHIN_LINES)..at];
    above.iter().any(|line| line.trim_start().starts_with("//") && line.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> File {
        File::text("src/a.rs", text)
    }

    #[test]
    fn unsafe_code_is_found_in_every_form() {
        let forms = ["let a = unsafe { b() };", "unsafe impl Send for A {}", "unsafe fn a() {}"];
        for form in forms {
            assert_eq!(files(&rust(form)).len(), 1, "{form}");
        }
        assert_eq!(files(&rust("#[unsafe(no_mangle)]\nextern \"C\" fn a() {}")).len(), 1);
    }

    #[test]
    fn words_about_unsafe_pass() {
        let text = "#![deny(unsafe_op_in_unsafe_fn)]\n// unsafe { }\nlet a = \"unsafe { }\";\n";
        assert_eq!(files(&rust(text)), []);
    }

    #[test]
    fn a_block_or_impl_without_a_reason_is_found() {
        let far = "// SAFETY: too far away.\n\n\n\nunsafe { a() }\n";
        assert_eq!(without_reason(&rust(far)).len(), 1);
        assert_eq!(without_reason(&rust("unsafe impl Send for A {}\n")).len(), 1);
        assert_eq!(without_reason(&rust("f(unsafe {\n    a()\n})\n"))[0].line, 1);
    }

    #[test]
    fn a_reason_close_above_passes() {
        let text = "// SAFETY: a lives as long as b,\n// and c never moves.\nunsafe { a() }\n\
                    unsafe fn d() {}\n";
        assert_eq!(without_reason(&rust(text)), []);
    }
}
