//! Jobs that read files.

use crate::place::Place;
use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use std::fs::File;
use std::sync::Arc;

#[test]
fn csv_has_text_unless_a_type_is_named() {
    let place = Place::new();
    place.file("a.csv", "\u{feff}id;name;score\n1;\"a;b\";0.5\n2;;1\n");
    let run = place.job(
        "output = \"a.nut\"\n[[source]]\nfrom = \"a.csv\"\ndelimiter = \";\"\n\
         key = \"{id}.{column}\"\ntypes = { score = \"f64\" }",
    );
    assert_eq!(run.report()["sources"][0]["rows"], 2);
    let expected = ["1.name=String(\"a;b\")", "1.score=F64(0.5)", "2.score=F64(1.0)"];
    assert_eq!(place.entries("a.nut"), expected);
}

#[test]
fn compressed_and_headless_text_is_read() {
    let place = Place::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, b"1\tAda\n").expect("compressed");
    place.file("a.tsv.gz", gzip.finish().expect("compressed"));
    let lines = b"{\"id\": 2, \"name\": \"Grace\"}\n\n";
    place.file("b.jsonl.zst", zstd::encode_all(&lines[..], 3).expect("compressed"));
    place
        .job(
            "output = \"a.nut\"\n\
             [[source]]\nfrom = \"a.tsv.gz\"\nheader = [\"id\", \"name\"]\nkey = \"{id}\"\n\
             [[source]]\nfrom = \"b.jsonl.zst\"\nkey = \"{id}\"\n",
        )
        .report();
    assert_eq!(place.entries("a.nut"), ["1=String(\"Ada\")", "2=String(\"Grace\")"]);
}

#[test]
fn json_lines_can_have_other_fields_on_each_line() {
    let place = Place::new();
    place.file(
        "a.jsonl",
        "{\"id\": \"a\", \"n\": 1, \"tags\": [\"x\", \"\\n\"]}\n\
         {\"late\": {\"p\": true}, \"id\": \"b\", \"f\": 1e3, \"z\": null}\n",
    );
    place
        .job("output = \"a.nut\"\n[[source]]\nfrom = \"a.jsonl\"\nkey = \"{id}.{column}\"")
        .report();
    assert_eq!(
        place.entries("a.nut"),
        [
            "a.n=I64(1)",
            "a.tags=StringList([\"x\", \"\\n\"])",
            "b.f=F64(1000.0)",
            "b.late=String(\"{\\\"p\\\": true}\")",
        ]
    );
}

#[test]
fn faults_in_text_name_the_file_and_the_line() {
    let place = Place::new();
    for (name, text, expected) in [
        ("a.csv", "id,name\n1,Ada\n2\n", "a.csv: line 3: expected 2 values, found 1"),
        ("a.csv", "", "a.csv: expected a header line, found an empty file"),
        ("a.csv", "id,v\n1,x\n2,\"y\n3,z\n", "line 3: expected a closing quote"),
        (
            "a.jsonl",
            "{\"id\": 1, \"v\": 1}\n{\"id\": 2,\n",
            "a.jsonl: line 2: expected a JSON object",
        ),
        ("a.jsonl", "[1]\n", "a.jsonl: line 1: expected a JSON object"),
        (
            "a.jsonl",
            "{\"id\":1,\"id\":2}\n",
            "line 1: expected each field once, found \"id\" again",
        ),
        ("a.jsonl", "{\"id\":1,\"v\":99999999999999999999}\n", "column \"v\": expected an integer"),
        ("a.jsonl", "{\"id\":1,\"v\":[1,\"x\"]}\n", "the type string stores the JSON as text"),
        (
            "a.jsonl",
            "{\"v\":1}\n",
            "row 1: column \"id\": expected a value for the key, found NULL",
        ),
        ("a.parquet", "PAR1", "a.parquet: expected a Parquet file"),
        ("a.arrow", "ARROW1", "a.arrow: expected an Arrow file"),
        ("a.txt", "x", "a.txt: expected a name that ends in .csv, .jsonl, .parquet or .arrow"),
    ] {
        place.file(name, text);
        let source = format!("--source={name}");
        let run = place.run(&[&source, "--key={id}.{column}", "-o=a.nut"]);
        run.failed(3, expected);
        assert!(!place.path().join("a.nut").exists());
    }
    let run = place.run(&["--source=missing/*.csv", "--key={id}", "-o=a.nut"]);
    run.failed(3, "list ");
    let run = place.run(&["--source=x-*.csv", "--key={id}", "-o=a.nut"]);
    run.failed(3, "expected files, found none of this name");
}

