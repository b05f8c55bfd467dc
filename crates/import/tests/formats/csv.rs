//! CSV.

use crate::{Rows, accepts, rejects, rows_of};
use nuthatch_import::parse_csv;
use proptest::prelude::*;

fn parse(text: &[u8]) -> Result<Vec<String>, String> {
    rows_of(|rows| parse_csv(text, "id", rows))
}

#[test]
fn columns_become_rows() {
    for (text, rows) in [
        ("id,a\n1,x\n", &["2 1.a String(\"x\")"][..]),
        ("a,id,b\nx,1,y", &["2 1.a String(\"x\")", "2 1.b String(\"y\")"]),
        ("id,a\r\n1,\r\n2,y\r\n", &["2 1.a String(\"\")", "3 2.a String(\"y\")"]),
        ("\n\nid,a\n\n1,x\n\n", &["5 1.a String(\"x\")"]),
        ("\"id\",\"a,\"\"b\"\"\"\n1,x\n", &["2 1.a,\\\"b\\\" String(\"x\")"]),
        (
            "id,a\n1,\"x\n\"\"y\"\"\"\n2,z\n",
            &["2 1.a String(\"x\\n\\\"y\\\"\")", "4 2.a String(\"z\")"],
        ),
        ("id,a\n1,5\" pipe\n\"\",\"\"\n", &["2 1.a String(\"5\\\" pipe\")", "3 .a String(\"\")"]),
        ("id,a\n1, \"x\" \n", &["2 1.a String(\" \\\"x\\\" \")"]),
        ("id\n1\n", &[]),
        ("id,a\n", &[]),
    ] {
        accepts(text.as_bytes(), &parse(text.as_bytes()), rows);
    }
}

#[test]
fn errors_have_their_position() {
    let closes = "a quote that ends the field which begins here";
    for (text, expected) in [
        ("id,a\n1\n", "2:2: expected 2 fields, as the header has, found 1"),
        ("id,a\n1,é,z\n", "2:5: expected 2 fields, as the header has, found 3"),
        ("id,a\n1,\"x\n\n", &format!("2:3: expected {closes}, found none")),
        (
            "id,a\n1,\"x\ny\"z\n",
            "3:3: expected a comma or the end of the line after the quote that ends a field, \
             found z",
        ),
        (
            "a,b\n",
            "1:1: expected a header with the key column, found expected a column \"id\", \
             found \"a\", \"b\"",
        ),
    ] {
        rejects(text.as_bytes(), &parse(text.as_bytes()), expected);
    }
    let text = b"id,a\n1,\"\xc3\xa9\n\xff\"\n";
    let error = parse(text).expect_err("text that is not UTF-8");
    assert!(error.starts_with("3:1: expected text in UTF-8"), "{error}");
}

/// Parses a table with the `csv` crate. Returns each field as our rows have it.
fn oracle(text: &[u8]) -> Option<Vec<Vec<String>>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text);
    let records = reader.records().collect::<Result<Vec<_>, _>>().ok()?;
    let as_rows = |record: &csv::StringRecord| {
        let mut fields = record.iter();
        let key = fields.next().map(|key| key.as_bytes().escape_ascii().to_string());
        key.into_iter().chain(fields.map(|value| format!("{value:?})"))).collect()
    };
    Some(records.iter().map(as_rows).collect())
}

/// Parses a table with three columns with our parser. Returns the fields.
fn fields(text: &[u8]) -> Result<Vec<Vec<String>>, String> {
    let table = [b"id,a,b\n", text].concat();
    let mut rows = Rows::default();
    parse_csv(&table, "id", &mut rows).map_err(|e| e.to_string())?;
    let value = |row: &str| row.split_once(" String(").map(|(_, value)| value.to_owned());
    let key = |row: &str| {
        let (key, _) = row.split_once(".a String(")?;
        Some(key.split_once(' ')?.1.to_owned())
    };
    let pairs =
        rows.0.chunks(2).map(|pair| Some(vec![key(&pair[0])?, value(&pair[0])?, value(&pair[1])?]));
    pairs.collect::<Option<_>>().ok_or_else(|| "rows of another form".to_owned())
}

proptest! {
    /// If our parser accepts a table, the `csv` crate returns the same fields.
    #[test]
    fn tables_are_read_as_the_csv_crate_reads_them(
        text in "([a\",\r\n]|\"\"|,a,|\"a\n\",){0,40}"
    ) {
        if let Ok(ours) = fields(text.as_bytes()) {
            prop_assert_eq!(oracle(text.as_bytes()), Some(ours));
        }
    }

    #[test]
    fn tables_that_the_csv_crate_writes_are_accepted(
        records in prop::collection::vec(prop::array::uniform3("[a\",\r\n é]{0,6}"), 0..6)
    ) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for record in &records {
            writer.write_record(record).expect("writing to memory");
        }
        let text = writer.into_inner().expect("writing to memory");
        let ours = fields(&text);
        prop_assert_eq!(ours.map(|fields| fields.len()), Ok(records.len()));
    }
}
