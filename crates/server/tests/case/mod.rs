//! Reads the vectors in testdata/protocol; README.md there describes their format.

/// A case: its lines, without comments and without the line `case`.
pub(crate) struct Case {
    pub(crate) name: String,
    lines: Vec<(String, Vec<Vec<u8>>)>,
}

impl Case {
    /// Returns all cases of a file. Panics at a line that it cannot parse.
    pub(crate) fn all(text: &str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if word == "case" {
                cases.push(Self { name: rest.to_owned(), lines: Vec::new() });
                continue;
            }
            let strings = strings(rest).unwrap_or_else(|| panic!("line {}: {line}", index + 1));
            let case = cases.last_mut().expect("the first line of a case names it");
            case.lines.push((word.to_owned(), strings));
        }
        assert!(!cases.is_empty(), "no cases");
        cases
    }

    /// Returns the lines in their order: the first word of each, and the strings after it.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, &[Vec<u8>])> {
        self.lines.iter().map(|(word, strings)| (word.as_str(), strings.as_slice()))
    }

    /// Returns the strings of all lines with this word, joined.
    pub(crate) fn joined(&self, word: &str) -> Vec<u8> {
        self.lines().filter(|line| line.0 == word).flat_map(|line| line.1.concat()).collect()
    }

    /// Returns the number or word after `name=` on the lines of limits.
    pub(crate) fn limit(&self, name: &str) -> Option<String> {
        let limits = self.lines().filter(|line| line.0 == "limits").flat_map(|line| line.1);
        let mut texts = limits.map(|limit| String::from_utf8_lossy(limit).into_owned());
        texts.find_map(|limit| Some(limit.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }
}

/// Parses the strings on a line. A string is in quotes, with escapes, and `*N` after the quotes
/// repeats it N times; or it is bare and ends at a space.
fn strings(mut rest: &str) -> Option<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    while !rest.is_empty() {
        let Some(quoted) = rest.strip_prefix('"') else {
            let (bare, after) = rest.split_once(' ').unwrap_or((rest, ""));
            strings.push(bare.as_bytes().to_vec());
            rest = after;
            continue;
        };
        let (string, after) = unquote(quoted)?;
        let (times, after) = after.split_once(' ').unwrap_or((after, ""));
        let times = match times.strip_prefix('*') {
            Some(times) => times.parse().ok()?,
            None if times.is_empty() => 1,
            None => return None,
        };
        strings.push(string.repeat(times));
        rest = after;
    }
    Some(strings)
}

/// Returns a string up to its closing quote, and the rest of the line.
fn unquote(quoted: &str) -> Option<(Vec<u8>, &str)> {
    let mut string = Vec::new();
    let mut chars = quoted.chars();
    loop {
        string.push(match chars.next()? {
            '"' => return Some((string, chars.as_str())),
            '\\' => match chars.next()? {
                'r' => b'\r',
                'n' => b'\n',
                't' => b'\t',
                same @ ('"' | '\\') => same as u8,
                'x' => {
                    let digits = chars.as_str().get(..2)?;
                    chars = chars.as_str()[2..].chars();
                    u8::from_str_radix(digits, 16).ok()?
                }
                _ => return None,
            },
            plain => u8::try_from(plain).ok().filter(u8::is_ascii)?,
        });
    }
}
