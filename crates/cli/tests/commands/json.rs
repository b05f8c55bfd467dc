//! JSON objects of any shape, and JSON documents.

use crate::folder::{Folder, lines, row};

#[test]
fn fields_of_objects_become_rows() {
    let folder = Folder::new();
    folder.file(
        "a.jsonl",
        "{\"id\": 7, \"name\": \"Ada\", \"at\": {\"x\": 1, \"y\": {\"z\": [0.5]}}, \"no\": null}\n\
         {\"tags\": [\"a\"], \"id\": \"t\\n\", \"empty\": {}, \"f\": {\"$f64\": \"NaN\"}}\n\
         {\"id\": {\"$bytes\": \"/w==\"}, \"b\": {\"$bytes\": \"AA==\"}}\n",
    );
    folder.build(&["a.jsonl", "-o", "a.nut", "--key", "id", "--f32", "*.z"]);
    let mut expected = [
        row("7.at.x", "1"),
        row("7.at.y.z", "{\"$f32\":[0.5]}"),
        row("7.name", "\"Ada\""),
        "{\"key\":{\"$bytes\":\"/y5i\"},\"value\":{\"$bytes\":\"AA==\"}}".to_owned(),
        row("t\\n.f", "{\"$f64\":\"NaN\"}"),
        row("t\\n.tags", "[\"a\"]"),
    ];
    expected.sort();
    assert_eq!(folder.rows("a.nut"), expected);
}

#[test]
fn one_field_can_have_the_value() {
    let folder = Folder::new();
    let text = "{\"other\": [1, \"a\", {}], \"v\": 1, \"k\": \"a\"}\n\
                {\"k\": \"b\", \"v\": null}\n\
                {\"k\": \"c\", \"v\": {\"x\": true}}\n";
    folder.file("a.jsonl", text);
    folder.build(&["a.jsonl", "-o", "a.nut", "--key", "k", "--value", "v"]);
    assert_eq!(folder.rows("a.nut"), [row("a", "1"), row("c.x", "true")]);
    folder.build(&["a.jsonl", "-o", "a.nut", "--key", "k", "--value", "k"]);
    assert_eq!(folder.rows("a.nut").first(), Some(&row("a", "\"a\"")));
}

#[test]
fn objects_that_are_no_rows_are_errors_with_their_place() {
    let folder = Folder::new();
    let deep = format!("{{\"k\":\"a\",\"v\":{}1{}}}", "{\"x\":".repeat(64), "}".repeat(64));
    for (text, value, message) in [
        ("{\"v\": 1}", None, "8: expected the field \"k\", which has the key, found '}'"),
        ("{}", None, "2: expected the field \"k\", which has the key, found '}'"),
        ("{\"k\": \"a\"}", Some("v"), "10: expected the field \"v\", which can be null, found '}'"),
        (
            "{\"k\": 1.5, \"v\": 1}",
            None,
            "7: expected a key: a string, an integer or {\"$bytes\": \"base64\"}, found 1.5",
        ),
        (
            "{\"k\": \"a\", \"k\": \"b\"}",
            None,
            "12: expected the field with the key once, found \"k\" again",
        ),
        (
            "{\"k\": \"a\", \"v\": [1, \"a\"]}",
            None,
            "21: expected a number, as the first element is, found a string",
        ),
        (
            "{\"k\": \"a\", \"v\": 1",
            None,
            "18: expected ',' or '}' after the field, found the end of the input",
        ),
        ("[1]", None, "1: expected an object with the fields of a row, found a list"),
        (
            &deep,
            None,
            "329: expected at most 64 lists and objects within each other, found an object",
        ),
    ] {
        folder.file("a.jsonl", text);
        let mut build = vec!["a.jsonl", "-o", "a.nut", "--key", "k"];
        build.extend(value.map(|_| "--value"));
        build.extend(value);
        assert_eq!(folder.build_fails(3, &build), format!("nuthatch: a.jsonl:1:{message}\n"));
    }
}

#[test]
fn an_array_of_objects_is_read_like_json_lines() {
    let folder = Folder::new();
    let pairs = "[\n  {\"key\": \"a\",\n   \"value\": [1,\n 2]},\n\
                 \x20 {\"value\": \"],\", \"key\": \"b\"}\n]\n";
    folder.file("a.json", pairs).build(&["a.json", "-o", "a.nut"]);
    assert_eq!(folder.rows("a.nut"), [row("a", "[1,2]"), row("b", "\"],\"")]);
    folder.file("b.json", "\u{feff} [{\"id\": 1,\r\n\"x\": {\"y\": 2}}]");
    folder.build(&["b.json", "-o", "b.nut", "--key", "id"]);
    assert_eq!(folder.rows("b.nut"), [row("1.x.y", "2")]);
    for empty in ["[]", " [ ] \n", "{ }"] {
        folder.file("c.json", empty).build(&["c.json", "-o", "c.nut"]);
        assert_eq!(folder.rows("c.nut").len(), 0);
    }
    let run =
        folder.run_with(&["build", "-q", "-", "-o", "a.nut", "--format", "json"], b"{\"a\":1}");
    assert_eq!((run.status, folder.rows("a.nut")), (Some(0), vec![row("a", "1")]));
}

