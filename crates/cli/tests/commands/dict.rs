//! `dict`.

use crate::folder::{Folder, row};
use nuthatch_testing::random;

/// Returns a JSON document of about 120 bytes.
fn document(n: usize) -> String {
    let city = ["Bern", "Basel", "Chur", "Genève"][n % 4];
    format!(
        "{{\"id\":{n},\"city\":\"{city}\",\"plan\":\"free\",\"is_active\":true,\"score\":{}}}",
        n * 7 % 100
    )
}

fn documents(range: std::ops::Range<usize>) -> String {
    range.map(|n| document(n) + "\n").collect()
}

/// Returns a folder with documents, and a dictionary of them.
fn trained() -> Folder {
    let folder = Folder::new();
    folder.file("users.jsonl", documents(0..2000)).file("new.jsonl", documents(3000..3100));
    let train = ["dict", "train", "--from", "users.jsonl", "--out", "users.zdict", "--quiet"];
    let run = folder.run(&train);
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""));
    folder
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn train_reports_what_the_dictionary_saves_on_held_out_samples() {
    let folder = trained();
    let run = folder.run(&["dict", "train", "--from", "users.jsonl", "-o", "a.zdict"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    for part in ["samples     2,000 read; 1,500 for training, 500 held out\n", "saved  ", "zstd -3"]
    {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    // The same samples yield the same dictionary.
    assert!(folder.bytes("a.zdict") == folder.bytes("users.zdict"));
    let train = ["dict", "train", "--from", "users.jsonl", "-o", "a.zdict", "--json"];
    let run = folder
        .run(&[&train[..], &["--id", "70000", "--level", "9", "--max-bytes", "1KiB"]].concat());
    let summary = json(&run.stdout);
    assert_eq!(
        (&summary["id"], &summary["level"], &summary["bytes"]),
        (&70000.into(), &9.into(), &1024.into())
    );
    let held_out = &summary["held_out"];
    let size = |name: &str| held_out[name].as_u64().expect("a number");
    assert!(size("dictionary_bytes") * 2 < size("plain_bytes"), "{summary}");
    assert!(size("plain_bytes") <= size("raw_bytes"), "{summary}");
    assert!(summary["saved"].as_f64().expect("a number") > 0.5);
}

#[test]
fn samples_are_lines_files_or_values_of_rows() {
    let folder = Folder::new();
    let lines = documents(0..400);
    folder.file("lines.txt", &lines);
    std::fs::create_dir_all(folder.path("files/more")).expect("a folder");
    let (mut csv, mut rows) = ("key,value\n".to_owned(), String::new());
    for (n, line) in lines.lines().enumerate() {
        folder.file(&format!("files/{}{n:04}", if n < 200 { "" } else { "more/" }), line);
        let quoted = line.replace('"', "\"\"");
        csv.extend([&n.to_string(), ",\"", &quoted, "\"\n"]);
        let value = serde_json::to_string(line).expect("a string");
        rows.push_str(&row(&n.to_string(), &value));
        rows.push('\n');
    }
    std::os::unix::fs::symlink(folder.path("files"), folder.path("files/loop")).expect("a link");
    folder.file("rows.csv", csv).file("rows.jsonl", rows);
    let train = |arguments: &[&str], stdin: &[u8]| {
        let train = [&["dict", "train", "-o", "a.zdict", "--json"], arguments].concat();
        let run = folder.run_with(&train, stdin);
        assert_eq!(run.status, Some(0), "{run:?}");
        (json(&run.stdout)["held_out"].clone(), folder.bytes("a.zdict"))
    };
    let expected = train(&["--from", "lines.txt"], b"");
    for (arguments, stdin) in [
        (&["--from", "-"][..], lines.as_bytes()),
        (&["--from", "files"], b""),
        (&["--from", "rows.csv", "--key", "key", "--value", "value"], b""),
        (&["--from", "rows.jsonl", "--format", "jsonl"], b""),
    ] {
        assert!(train(arguments, stdin) == expected, "{arguments:?}");
    }
}

/// Regression test: the dictionary of the first run was a sample of the second one.
#[test]
fn a_dictionary_in_the_folder_of_the_samples_is_no_sample() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("files")).expect("a folder");
    for n in 0..100 {
        folder.file(&format!("files/{n}"), document(n));
    }
    let mut dictionaries = Vec::new();
    for _ in 0..2 {
        let run = folder.run(&["dict", "train", "--from", "files", "-o", "files/a.zdict"]);
        assert_eq!(run.status, Some(0), "{run:?}");
        assert!(run.stdout.contains("samples     100 read;"), "{}", run.stdout);
        dictionaries.push(folder.bytes("files/a.zdict"));
    }
    assert!(dictionaries[0] == dictionaries[1]);
}

#[test]
fn inspect_describes_a_dictionary() {
    let folder = trained();
    let run = folder.run(&["dict", "inspect", "users.zdict"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    for part in ["2 bytes in each value\n", "at level 3\n", "is_active"] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    let found = json(&folder.run(&["dict", "inspect", "users.zdict", "--json"]).stdout);
    assert_eq!(found["bytes"], folder.bytes("users.zdict").len());
    let id = found["id"].as_u64().expect("an id");
    assert!((1024..16384).contains(&id), "{id}");
    assert_eq!(
        u64::from(u32::from_le_bytes(folder.bytes("users.zdict")[4..8].try_into().expect("4"))),
        id
    );
}

#[test]
fn try_compares_levels_with_and_without_the_dictionary() {
    let folder = trained();
    let run = folder.run(&["dict", "try", "users.zdict", "--from", "new.jsonl", "--level", "1,9"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    assert_eq!(run.stdout.matches("  dictionary  ").count(), 2, "{}", run.stdout);
    let arguments = ["dict", "try", "users.zdict", "--from", "new.jsonl", "--json", "-q"];
    let found = json(&folder.run(&arguments).stdout);
    assert_eq!(found["values"], 100);
    let levels = found["levels"].as_array().expect("levels");
    assert_eq!(
        levels.iter().map(|level| level["level"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(3), Some(9)]
    );
    for level in levels {
        let bytes = |form: &str| level[form]["bytes"].as_u64().expect("a number");
        assert!(bytes("dictionary") * 2 < bytes("plain"), "{level}");
        assert!(level["dictionary"]["decompress_ns"].as_u64() > Some(0));
    }
}

/// zstd reads the file, and its own dictionaries can be used here.
#[test]
fn dictionaries_are_those_of_zstd() {
    let folder = trained();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &folder.bytes("users.zdict"))
        .expect("zstd loads it");
    let raw = document(5000);
    let frame = compressor.compress(raw.as_bytes()).expect("zstd");
    assert!(frame.len() * 2 < raw.len(), "{}", frame.len());
    let samples: Vec<_> = (0..1000).map(document).collect();
    folder.file("zstd.dict", zstd::dict::from_samples(&samples, 4096).expect("zstd"));
    let run = folder.run(&["dict", "try", "zstd.dict", "--from", "new.jsonl", "--level", "3"]);
    assert_eq!(run.status, Some(0), "{run:?}");
}

#[test]
fn a_dictionary_that_saves_little_is_written_with_a_warning() {
    let folder = Folder::new();
    let digits = |seed| -> String {
        let digit = |byte: &u8| char::from(b"0123456789abcdef"[usize::from(byte & 15)]);
        random::bytes(seed, 400).iter().map(digit).collect()
    };
    folder.file("random", (0..500).map(|n| digits(n) + "\n").collect::<String>());
    let run = folder.run(&["dict", "train", "--from", "random", "-o", "a.zdict"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("it is hardly worthwhile below 10 %"), "{}", run.stderr);
}

#[test]
fn wrong_inputs_are_errors_and_write_nothing() {
    let folder = trained();
    folder.file("few", documents(0..3)).file("empty", "").file("a.gz", "x");
    folder.file("long", "x".repeat(100_000));
    let before = folder.bytes("users.jsonl");
    for (arguments, status, message) in [
        (&["train", "--from", "few", "-o", "a"][..], 3, "nuthatch: training from 3 samples with "),
        (
            &["train", "--from", "empty", "-o", "a"],
            3,
            "with 0 bytes: expected at least 8 samples with 1024 bytes",
        ),
        (&["train", "--from", "none", "-o", "a"], 3, "nuthatch: none: open: No such file"),
        (&["train", "--from", "a.gz", "-o", "a"], 2, "use zcat a.gz and --from -"),
        (&["train", "--from", "few", "-o", "a", "--key", "id"], 2, "found lines or files"),
        (&["train", "--from", "-", "-o", "a", "--format", "files"], 2, "found standard input"),
        (&["train", "--from", "users.jsonl", "-o", "users.jsonl"], 2, "another file for --out"),
        (
            &["train", "--from", "users.jsonl", "-o", "/dev/null"],
            3,
            "/dev/null: write: expected a file",
        ),
        (&["train", "--from", "few", "-o", "a", "--max-bytes", "1"], 2, "from 256 bytes to 16MiB"),
        (&["train", "--from", "few", "-o", "a", "--level", "23"], 2, "a level from 1 to 22"),
        (&["train", "--from", "few", "-o", "a", "--id", "0"], 2, "invalid value '0'"),
        (&["inspect", "users.jsonl"], 3, "users.jsonl: dictionary: expected the magic number"),
        (&["inspect", "none"], 3, "nuthatch: none: open: No such file"),
        (&["inspect", "."], 3, "nuthatch: .: read: Is a directory"),
        (&["try", "empty", "--from", "few"], 3, "empty: dictionary: expected the magic number"),
        (&["try", "users.zdict", "--from", "empty"], 3, "expected samples of 1 byte to 64 KiB"),
        (&["try", "users.zdict", "--from", "long"], 3, "expected samples of 1 byte to 64 KiB"),
        (&["try", "users.zdict"], 2, "--from <PATH>"),
    ] {
        let run = folder.run(&[&["dict"], arguments].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(status), ""), "{arguments:?} {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
        assert!(!folder.path("a").exists(), "{arguments:?}");
    }
    assert!(folder.bytes("users.jsonl") == before);
    let (status, message) =
        folder.run_with_full_output(&["dict", "train", "--from", "users.jsonl", "-o", "b"]);
    assert_eq!(status, Some(3));
    assert!(message.contains("the change was made: file        b; "), "{message}");
    assert!(folder.path("b").exists());
}
