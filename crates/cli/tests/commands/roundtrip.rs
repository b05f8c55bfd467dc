//! `build` makes the same bytes from the output of `dump`.

use crate::folder::{Folder, lines};
use nuthatch_cli::output::json_row;
use nuthatch_snapshot::{StringListBuf, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Builds the same bytes from a dump.
#[track_caller]
fn same_again(folder: &Folder, options: &[&str]) {
    let dump = folder.run(&["dump", "a.nut"]);
    assert_eq!(dump.status, Some(0), "{dump:?}");
    folder.file("again.jsonl", &dump.stdout_bytes);
    folder.build(&[&["again.jsonl", "-o", "again.nut"], options].concat());
    assert!(folder.bytes("a.nut") == folder.bytes("again.nut"), "other bytes of\n{}", dump.stdout);
}

#[test]
fn a_dump_contains_the_rows_of_all_types_and_unusual_keys() {
    let folder = Folder::new();
    let rows = lines(&[
        ("", "[]"),
        ("é\\u0000\\\"", "\"\""),
        ("nan", "{\"$f64\":[\"NaN\",\"0xfff8000000000001\",-0.0,\"Infinity\"]}"),
        ("single nan", "{\"$f32\":[\"0x7f800001\",\"NaN\",1e-45]}"),
        ("minus nan", "{\"$f64\":\"0xfff8000000000000\"}"),
        ("least", "-9223372036854775808"),
        ("floats", "[1.0,2.0,1e300,5e-324]"),
        ("strings", "[\"\",\"\\n\",\"𝄞\"]"),
        ("bytes", "{\"$bytes\":\"\"}"),
    ]);
    let odd = "{\"key\":{\"$bytes\":\"/w==\"},\"value\":true}\n{\"key\":{\"$bytes\":\"w6k=\"},\
               \"value\":false}\n";
    folder.file("a.jsonl", rows + odd);
    for options in [&[][..], &["--seed", "7"], &["--compress", "zstd:1"]] {
        folder.build(&[&["a.jsonl", "-o", "a.nut"], options].concat());
        same_again(&folder, options);
    }
}

#[test]
fn compressed_and_shared_values_are_dumped_unchanged() {
    let folder = Folder::new();
    let row = |n: usize| {
        let tags: Vec<_> = (0..n % 7).map(|tag| format!("\"tag number {tag} of {n}\"")).collect();
        let vector: Vec<_> = (0..16).map(|at| format!("{}.25", at * n)).collect();
        format!(
            "{{\"key\":\"{n}.tags\",\"value\":[{}]}}\n\
             {{\"key\":\"{n}.text\",\"value\":\"a text that is the same in a way, number {}\"}}\n\
             {{\"key\":\"{n}.vector\",\"value\":{{\"$f32\":[{}]}}}}\n",
            tags.join(","),
            n % 10,
            vector.join(",")
        )
    };
    folder.file("a.jsonl", (0..3000).map(row).collect::<String>());
    for options in [&[][..], &["--compress", "zstd"]] {
        folder.build(&[&["a.jsonl", "-o", "a.nut"], options].concat());
        same_again(&folder, options);
    }
    let info = folder.run(&["info", "a.nut", "--json"]).stdout;
    let info: serde_json::Value = serde_json::from_str(&info).expect("a JSON object");
    assert!(info["compressed_entries"].as_u64() > Some(0), "{info}");
}

#[test]
fn tsv_of_each_type_comes_back() {
    let folder = Folder::new();
    for (name, values) in [
        ("bytes", ["{\"$bytes\":\"AAkK/w==\"}", "{\"$bytes\":\"\"}"]),
        ("string", ["\"a\\tb\\\\t\\r\\n\"", "\"\""]),
        ("bool", ["true", "false"]),
        ("i64", ["-1", "9223372036854775807"]),
        ("f64", ["{\"$f64\":\"0x7ff8000000000001\"}", "-0.0"]),
        ("i64[]", ["[1,-2]", "[]"]),
        ("f64[]", ["{\"$f64\":[\"NaN\",1]}", "[0.5]"]),
        ("f32[]", ["{\"$f32\":[\"-Infinity\",0.1]}", "[]"]),
        ("string[]", ["[\"a\\\\\\\"\\n\",\"\"]", "[]"]),
    ] {
        folder.file("a.jsonl", lines(&[("a\\n\\t\\\\", values[0]), ("b", values[1])]));
        folder.build(&["a.jsonl", "-o", "a.nut"]);
        let dump = folder.run(&["dump", "a.nut", "--format", "tsv"]);
        assert_eq!(dump.stderr.trim_end().rsplit(' ').next(), Some(name));
        folder.file("again.tsv", dump.stdout_bytes);
        folder.build(&["again.tsv", "-o", "again.nut", "--type", name]);
        assert!(folder.bytes("a.nut") == folder.bytes("again.nut"), "{name}: {}", dump.stdout);
    }
}

/// Generates the JSON of values of all types.
fn json_value() -> impl Strategy<Value = Vec<u8>> {
    let json = |value: Value<'_>| {
        let mut text = Vec::new();
        nuthatch_cli::output::json_value(&value, &mut text);
        text
    };
    prop_oneof![
        any::<String>().prop_map(move |text| json(Value::String(&text))),
        any::<Vec<u8>>().prop_map(move |bytes| json(Value::Bytes(&bytes))),
        any::<i64>().prop_map(move |int| json(Value::I64(int))),
        any::<u64>().prop_map(move |bits| json(Value::F64(f64::from_bits(bits)))),
        any::<Vec<i64>>().prop_map(move |list| json(Value::I64List(&list))),
        any::<Vec<u64>>().prop_map(move |bits| {
            json(Value::F64List(&bits.into_iter().map(f64::from_bits).collect::<Vec<_>>()))
        }),
        any::<Vec<u32>>().prop_map(move |bits| {
            json(Value::F32List(&bits.into_iter().map(f32::from_bits).collect::<Vec<_>>()))
        }),
        any::<Vec<String>>().prop_map(move |list| {
            json(Value::StringList(list.iter().collect::<StringListBuf>().as_list()))
        }),
    ]
}

proptest! {
    // Each case runs the command three times.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_rows_are_dumped_unchanged(
        rows in prop::collection::btree_map(any::<Vec<u8>>(), json_value(), 0..40),
        compress in any::<bool>()
    ) {
        let rows: BTreeMap<Vec<u8>, Vec<u8>> = rows;
        let mut text = Vec::new();
        for (key, value) in &rows {
            let mut row = Vec::new();
            json_row(key, &Value::Bool(true), &mut row);
            row.truncate(row.len() - b"true}".len());
            text.extend([&row, &value[..], b"}\n"].concat());
        }
        let folder = Folder::new();
        folder.file("a.jsonl", text);
        let options: &[&str] = if compress { &["--compress", "zstd:1"] } else { &[] };
        folder.build(&[&["a.jsonl", "-o", "a.nut"], options].concat());
        same_again(&folder, options);
        prop_assert_eq!(folder.rows("a.nut").len(), rows.len());
    }
}
