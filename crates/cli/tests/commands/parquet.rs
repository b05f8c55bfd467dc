//! Parquet files, written with the `parquet` crate.

use crate::folder::{Folder, row};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::sync::Arc;

type Group<'a> = SerializedRowGroupWriter<'a, File>;

/// Writes a file with this schema and several copies of a group of rows.
fn write(folder: &Folder, name: &str, schema: &str, groups: &[&dyn Fn(&mut Group<'_>)]) {
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = File::create(folder.path(name)).expect("a file");
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a writer");
    for group in groups {
        let mut row_group = writer.next_row_group().expect("a group");
        group(&mut row_group);
        row_group.close().expect("the end of a group");
    }
    writer.close().expect("the end of the file");
}

/// Writes the next column: its values, and the definition and repetition levels.
fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], defined: &[i16], repeated: &[i16]) {
    let mut column = group.next_column().expect("a column").expect("one more column");
    let levels = |levels: &[i16]| (!levels.is_empty()).then(|| levels.to_vec());
    column
        .typed::<T>()
        .write_batch(values, levels(defined).as_deref(), levels(repeated).as_deref())
        .expect("values");
    column.close().expect("the end of a column");
}

fn texts(texts: &[&str]) -> Vec<ByteArray> {
    texts.iter().map(|&text| ByteArray::from(text)).collect()
}

#[test]
fn plain_columns_become_values() {
    let folder = Folder::new();
    let schema = "message m {
        required binary id (UTF8); optional boolean b; optional int32 small; optional int64 big;
        optional int32 unsigned (INTEGER(32, false)); optional float f; optional double d;
        optional binary text (STRING); optional binary bytes; optional fixed_len_byte_array(2) two;
        optional int32 day (DATE); }";
    write(
        &folder,
        "a.parquet",
        schema,
        &[&|group| {
            column::<ByteArrayType>(group, &texts(&["x", "y"]), &[], &[]);
            column::<BoolType>(group, &[true], &[1, 0], &[]);
            column::<Int32Type>(group, &[-5], &[1, 0], &[]);
            column::<Int64Type>(group, &[i64::MIN], &[1, 0], &[]);
            column::<Int32Type>(group, &[-1], &[1, 0], &[]);
            column::<FloatType>(group, &[0.5], &[1, 0], &[]);
            column::<DoubleType>(group, &[0.1], &[1, 0], &[]);
            column::<ByteArrayType>(group, &texts(&["é"]), &[1, 0], &[]);
            column::<ByteArrayType>(group, &[ByteArray::from(vec![255])], &[1, 0], &[]);
            let two = FixedLenByteArray::from(ByteArray::from(vec![1, 2]));
            column::<FixedLenByteArrayType>(group, &[two], &[0, 1], &[]);
            column::<Int32Type>(group, &[20_000], &[1, 0], &[]);
        }],
    );
    folder.build(&["a.parquet", "-o", "a.nut", "--key", "id"]);
    assert_eq!(
        folder.rows("a.nut"),
        [
            row("x.b", "true"),
            row("x.big", "-9223372036854775808"),
            row("x.bytes", "{\"$bytes\":\"/w==\"}"),
            row("x.d", "0.1"),
            row("x.day", "20000"),
            row("x.f", "0.5"),
            row("x.small", "-5"),
            row("x.text", "\"é\""),
            row("x.unsigned", "4294967295"),
            row("y.two", "{\"$bytes\":\"AQI=\"}"),
        ]
    );
    folder.build(&["a.parquet", "-o", "a.nut", "--key", "id", "--value", "text"]);
    assert_eq!(folder.rows("a.nut"), [row("x", "\"é\"")]);
}

#[test]
fn lists_become_lists() {
    let folder = Folder::new();
    let list = |name: &str, element: &str| {
        format!("optional group {name} (LIST) {{ repeated group list {{ optional {element}; }} }}")
    };
    let schema = format!(
        "message m {{ required int64 id; {} {} {} {} repeated int32 plain;
         required group two (LIST) {{ repeated double element; }} }}",
        list("ints", "int64 element"),
        list("texts", "binary element (UTF8)"),
        list("singles", "float element"),
        list("doubles", "double element"),
    );
    // Three rows: a list of two elements, an empty list, and null.
    let levels = (&[3, 3, 1, 0][..], &[0, 1, 0, 0][..]);
    write(
        &folder,
        "a.parquet",
        &schema,
        &[&|group| {
            column::<Int64Type>(group, &[1, 2, 3], &[], &[]);
            column::<Int64Type>(group, &[7, -8], levels.0, levels.1);
            column::<ByteArrayType>(group, &texts(&["a", ""]), levels.0, levels.1);
            column::<FloatType>(group, &[0.1, 2.0], levels.0, levels.1);
            column::<DoubleType>(group, &[0.1, f64::NAN], levels.0, levels.1);
            column::<Int32Type>(group, &[4, 5], &[1, 1, 0, 0], &[0, 1, 0, 0]);
            column::<DoubleType>(group, &[0.5], &[0, 0, 1], &[0, 0, 0]);
        }],
    );
    folder.build(&["a.parquet", "-o", "a.nut", "--key", "id"]);
    assert_eq!(
        folder.rows("a.nut"),
        [
            row("1.doubles", "{\"$f64\":[0.1,\"NaN\"]}"),
            row("1.ints", "[7,-8]"),
            row("1.plain", "[4,5]"),
            row("1.singles", "{\"$f32\":[0.1,2.0]}"),
            row("1.texts", "[\"a\",\"\"]"),
            row("1.two", "[]"),
            row("2.doubles", "[]"),
            row("2.ints", "[]"),
            row("2.plain", "[]"),
            row("2.singles", "[]"),
            row("2.texts", "[]"),
            row("2.two", "[]"),
            row("3.plain", "[]"),
            row("3.two", "[0.5]"),
        ]
    );
    folder.build(&["a.parquet", "-o", "a.nut", "--key", "id", "--value", "doubles", "--f32", "*"]);
    assert_eq!(folder.rows("a.nut"), [row("1", "{\"$f32\":[0.1,\"NaN\"]}"), row("2", "[]")]);
    folder.build(&["a.parquet", "-o", "a.nut", "--key", "id", "--value", "ints", "--f32", "1"]);
    assert_eq!(folder.rows("a.nut"), [row("1", "{\"$f32\":[7.0,-8.0]}"), row("2", "[]")]);
}