#[test]
fn an_object_has_keys_and_values() {
    let folder = Folder::new();
    let text =
        "{\"user:1\": {\"name\": \"Ada\", \"tags\": []}, \"limit\": 5,\n \"\": \"\", \"no\": null}";
    folder.file("a.json", text).build(&["a.json", "-o", "a.nut"]);
    let mut expected = [
        row("", "\"\""),
        row("limit", "5"),
        row("user:1.name", "\"Ada\""),
        row("user:1.tags", "[]"),
    ];
    expected.sort();
    assert_eq!(folder.rows("a.nut"), expected);
    folder.file("b.json", "{\"a\": 1,\n\n \"a\": 2}");
    let error = folder.build_fails(3, &["b.json", "-o", "b.nut"]);
    assert!(
        error.starts_with("nuthatch: b.json:3: expected every key once, found \"a\""),
        "{error}"
    );
    assert!(error.contains("first given at b.json:1;"), "{error}");
}

#[test]
fn documents_that_are_wrong_are_errors_with_their_place() {
    let folder = Folder::new();
    let pair = row("a", "1");
    for (text, message) in [
        (String::new(), "1:1: expected another element, and the end of the document, found"),
        (
            "[".to_owned(),
            "1:2: expected an element of the document, or its end, found the end of the input",
        ),
        (
            format!("[{pair},\n"),
            "1:24: expected another element, and the end of the document, found",
        ),
        (
            format!("[{pair}\n"),
            "2:1: expected ',' or ']' after the element, found the end of the input",
        ),
        (
            format!("[{pair}]\n{pair}"),
            "2:1: expected the end of the document; JSON lines need --format jsonl",
        ),
        (
            "{\"a\":1}\n{\"a\":2}".to_owned(),
            "2:1: expected the end of the document; JSON lines need --format jsonl",
        ),
        (
            "[] x".to_owned(),
            "1:4: expected the end of the document; JSON lines need --format jsonl, found x",
        ),
        (
            format!("[{pair},]"),
            "1:24: expected a row such as {\"key\": …, \"value\": …}, found ']'",
        ),
        (
            format!("[{pair},\n 5]"),
            "2:2: expected a row such as {\"key\": …, \"value\": …}, found 5",
        ),
        ("{\"a\": 1,\n5: 2}".to_owned(), "2:1: expected a field name, found 5"),
        (
            "5".to_owned(),
            "1:1: expected a JSON document: an array of objects, or an object, found 5",
        ),
    ] {
        folder.file("a.json", &text);
        let error = folder.build_fails(3, &["a.json", "-o", "a.nut"]);
        assert!(error.starts_with(&format!("nuthatch: a.json:{message}")), "{text}: {error}");
    }
    folder.file("a.json", "{\"a\": {\"id\": 1}}");
    let error = folder.build_fails(3, &["a.json", "-o", "a.nut", "--key", "id"]);
    assert!(error.contains("1:1: expected an array of objects, because of --key"), "{error}");
}

#[test]
fn documents_of_many_chunks_are_the_rows_of_json_lines() {
    let folder = Folder::new();
    let rows: Vec<_> =
        (0..60_000).map(|n| (format!("k{n}"), format!("\"],{{[{n}\\\"\""))).collect();
    let rows: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let jsonl = lines(&rows);
    folder.file("a.jsonl", &jsonl);
    folder.file("array.json", format!("[{}]", jsonl.trim_end().replace('\n', ",\n")));
    let fields: Vec<_> = rows.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    folder.file("object.json", format!("{{\n{}\n}}\n", fields.join(" , ")));
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    for name in ["array.json", "object.json"] {
        for threads in ["1", "3"] {
            folder.build(&[name, "-o", "b.nut", "--threads", threads]);
            assert!(folder.bytes("a.nut") == folder.bytes("b.nut"), "{name}, {threads} threads");
        }
    }
    let text = format!("[{},x]", jsonl.trim_end().replace('\n', ","));
    let column = text.len() - 1;
    folder.file("c.json", text);
    let error = folder.build_fails(3, &["c.json", "-o", "c.nut"]);
    assert!(error.starts_with(&format!("nuthatch: c.json:1:{column}: expected a row")), "{error}");
    let text = format!("[{},\nx]", jsonl.trim_end().replace('\n', ",\n"));
    folder.file("c.json", text);
    let error = folder.build_fails(3, &["c.json", "-o", "c.nut"]);
    assert!(error.starts_with("nuthatch: c.json:60001:1: expected a row such as"), "{error}");
}

#[test]
fn a_long_document_takes_little_memory() {
    let folder = Folder::new();
    let element = format!("{{\"id\":\"ID\",\"skipped\":[{}],\"v\":1}}", "[1,2],".repeat(300) + "0");
    let elements: Vec<_> = (0..40_000).map(|n| element.replace("ID", &n.to_string())).collect();
    folder.file("a.json", format!("[{}]", elements.join(",")));
    let options = ["--memory", "32MiB", "--threads", "4", "--key", "id", "--value", "v"];
    let (run, peak) =
        folder.run_with_peak(&[&["build", "-q", "a.json", "-o", "a.nut"], &options[..]].concat());
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(peak < 48 << 20, "{peak}");
    let loaded = folder.run(&["info", "a.nut", "--json"]).stdout;
    assert!(loaded.contains("\"entries\":40000"), "{loaded}");
}
