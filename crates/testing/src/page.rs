//! Tables of documentation pages in Markdown, which tests compare with the code.

use std::collections::BTreeMap;

/// The cells of a table: a list of rows, without the header row.
pub type Rows = Vec<Vec<String>>;

/// Returns the rows of the first table under the heading of any level with this text.
///
/// # Panics
///
/// If there is no such heading, or no table under it.
#[must_use]
pub fn table_under(page: &str, heading: &str) -> Rows {
    let mut lines = page.lines();
    let is_heading =
        |line: &str| line.starts_with('#') && line.trim_start_matches('#').trim() == heading;
    assert!(lines.any(is_heading), "no heading {heading:?}");
    let section = lines.take_while(|line| !line.starts_with('#'));
    rows(section.skip_while(|line| !line.starts_with('|')), heading)
}

/// Returns the rows of table `number`, from 0 on, of those with this header row.
///
/// # Panics
///
/// If the page has fewer such tables.
#[must_use]
pub fn table_with_header(page: &str, header: &str, number: usize) -> Rows {
    let mut lines = page.lines();
    for _ in 0..=number {
        assert!(lines.any(|line| line == header), "no table {number} with the header {header:?}");
    }
    rows(std::iter::once(header).chain(lines), header)
}

/// Returns the offset (the first cell) of each field (the third cell).
///
/// # Panics
///
/// If a first cell is not a number.
#[must_use]
pub fn offsets(rows: &Rows) -> BTreeMap<String, usize> {
    rows.iter().map(|row| (row[2].clone(), row[0].parse().expect("an offset"))).collect()
}

/// Returns the cells of the table at the beginning of these lines.
fn rows<'p>(lines: impl Iterator<Item = &'p str>, name: &str) -> Rows {
    let rows: Rows = lines
        .take_while(|line| line.starts_with('|'))
        // Skips the header row and the line below it.
        .skip(2)
        .map(cells)
        .collect();
    assert!(!rows.is_empty(), "no table at {name:?}");
    rows
}

/// Returns the cells of a row. A vertical bar within a code span must be escaped, as in Markdown.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for letter in row.trim().trim_start_matches('|').chars() {
        match letter {
            '|' if !is_escaped => cells.push(String::new()),
            _ => cells.last_mut().expect("at least one cell").push(letter),
        }
        is_escaped = letter == '\\';
    }
    // A row ends with a vertical bar.
    cells.pop();
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Page
## First
Text.

| offset | type | field |
|---|---|---|
| 0 | u8 | magic |
| 8 | `a\\|b` | len |

## Second

| offset | type | field |
|---|---|---|
| 4 | u8 | kind |
## Third
";

    #[test]
    fn the_table_under_a_heading_is_found() {
        let rows = table_under(PAGE, "First");
        assert_eq!(rows, [["0", "u8", "magic"], ["8", "`a\\|b`", "len"]]);
        assert_eq!(offsets(&rows), [("magic".to_owned(), 0), ("len".to_owned(), 8)].into());
    }

    #[test]
    fn tables_with_the_same_header_are_numbered() {
        let header = "| offset | type | field |";
        assert_eq!(table_with_header(PAGE, header, 1), [["4", "u8", "kind"]]);
    }

    #[test]
    #[should_panic(expected = "no table at \"Third\"")]
    fn a_section_without_a_table_is_an_error() {
        let _ = table_under(PAGE, "Third");
    }

    #[test]
    #[should_panic(expected = "no heading \"Fourth\"")]
    fn a_heading_that_does_not_exist_is_an_error() {
        let _ = table_under(PAGE, "Fourth");
    }
}