#[test]
fn rows_of_many_groups_are_imported_in_order() {
    let folder = Folder::new();
    let schema = "message m { required int64 id; required int64 n; }";
    let group = |first: i64| {
        move |group: &mut Group<'_>| {
            let ids: Vec<_> = (first..first + 20_000).collect();
            column::<Int64Type>(group, &ids, &[], &[]);
            column::<Int64Type>(group, &ids, &[], &[]);
        }
    };
    write(&folder, "a.parquet", schema, &[&group(0), &group(20_000), &group(39_990)]);
    let arguments = ["a.parquet", "-o", "a.nut", "--key", "id", "--value", "n"];
    let error = folder.build_fails(3, &arguments);
    let expected = "nuthatch: a.parquet:40001: expected every key once, found \"39990\" again, \
                    first given at a.parquet:39991; --on-duplicate first or last keeps one\n";
    assert_eq!(error, expected);
    folder.build(&[&arguments[..], &["--on-duplicate", "last"]].concat());
    assert_eq!(folder.run(&["get", "a.nut", "59989"]).stdout, "59989\n");
    assert_eq!(folder.rows("a.nut").len(), 59_990);
}

#[test]
fn values_that_cannot_be_stored_are_reported_by_column() {
    let folder = Folder::new();
    let schema = "message m { required int64 id; required group g { required int32 a; }
        required int64 price (DECIMAL(9, 2)); required int96 old; optional int64 maybe;
        required int64 unsigned (INTEGER(64, false));
        repeated boolean flags; required double d; }";
    write(
        &folder,
        "a.parquet",
        schema,
        &[&|group| {
            column::<Int64Type>(group, &[1], &[], &[]);
            column::<Int32Type>(group, &[1], &[], &[]);
            column::<Int64Type>(group, &[1], &[], &[]);
            column::<Int96Type>(group, &[Int96::default()], &[], &[]);
            column::<Int64Type>(group, &[], &[0], &[]);
            column::<Int64Type>(group, &[-1], &[], &[]);
            column::<BoolType>(group, &[true], &[1], &[0]);
            column::<DoubleType>(group, &[0.5], &[], &[]);
        }],
    );
    let plain = "expected booleans, integers, floats, text or bytes, found";
    for (key, value, message) in [
        (
            "id",
            "g",
            "column \"g\": expected a plain column or a list of plain elements, found one \
                     with columns inside",
        ),
        ("id", "price", &format!("column \"price\": {plain} decimals")),
        ("id", "old", &format!("column \"old\": {plain} 96-bit integers")),
        (
            "id",
            "flags",
            "column \"flags\": expected a list of integers, floats or text, found a \
                         list of booleans",
        ),
        (
            "id",
            "none",
            "expected a column \"none\", found \"id\", \"g\", \"price\", \"old\", \
                        \"maybe\", \"unsigned\", \"flags\", \"d\"",
        ),
        ("d", "id", "column \"d\": expected text, bytes or integers as keys"),
    ] {
        let arguments = ["a.parquet", "-o", "a.nut", "--key", key, "--value", value];
        let error = folder.build_fails(3, &arguments);
        assert_eq!(error, format!("nuthatch: a.parquet: {message}\n"));
    }
    for (key, value, message) in [
        ("maybe", "id", "1:5: expected a key in column \"maybe\", found a null"),
        (
            "id",
            "unsigned",
            "1:6: expected an integer below 2^63 in column \"unsigned\", found \
                            18446744073709551615",
        ),
    ] {
        let arguments = ["a.parquet", "-o", "a.nut", "--key", key, "--value", value];
        assert_eq!(folder.build_fails(3, &arguments), format!("nuthatch: a.parquet:{message}\n"));
    }
}

#[test]
fn streams_and_other_files_are_no_parquet() {
    let folder = Folder::new();
    folder.file("a.parquet", "not Parquet at all");
    let error = folder.build_fails(3, &["a.parquet", "-o", "a.nut", "--key", "id"]);
    assert!(error.starts_with("nuthatch: a.parquet: "), "{error}");
    let arguments = ["-", "--format", "parquet", "-o", "a.nut", "--key", "id"];
    let expected = "nuthatch: <stdin>: expected a file, because Parquet is read from its end, \
                    found a stream\n";
    assert_eq!(folder.build_fails(3, &arguments), expected);
}
