//! TSV.

use crate::{accepts, refuses, rows_of};
use nuthatch_import::{Type, parse_tsv};

fn parse(text: &[u8], value_type: Type) -> Result<Vec<String>, String> {
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
        accepts(text, &parse(text, Type::String), rows);
    }
}

#[test]
fn values_are_of_the_type_told() {
    for (value_type, text, value) in [
        (Type::Bytes, &b"\xff\\x00"[..], "Bytes([255, 0])"),
        (Type::Bytes, b"", "Bytes([])"),
        (Type::Bool, b"true", "Bool(true)"),
        (Type::Bool, b"false", "Bool(false)"),
        (Type::I64, b"-12", "I64(-12)"),
        (Type::I64, b"+007", "I64(7)"),
        (Type::F64, b"5", "F64(5.0)"),
        (Type::F64, b"-.5e-3", "F64(-0.0005)"),
        (Type::F64, b"NaN", "F64(NaN)"),
        (Type::F64, b"-Infinity", "F64(-inf)"),
        (Type::F64, b"0x3ff0000000000000", "F64(1.0)"),
        (Type::I64List, b"[1, 2]", "I64List([1, 2])"),
        (Type::I64List, b"[]", "EmptyList"),
        (Type::F64List, b"[1,2]", "F64List([1.0, 2.0])"),
        (Type::F64List, b"[1,\"NaN\"]", "F64List([1.0, NaN])"),
        (Type::F32List, b" [1,0.1] ", "F32List([1.0, 0.1])"),
        (Type::StringList, b"[\"a\",\"\\\\n\"]", "StringList([\"a\", \"\\n\"])"),
    ] {
        let text = [b"k\t", text].concat();
        accepts(&text, &parse(&text, value_type), &[&format!("1 k {value}")]);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let float = "a float: digits, NaN, Infinity, -Infinity or 0x and 16 digits";
    let escape = "one of \\t \\n \\r \\\\ \\xNN";
    for (value_type, text, expected) in [
        (Type::String, "\nab", "2:3: expected a tab and a value, found the end of the line"),
        (
            Type::String,
            "a\tb\tc",
            "1:4: expected one tab in a line; within a value write \\t, found a second one",
        ),
        (Type::String, "é\\q\tb", &format!("1:2: expected {escape}, found \\q")),
        (Type::String, "a\té\\x9", &format!("1:4: expected {escape}, found \\x9")),
        (
            Type::String,
            "a\tb\\xff",
            "1:3: expected text in UTF-8, found the byte 0xff, which is \
                                     not UTF-8",
        ),
        (Type::Bool, "a\tTRUE", "1:3: expected true or false, found \"TRUE\""),
        (Type::I64, "a\t1.0", "1:3: expected an integer of at most 64 bits, found \"1.0\""),
        (Type::I64, "a\t", "1:3: expected an integer of at most 64 bits, found \"\""),
        (Type::F64, "a\tnan", &format!("1:3: expected {float}, found \"nan\"")),
        (Type::F64, "a\t1e999", &format!("1:3: expected {float}, found \"1e999\"")),
        (Type::I64List, "a\t[1,2.5]", "1:6: expected an integer, found 2.5"),
        (Type::I64List, "a\t1", "1:3: expected a list, found 1"),
        (
            Type::F64List,
            "a\t[\"a\"]",
            "1:4: expected a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" \
             and 16 digits, found \"a\"",
        ),
        (Type::StringList, "a\t[1]", "1:4: expected a string, found 1"),
        (Type::StringList, "a\t[] x", "1:6: expected the end of the value, found x"),
    ] {
        refuses(text.as_bytes(), &parse(text.as_bytes(), value_type), expected);
    }
}