#[test]
fn all_files_that_match_a_pattern_are_read() {
    let place = Place::new();
    for part in 0..20 {
        place.file(&format!("part-{part}.csv"), format!("id,v\n{part},x\n"));
    }
    place.file("other.csv", "id,v\n100,x\n");
    let run = place.job(
        "output = \"a.nut\"\n[[source]]\nfrom = \"part-*.csv\"\nkey = \"{id}\"\nreaders = 4\n",
    );
    assert_eq!(run.report()["sources"][0]["rows"], 20);
    assert_eq!(place.entries("a.nut").len(), 20);
    // Where the order counts, files are read in the order of their names.
    place.file("part-99.csv", "id,v\n7,y\n");
    place
        .job(
            "output = \"a.nut\"\non_duplicate = \"last\"\n\
             [[source]]\nfrom = \"part-*.csv\"\nkey = \"{id}\"\nreaders = 4\n",
        )
        .report();
    assert!(place.entries("a.nut").contains(&"7=String(\"y\")".to_owned()));
}

/// Returns a batch with a column of each type.
fn batch(first: i64, rows: i64) -> RecordBatch {
    let ids: Vec<i64> = (first..first + rows).collect();
    let strings: Vec<_> = ids.iter().map(|id| format!("user {id}")).collect();
    let dictionary: DictionaryArray<arrow_array::types::Int32Type> =
        ids.iter().map(|id| if id % 2 == 0 { "even" } else { "odd" }).collect();
    let decimals = Decimal128Array::from_iter_values(ids.iter().map(|id| i128::from(*id)));
    let decimals = decimals.with_precision_and_scale(10, 2).expect("a decimal");
    let mut tags = ListBuilder::new(StringBuilder::new());
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for id in &ids {
        tags.append_value((0..id % 3).map(|tag| Some(format!("tag {tag}"))));
        vectors.values().append_slice(&[*id as f32, 0.5]);
        vectors.append(true);
    }
    let flags: BooleanArray = ids.iter().map(|id| Some(id % 2 == 0)).collect();
    let small: Int32Array = ids.iter().map(|id| (id % 2 == 0).then_some(7)).collect();
    let columns: [(&str, ArrayRef); 11] = [
        ("id", Arc::new(Int64Array::from(ids.clone()))),
        ("name", Arc::new(StringArray::from(strings))),
        ("parity", Arc::new(dictionary)),
        ("price", Arc::new(decimals)),
        ("tags", Arc::new(tags.finish())),
        ("vector", Arc::new(vectors.finish())),
        ("day", Arc::new(Date32Array::from_iter_values(ids.iter().map(|id| *id as i32)))),
        ("flag", Arc::new(flags)),
        ("small", Arc::new(small)),
        ("big", Arc::new(UInt64Array::from_iter_values(ids.iter().map(|id| id.unsigned_abs())))),
        ("score", Arc::new(Float64Array::from_iter_values(ids.iter().map(|id| *id as f64 / 4.0)))),
    ];
    let columns = columns.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

fn expected(id: i64) -> Vec<String> {
    let tags: Vec<_> = (0..id % 3).map(|tag| format!("tag {tag}")).collect();
    let tags = if tags.is_empty() { "EmptyList".into() } else { format!("StringList({tags:?})") };
    let parity = if id % 2 == 0 { "even" } else { "odd" };
    let mut entries = vec![
        format!("{id}.big=I64({id})"),
        format!("{id}.day=String(\"1970-01-{:02}\")", id + 1),
        format!("{id}.flag=Bool({})", id % 2 == 0),
        format!("{id}.name=String(\"user {id}\")"),
        format!("{id}.parity=String(\"{parity}\")"),
        format!("{id}.price=String(\"0.{id:02}\")"),
        format!("{id}.score=F64({:?})", id as f64 / 4.0),
        format!("{id}.tags={tags}"),
        format!("{id}.vector=F32List([{id}.0, 0.5])"),
    ];
    if id % 2 == 0 {
        entries.push(format!("{id}.small=I64(7)"));
    }
    entries
}

fn check_types(place: &Place, file: &str) {
    let source = format!("--source={file}");
    let run = place.run(&[&source, "--key={id}.{column}", "-o=a.nut", "--json"]);
    assert_eq!(run.report()["sources"][0]["rows"], 20, "{file}");
    let mut all: Vec<_> = (0..20).flat_map(expected).collect();
    all.sort();
    assert_eq!(place.entries("a.nut"), all, "{file}");
}

#[test]
fn parquet_is_read_by_row_groups_with_all_types() {
    let place = Place::new();
    let file = File::create(place.path().join("a.parquet")).expect("a file");
    let schema = batch(0, 1).schema();
    let properties = parquet::file::properties::WriterProperties::builder();
    let properties = properties.set_max_row_group_row_count(Some(7)).build();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(file, schema, Some(properties)).expect("a writer");
    writer.write(&batch(0, 20)).expect("written");
    writer.close().expect("written");
    check_types(&place, "a.parquet");
}

#[test]
fn arrow_files_and_streams_are_read_with_all_types() {
    let place = Place::new();
    let schema = batch(0, 1).schema();
    let file = File::create(place.path().join("a.arrow")).expect("a file");
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &schema).expect("a writer");
    writer.write(&batch(0, 12)).expect("written");
    writer.write(&batch(12, 8)).expect("written");
    writer.finish().expect("written");
    check_types(&place, "a.arrow");
    let file = File::create(place.path().join("b.ipc")).expect("a file");
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(file, &schema).expect("a writer");
    writer.write(&batch(0, 20)).expect("written");
    writer.finish().expect("written");
    check_types(&place, "b.ipc");
}

