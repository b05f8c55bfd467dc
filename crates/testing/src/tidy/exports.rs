//! Functions that a library exports to C: their bodies are one macro, which catches panics and
//! reports errors. The macro cannot declare them, because cbindgen does not expand macros.

use super::mask::mask;
use super::{File, Finding};

/// The macro that is the body of an exported function.
const MACRO: &str = "export_body!(";

/// Finds exported functions whose body is not one call of `export_body!`. Permitted functions
/// are exceptions.
pub fn without_macro(file: &File) -> Vec<Finding> {
    let code = mask(&file.text);
    let lines: Vec<&str> = code.lines().collect();
    let exported = lines.iter().enumerate().filter_map(|(at, line)| Some((at, name(line)?)));
    exported
        .filter(|(at, _)| !is_macro(&body(&lines[*at..])))
        .map(|(at, name)| {
            let expected = "a body that is one call of export_body!";
            Finding::new(file, at + 1, expected, "another body").about(name)
        })
        .collect()
}

/// Returns the name of the function whose `extern "C" fn` is on a line of masked code. A type of
/// functions has no name.
fn name(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("extern ")?;
    let name = after.trim_start().strip_prefix("fn ")?.split('(').next()?.trim();
    (!name.is_empty()).then_some(name)
}

/// Returns the body of the function that begins on the first line, without its braces: the lines up
/// to the next line that is a closing brace.
fn body(lines: &[&str]) -> String {
    let opened = lines.iter().position(|line| line.ends_with('{')).map_or(lines.len(), |at| at + 1);
    let body = lines[opened..].iter().take_while(|line| **line != "}");
    body.copied().collect::<Vec<_>>().join("\n")
}

/// Returns whether a body is one call of the macro: its parenthesis closes at the end.
fn is_macro(body: &str) -> bool {
    let Some(arguments) = body.trim().strip_prefix(MACRO) else { return false };
    let mut depth = 1;
    let closing = arguments.char_indices().find(|(_, letter)| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    closing.is_some_and(|(at, _)| at + 1 == arguments.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported(body: &str) -> File {
        let head = "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn a(\n    b: u32,\n) -> i32 {\n";
        File::text("src/a.rs", &format!("{head}{body}}}\n\nfn other() {{\n    call()\n}}\n"))
    }

    #[test]
    fn the_macro_alone_passes() {
        for body in [
            "    export_body!(error, |_| close(b).map(drop))\n",
            "    export_body!(error, |caller| {\n        caller.out(b)?; // :)\n        \
             Ok(())\n    })\n",
        ] {
            assert_eq!(without_macro(&exported(body)), [], "{body}");
        }
        assert_eq!(
            without_macro(&File::text("src/a.rs", "type A = unsafe extern \"C\" fn(u32);\n")),
            []
        );
    }

    #[test]
    fn other_bodies_are_found() {
        for body in [
            "    0\n",
            "    let b = 1;\n    export_body!(error, |_| close(b))\n",
            "    export_body!(error, |_| close(b));\n    0\n",
        ] {
            let found = without_macro(&exported(body));
            assert_eq!((found.len(), &found[0].item[..]), (1, "a"), "{body}");
        }
    }
}
