//! JSON lines.

use crate::{accepts, rejects, rows_of};
use nuthatch_import::parse_jsonl;

fn parse(text: &[u8]) -> Result<Vec<String>, String> {
    rows_of(|rows| parse_jsonl(text, rows))
}

/// Checks a row with this JSON value.
#[track_caller]
fn value(json: &str, expected: &str) {
    let text = format!("{{\"key\":\"k\",\"value\":{json}}}");
    accepts(text.as_bytes(), &parse(text.as_bytes()), &[&format!("1 k {expected}")]);
}

/// Checks the error for a JSON value, which begins in column 20. The error is `later` columns
/// behind that.
#[track_caller]
fn wrong_value(json: &str, later: usize, expected: &str) {
    let text = format!("{{\"key\":\"k\",\"value\":{json}}}");
    let error = format!("1:{}: expected {expected}", 20 + later);
    rejects(text.as_bytes(), &parse(text.as_bytes()), &error);
}

#[test]
fn values_have_the_type_of_their_json() {
    value("\"\"", "String(\"\")");
    value("\"nüt\"", "String(\"nüt\")");
    value("true", "Bool(true)");
    value("false", "Bool(false)");
    value("0", "I64(0)");
    value("-0", "I64(0)");
    value("-0.0", "F64(-0.0)");
    value("1.0", "F64(1.0)");
    value("1e3", "F64(1000.0)");
    value("1E+3", "F64(1000.0)");
    value("2.5e-3", "F64(0.0025)");
    value("9223372036854775807", "I64(9223372036854775807)");
    value("-9223372036854775808", "I64(-9223372036854775808)");
    value("123456789012345678", "I64(123456789012345678)");
    value("5e-324", "F64(5e-324)");
    value("[]", "EmptyList");
    value("[ ]", "EmptyList");
    value("[1, -2 ,3]", "I64List([1, -2, 3])");
    value("[1,2.5]", "F64List([1.0, 2.5])");
    value("[2.5,1]", "F64List([2.5, 1.0])");
    value("[1e0]", "F64List([1.0])");
    value("[9007199254740993]", "I64List([9007199254740993])");
    value("[9007199254740992, 0.5]", "F64List([9007199254740992.0, 0.5])");
    value("[\"a\",\"\",\"\\t\"]", "StringList([\"a\", \"\", \"\\t\"])");
}

#[test]
fn objects_represent_values_that_json_lacks() {
    value("{\"$bytes\":\"\"}", "Bytes([])");
    value("{ \"$bytes\" : \"AAH/\" }", "Bytes([0, 1, 255])");
    value("{\"$bytes\":\"\\u0041AH/\"}", "Bytes([0, 1, 255])");
    value("{\"\\u0024bytes\":\"AA==\"}", "Bytes([0])");
    value("{\"$f32\":[1,0.1,\"NaN\",\"-Infinity\"]}", "F32List([1.0, 0.1, NaN, -inf])");
    value("{\"$f32\":[]}", "EmptyList");
    value("{\"$f64\":[1,\"Infinity\"]}", "F64List([1.0, inf])");
    value("{\"$f64\":[]}", "EmptyList");
    value("{\"$f64\":\"NaN\"}", "F64(NaN)");
    value("{\"$f64\":\"0x3ff0000000000000\"}", "F64(1.0)");
    value("{\"$f64\":2}", "F64(2.0)");
    value("{\"$f64\":2.5}", "F64(2.5)");
    value("{\"$f64\":[\"0x3FF0000000000000\"]}", "F64List([1.0])");
    value("{\"$f32\":[\"0x3f800000\"]}", "F32List([1.0])");
}

