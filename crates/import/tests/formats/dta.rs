//! AxonCache text.

use crate::{accepts, rejects, rows_of};
use nuthatch_import::parse_dta;

fn parse(text: &[u8]) -> Result<Vec<String>, String> {
    rows_of(|rows| parse_dta(text, rows))
}

#[test]
fn records_are_a_key_an_equals_sign_and_a_value() {
    for (text, rows) in [
        (&b"a=b\x1ec=d=e\x1e"[..], &["1 a String(\"b\")", "2 c String(\"d=e\")"][..]),
        (b"a=b\x1e\nc=\x1e\r\n", &["1 a String(\"b\")", "2 c String(\"\")"]),
        (b"a=b\nc\x1ed=e", &["1 a String(\"b\\nc\")", "2 d String(\"e\")"]),
        (b"=\x1e", &["1  String(\"\")"]),
        (b"\x01a=\x1e", &["1 a EmptyList"]),
        (b"\x01a=b\x1e", &["1 a StringList([\"b\"])"]),
        (b"\x01a=b|c|\x1e", &["1 a StringList([\"b\", \"c\", \"\"])"]),
        (b"\x01=|\x1e", &["1  StringList([\"\", \"\"])"]),
        (b"a=b|c\x1e", &["1 a String(\"b|c\")"]),
        (b"a\x01=b\x1e", &["1 a\\x01 String(\"b\")"]),
        (b"\xff=b\x1e", &["1 \\xff String(\"b\")"]),
        (b"", &[]),
        (b"\n", &[]),
    ] {
        accepts(text, &parse(text), rows);
    }
}

#[test]
fn errors_have_record_and_column() {
    let equals = "a record with '=' after the key";
    for (text, expected) in [
        (&b"a=b\x1ecd\x1e"[..], &format!("2:1: expected {equals}, found none")[..]),
        (b"a=b\x1e\x1e", &format!("2:1: expected {equals}, found an empty record")),
        (
            b"a=b\x1e\nab=\xc3\xa9\xff\x1e",
            "2:5: expected text in UTF-8, found the byte 0xff, \
                                             which is not UTF-8",
        ),
        (
            b"\x01a=b|\xff\x1e",
            "1:6: expected text in UTF-8, found the byte 0xff, which is not \
                               UTF-8",
        ),
    ] {
        rejects(text, &parse(text), expected);
    }
}
