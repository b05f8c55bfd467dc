//! TSV.

use crate::{accepts, rejects, rows_of};
use nuthatch_import::{FieldType, parse_tsv};

fn parse(text: &[u8], value_type: FieldType) -> Result<Vec<String>, String> {
    rows_of(|rows| parse_tsv(text, value_type, rows))
}

#[test]
fn rows_are_a_key_a_tab_and_a_value() {
    for (text, rows) in [
        (&b"a\tb\nc\td\n"[..], &["1 a String(\"b\")", "2 c String(\"d\")"][..]),
        (b"a\tb\r\nc\td", &["1 a String(\"b\")", "2 c String(\"d\")"]),
        (b"\n\r\n\t\n", &["3  String(\"\")"]),
        (b"a\\tb\\\\\\x0a\t\\n\\r\\xC3\\xA9", &["1 a\\tb\\\\\\n String(\"\\n\\ré\")"]),
        (b"a b\t c ", &["1 a b String(\" c \")"]),
        (b"\xff\t1", &["1 \\xff String(\"1\")"]),
        (b"", &[]),
    ] {
        accepts(text, &parse(text, FieldType::String), rows);
    }
}

#[test]
fn values_have_the_type_of_the_option() {
    for (value_type, text, value) in [
        (FieldType::Bytes, &b"\xff\\x00"[..], "Bytes([255, 0])"),
        (FieldType::Bytes, b"", "Bytes([])"),
        (FieldType::Bool, b"true", "Bool(true)"),
        (FieldType::Bool, b"false", "Bool(false)"),
        (FieldType::I64, b"-12", "I64(-12)"),
        (FieldType::I64, b"+007", "I64(7)"),
        (FieldType::F64, b"5", "F64(5.0)"),
        (FieldType::F64, b"-.5e-3", "F64(-0.0005)"),
        (FieldType::F64, b"NaN", "F64(NaN)"),
        (FieldType::F64, b"-Infinity", "F64(-inf)"),
        (FieldType::F64, b"0x3ff0000000000000", "F64(1.0)"),
        (FieldType::I64List, b"[1, 2]", "I64List([1, 2])"),
        (FieldType::I64List, b"[]", "EmptyList"),
        (FieldType::F64List, b"[1,2]", "F64List([1.0, 2.0])"),
        (FieldType::F64List, b"[1,\"NaN\"]", "F64List([1.0, NaN])"),
        (FieldType::F32List, b" [1,0.1] ", "F32List([1.0, 0.1])"),
        (FieldType::StringList, b"[\"a\",\"\\\\n\"]", "StringList([\"a\", \"\\n\"])"),
    ] {
        let text = [b"k\t", text].concat();
        accepts(&text, &parse(&text, value_type), &[&format!("1 k {value}")]);
    }
}

#[test]
fn errors_have_their_position() {
    let float = "a float: digits, NaN, Infinity, -Infinity or 0x and 16 digits";
    let escape = "one of \\t \\n \\r \\\\ \\xNN";
    for (value_type, text, expected) in [
        (FieldType::String, "\nab", "2:3: expected a tab and a value, found the end of the line"),
        (
            FieldType::String,
            "a\tb\tc",
            "1:4: expected one tab in a line; within a value write \\t, found a second one",
        ),
        (FieldType::String, "é\\q\tb", &format!("1:2: expected {escape}, found \\q")),
        (FieldType::String, "a\té\\x9", &format!("1:4: expected {escape}, found \\x9")),
        (
            FieldType::String,
            "a\tb\\xff",
            "1:3: expected text in UTF-8, found the byte 0xff, which is \
                                     not UTF-8",
        ),
        (FieldType::Bool, "a\tTRUE", "1:3: expected true or false, found \"TRUE\""),
        (FieldType::I64, "a\t1.0", "1:3: expected an integer of at most 64 bits, found \"1.0\""),
        (FieldType::I64, "a\t", "1:3: expected an integer of at most 64 bits, found \"\""),
        (FieldType::F64, "a\tnan", &format!("1:3: expected {float}, found \"nan\"")),
        (FieldType::F64, "a\t1e999", &format!("1:3: expected {float}, found \"1e999\"")),
        (FieldType::I64List, "a\t[1,2.5]", "1:6: expected an integer, found 2.5"),
        (FieldType::I64List, "a\t1", "1:3: expected a list, found 1"),
        (
            FieldType::F64List,
            "a\t[\"a\"]",
            "1:4: expected a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" \
             and 16 digits, found \"a\"",
        ),
        (FieldType::StringList, "a\t[1]", "1:4: expected a string, found 1"),
        (FieldType::StringList, "a\t[] x", "1:6: expected the end of the value, found x"),
    ] {
        rejects(text.as_bytes(), &parse(text.as_bytes(), value_type), expected);
    }
}