#[test]
fn strings_are_unescaped() {
    value("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "String(\"\\\"\\\\/\\u{8}\\u{c}\\n\\r\\t\")");
    value("\"a\\u00e9\\u20AC\\ud83d\\ude00z\"", "String(\"aé€😀z\")");
    value("\"\\u0000\"", "String(\"\\0\")");
    value(
        "\"a long text, then \\\"an escape\\\"\"",
        "String(\"a long text, then \\\"an escape\\\"\")",
    );
    value("\"\u{7f}\u{2028}\"", "String(\"\\u{7f}\\u{2028}\")");
}

#[test]
fn white_space_and_order_of_fields_do_not_matter() {
    let both = &["1 a I64(1)", "2 b I64(2)"][..];
    for text in [
        "{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"value\":2}\n",
        "{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"value\":2}",
        "{\"value\":1,\"key\":\"a\"}\r\n{\"value\":2,\"key\":\"b\"}\r\n",
        " { \"key\" :\t\"a\" , \"value\" : 1 } \n\t{\"key\":\"b\",\"value\":2}  ",
        "{\"\\u006bey\":\"\\u0061\",\"v\\u0061lue\":1}\n{\"key\":\"b\",\"value\":2}",
        "{\"key\":{\"$bytes\":\"YQ==\"},\"value\":1}\n{\"value\":2,\"key\":{\"$bytes\":\"Yg==\"}}",
    ] {
        accepts(text.as_bytes(), &parse(text.as_bytes()), both);
    }
    let spaced = "\n \n\r\n{\"key\":\"\",\"value\":1}\n\n{\"key\":\"\\n\",\"value\":2}\n\n";
    accepts(spaced.as_bytes(), &parse(spaced.as_bytes()), &["4  I64(1)", "6 \\n I64(2)"]);
    accepts(b"", &parse(b""), &[]);
    let bytes = b"{\"key\":{\"$bytes\":\"/w==\"},\"value\":1}";
    accepts(bytes, &parse(bytes), &["1 \\xff I64(1)"]);
}

const VALUE: &str = "a string, a number, true, false, a list, or an object such as \
                     {\"$bytes\": \"base64\"}";

#[test]
fn values_that_cannot_be_stored_are_rejected() {
    wrong_value("null", 0, &format!("{VALUE}, found null"));
    wrong_value("nul", 0, &format!("{VALUE}, found nul"));
    wrong_value("tru", 0, &format!("{VALUE}, found tru"));
    wrong_value("NaN", 0, &format!("{VALUE}, found NaN"));
    wrong_value("", 0, &format!("{VALUE}, found '}}'"));
    wrong_value("+1", 0, &format!("{VALUE}, found '+'"));
    wrong_value("'a'", 0, &format!("{VALUE}, found '''"));
    wrong_value("-", 0, &format!("{VALUE}, found -"));
    wrong_value("truex", 4, "',' or '}' after the field, found x");
    wrong_value("{}", 1, "one of \"$bytes\", \"$f64\" and \"$f32\", found '}'");
    wrong_value("{\"a\":1}", 1, "one of \"$bytes\", \"$f64\" and \"$f32\", found \"a\"");
    wrong_value(
        "{\"$bytes\":\"\",\"$f64\":1}",
        0,
        &format!("{VALUE}, found an object of several fields"),
    );
}

#[test]
fn numbers_outside_json_or_their_range_are_rejected() {
    wrong_value(
        "9223372036854775808",
        0,
        "an integer of at most 64 bits, found 9223372036854775808",
    );
    wrong_value("01", 0, "a number without leading zeros, found 01");
    wrong_value("-00", 0, "a number without leading zeros, found -00");
    let digits = "a number with digits after the point and after the e";
    wrong_value("1.", 0, &format!("{digits}, found 1."));
    wrong_value("1.e3", 0, &format!("{digits}, found 1.e3"));
    wrong_value("1e", 0, &format!("{digits}, found 1e"));
    wrong_value("1e+", 0, &format!("{digits}, found 1e+"));
    wrong_value("1e400", 0, "a number in the range of a 64-bit float, found 1e400");
    wrong_value(
        "[1,18446744073709551616]",
        3,
        "an integer of at most 64 bits, found \
                 18446744073709551616",
    );
    wrong_value("{\"$f32\":[1e39]}", 9, "a number in the range of a 32-bit float, found 1e39");
    wrong_value(
        "{\"$f32\":[9223372036854775808]}",
        9,
        "an integer of at most 64 bits, found \
                 9223372036854775808",
    );
    wrong_value(
        "{\"$f64\":9007199254740993}",
        8,
        "an integer that a 64-bit float holds exactly, \
                 found 9007199254740993",
    );
}

#[test]
fn lists_of_several_types_are_rejected() {
    let first = "as the first element is";
    let any = "a list of integers, of floats or of strings";
    let inexact = "an integer that a 64-bit float holds exactly, in a list of floats";
    wrong_value("[1,\"a\"]", 3, &format!("a number, {first}, found a string"));
    wrong_value("[\"a\",1]", 5, &format!("a string, {first}, found 1"));
    wrong_value("[1,true]", 3, &format!("a number, {first}, found true"));
    wrong_value("[1,null]", 3, &format!("a number, {first}, found null"));
    wrong_value("[true]", 1, &format!("{any}, found true"));
    wrong_value("[null]", 1, &format!("{any}, found null"));
    wrong_value("[[1]]", 1, &format!("{any}, found a list"));
    wrong_value("[{\"$f64\":1}]", 1, &format!("{any}, found an object"));
    wrong_value("[1,[2]]", 3, &format!("a number, {first}, found a list"));
    wrong_value("[1,]", 3, &format!("a number, {first}, found ']'"));
    wrong_value("[,1]", 1, &format!("{any}, found ','"));
    wrong_value("[1 2]", 3, "',' or ']' after the element, found 2");
    wrong_value("[9007199254740993,0.5]", 1, &format!("{inexact}, found 9007199254740993"));
    wrong_value("[0.5,9007199254740993]", 5, &format!("{inexact}, found 9007199254740993"));
    wrong_value("[1.0,\"NaN\"]", 5, &format!("a number, {first}, found a string"));
}

#[test]
fn values_of_another_type_than_their_tag_are_rejected() {
    let base64 = "a string of base64 with padding";
    wrong_value("{\"$bytes\":\"AA=\"}", 10, &format!("{base64}, found Invalid padding"));
    wrong_value(
        "{\"$bytes\":\"A*==\"}",
        10,
        &format!("{base64}, found Invalid symbol 42, offset 1."),
    );
    wrong_value("{\"$bytes\":[]}", 10, &format!("{base64}, found a list"));
    let float = "a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" and";
    wrong_value("{\"$f64\":\"nan\"}", 8, &format!("{float} 16 digits, found \"nan\""));
    wrong_value(
        "{\"$f64\":[\"0x7fc00000\"]}",
        9,
        &format!("{float} 16 digits, found \"0x7fc00000\""),
    );
    wrong_value("{\"$f32\":[\"0x7ff\"]}", 9, &format!("{float} 8 digits, found \"0x7ff\""));
    wrong_value("{\"$f32\":1}", 8, "a list, found 1");
    wrong_value("{\"$f64\":[[1]]}", 9, "a number, found a list");
    wrong_value("{\"$f64\"}", 7, "':' after the field name, found '}'");
    wrong_value("{\"$f64\":1 2}", 10, "'}' after the value, found 2");
}

#[test]
fn strings_outside_json_are_rejected() {
    let pair = "a pair of surrogates such as \\ud83d\\ude00, or none";
    wrong_value("\"a\nb\"", 2, "a quote at the end of the string, found the end of the line");
    wrong_value(
        "\"a\tb\"",
        2,
        "an escape such as \\t or \\u0001, found the control character 0x09",
    );
    wrong_value("\"\\x\"", 1, "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u, found \\x");
    wrong_value("\"\\u12g4\"", 1, "\\u and four hexadecimal digits, found \\u12g4");
    wrong_value("\"\\ud83d\"", 1, &format!("{pair}, found \\ud83d"));
    wrong_value("\"\\ud83d\\n\"", 1, &format!("{pair}, found \\ud83d"));
    wrong_value("\"\\ud83d\\u0041\"", 1, &format!("{pair}, found \\ud83d"));
    wrong_value("\"é\\ude00\"", 2, &format!("{pair}, found \\ude00"));
}

#[test]
fn errors_have_line_and_column() {
    let row = "a row such as {\"key\": …, \"value\": …}";
    let once = "the fields \"key\" and \"value\", once each";
    let name = "the field \"key\" or \"value\"";
    for (text, expected) in [
        ("x", format!("1:1: expected {row}, found x")),
        ("\n\n  []", format!("3:3: expected {row}, found a list")),
        ("{}", format!("1:2: expected {name}, found '}}'")),
        ("{\"key\":\"a\"}", "1:11: expected the field \"value\", found '}'".to_owned()),
        ("{\"value\":1}", "1:11: expected the field \"key\", found '}'".to_owned()),
        ("{\"key\":\"a\",\"key\":\"a\"}", format!("1:12: expected {once}, found \"key\" again")),
        ("{\"value\":1,\"value\":1}", format!("1:12: expected {once}, found \"value\" again")),
        ("{\"kéy\":1}", format!("1:2: expected {once}, found \"kéy\"")),
        ("{\"key\":\"é\",\"x\":1}", format!("1:12: expected {once}, found \"x\"")),
        ("{\"key\":1}", "1:8: expected a string or {\"$bytes\": \"base64\"}, found 1".to_owned()),
        ("{\"key\":{\"$f64\":1}}", "1:9: expected \"$bytes\", found \"$f64\"".to_owned()),
        ("{\"key\"}", "1:7: expected ':' after the field name, found '}'".to_owned()),
        ("{key:1}", format!("1:2: expected {name}, found key")),
        ("{\"key\":\"a\",\"value\":1,}", format!("1:22: expected {name}, found '}}'")),
        (
            "{\"key\":\"a\",\"value\":1} x",
            "1:23: expected the end of the line after the row, found x".to_owned(),
        ),
        (
            "{\"key\":\"a\",\n\"value\":1}",
            format!("1:12: expected {name}, found the end of the line"),
        ),
        (
            "{\"key\":\"a",
            "1:10: expected a quote at the end of the string, found the end of the \
                         input"
                .to_owned(),
        ),
        ("{\"key\":\"a\",", format!("1:12: expected {name}, found the end of the input")),
    ] {
        rejects(text.as_bytes(), &parse(text.as_bytes()), &expected);
    }
}

#[test]
fn text_that_is_not_utf8_is_rejected() {
    for (text, expected) in [
        (&b"{\"key\":\"a\xff\",\"value\":1}"[..], "1:10"),
        (b"{\"key\":\"a\",\"value\":\"\xc3\xa9\xc3\"}", "1:22"),
        (b"{\"key\":\"a\",\"value\":\"\\n\xed\xa0\x80\"}", "1:23"),
    ] {
        let error = parse(text).expect_err("text that is not UTF-8");
        assert!(error.starts_with(&format!("{expected}: expected text in UTF-8, found the byte")));
    }
}

#[test]
fn rows_before_an_error_are_added() {
    let mut rows = crate::Rows::default();
    let text = b"{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"value\":null}\n";
    assert!(parse_jsonl(text, &mut rows).is_err());
    assert_eq!(rows.0, ["1 a I64(1)"]);
}
