//! The manual page of `nuthatch build`.

pub(crate) const ABOUT: &str = "\
Build a snapshot from JSON lines, JSON, TSV, CSV, Parquet, and text and files of AxonCache.

Rows can be in any order. The file is written under a temporary name, synced and then renamed, so \
that readers see the complete old file or the complete new one. The same rows and options result \
in the same bytes, regardless of the number of threads, the memory and the order of the rows. \
Only for several rows with the same key, the order determines which one --on-duplicate keeps.";

pub(crate) const NOTES: &str = "\
Formats:
  JSON lines: {\"key\": ..., \"value\": ...} on each line. The type of the value is its JSON type:
  string, 64-bit integer, float (1.0 and 1e3 are floats), boolean, list of integers, list of
  floats (if at least one element is a float), list of strings, or empty list. Objects represent
  values that JSON lacks:
    {\"$bytes\": \"AAE=\"}        bytes in base64, also for a key that is not UTF-8
    {\"$f32\": [1, 2.5]}         a list of 32-bit floats
    {\"$f64\": \"NaN\"}            NaN, Infinity, -Infinity, or the bits of a float such as
                               \"0x7ff8000000000001\"; also within a list in $f64 and $f32
  null, nested lists, lists of several types and other objects are errors.
  With --key, the objects can have any shape: --key names the field with the key, a string or an
  integer, and --value the one with the value. Without --value, each other field becomes a row with
  the key KEY.FIELD, and each field of a nested object one with KEY.FIELD.FIELD. A field that is
  null makes no row.

  JSON: an array of such objects, or one object whose fields are keys and values; the fields of
  nested objects become rows as above. Memory depends on the longest element only.

  TSV: key<TAB>value on each line, with values of the type --type. The escapes \\t \\n \\r \\\\ and
  \\xNN represent a tab, a line feed, a carriage return, a backslash and the byte with the
  hexadecimal number NN. Lists are written as JSON.

  CSV: a header line, then rows. --key names the column with the keys. The types of the other
  columns are set by --type and --column. An empty field is an empty string; for types other than
  string and bytes it makes no row. Quoted fields can contain line breaks. --delimiter sets another
  character than the comma. --header names the columns of a file whose first line is a row.

  Parquet: --key names the column with the keys: text, bytes or integers. Integers, dates and
  times become integers; FLOAT and DOUBLE become floats; text becomes strings; other columns
  become bytes. Lists of integers, FLOAT (stored as 32-bit floats), DOUBLE and text become lists.
  A null makes no row.

  AxonCache text: records key=value, each terminated by the byte 0x1E. If a key begins with the
  byte 0x01, the byte is removed and the value is a list of strings, separated by |.

  AxonCache files (.cache) with linear probing: all types are kept; a string that is not UTF-8
  becomes bytes. Other kinds of files are an error.

  Errors report the file, the line and the character in the line. For AxonCache they report the
  record instead of the line, for Parquet the row and the column.

Examples:
  nuthatch build users.jsonl -o users.nut
  zcat dump.gz | nuthatch build - -o users.nut
  nuthatch build names.tsv ages.jsonl -o people.nut --type string
  nuthatch build cities.csv -o cities.nut --key id --column population:i64
  nuthatch build export.txt -o a.nut --format csv --delimiter ';' --header id,name --key id
  nuthatch build events.jsonl -o events.nut --key event_id --value payload
  nuthatch build settings.json -o settings.nut
  nuthatch build items.parquet -o items.nut --key item_id --value embedding --f32 '*'
  nuthatch build new.jsonl old.jsonl -o merged.nut --on-duplicate first
  nuthatch build users.jsonl -o users.nut --meta created=\"$(date -Is)\" --meta source=crm
  nuthatch build big.parquet -o big/big.nut --key id --shards 16
  nuthatch build users.jsonl -o - | ssh web 'cat > new.nut && mv new.nut users.nut'

With -o - the snapshot is built in an unnamed file in TMPDIR and then written to standard output.
The summary is printed to stderr.

Exit status:
  0  the snapshot is built
  2  invalid command line
  3  any other error. An existing file is unchanged, unless the error reports that the new file
     was published";