#[test]
fn lines_of_json_without_values_are_counted_and_checked() {
    let place = Place::new();
    place.file("a.jsonl", "{\"id\":1}\n{\"id\":2,\"v\":3}\n");
    let job = |more: &str| {
        format!("output = \"a.nut\"\n[[source]]\nfrom = \"a.jsonl\"\nkey = \"{{id}}\"\n{more}")
    };
    assert_eq!(place.job(&job("")).report()["sources"][0]["rows"], 2);
    place.job(&job("nulls = \"empty\"")).failed(3, "nulls: expected the names of the columns");
    place.job(&job("nulls = \"empty\"\nvalues = [\"v\"]")).report();
    assert_eq!(place.entries("a.nut"), ["1=String(\"\")", "2=I64(3)"]);
    place.file("a.jsonl", "{\"id\":null}\n{\"id\":2,\"v\":3}\n");
    place.job(&job("")).failed(3, "line 1: column \"id\": expected a value for the key");
}

#[test]
fn a_pipe_is_not_read_twice() {
    let place = Place::new();
    let pipe = place.path().join("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("a pipe");
    place.file(
        "job.toml",
        "output = \"a.nut\"\n[[source]]\nfrom = \"pipe.csv\"\nkey = \"{id}\"\n\
         [gates]\nsample = 1\n",
    );
    let mut command = place.command(&["job.toml"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("the command");
    std::fs::write(&pipe, "id,v\n1,x\n").expect("a reader");
    let run = crate::place::Run::of(child.wait_with_output().expect("the command"));
    run.failed(3, "a pipe cannot be read again");
}

#[test]
fn a_value_that_cannot_be_stored_is_named_by_its_file_and_row() {
    let place = Place::new();
    place.file("part-1.csv", "id,v\n1,1\n2,2\n");
    place.file("part-2.csv", "id,v\n3,3\n4,four\n");
    let source = ["--source=part-*.csv", "--key={id}", "--column=v:i64"];
    for more in ["--output=a.nut", "--dry-run"] {
        let run = place.run(&[&source[..], &[more]].concat());
        run.failed(3, "part-2.csv: row 2: column \"v\": expected an integer");
    }
}
