//! The manual page of `nuthatch build`.

pub(crate) const ABOUT: &str = "\
Make a snapshot from JSON lines, TSV, CSV, Parquet or AxonCache text.

Rows come in any order. The file is written under a temporary name, synced and then renamed, so \
that readers see the old file or the new one, never a part of it. The same rows and options make \
the same bytes, whatever the number of threads, the memory and the order of the rows.";

pub(crate) const NOTES: &str = "\
Formats:
  JSON lines: {\"key\": ..., \"value\": ...} on each line. The value's type is that of the JSON:
  string, integer of 64 bits, float (1.0 and 1e3 are floats), true or false, a list of integers,
  of floats (one float makes all of them floats) or of strings, or the empty list. Objects stand
  for what JSON lacks:
    {\"$bytes\": \"AAE=\"}        bytes in base64, also for a key that is not UTF-8
    {\"$f32\": [1, 2.5]}         a list of 32-bit floats
    {\"$f64\": \"NaN\"}            NaN, Infinity, -Infinity, or a float's bits such as
                               \"0x7ff8000000000001\"; also within a list in $f64 and $f32
  null, nested and mixed lists, and other objects are errors.

  TSV: key<TAB>value on each line, values of the type that --type tells. \\t \\n \\r \\\\ and \\xNN
  stand for a tab, a line feed, a carriage return, a backslash and the byte with that hexadecimal
  number. Lists are written as JSON.

  CSV: a header, then rows. --key names the column with the keys; the others are strings unless
  --type or --column say otherwise. An empty field is an empty string, and no value at all for
  types that have none. Fields in quotes may span lines.

  Parquet: --key names the column with the keys: text, bytes or integers. Integers, dates and
  times become integers; FLOAT and DOUBLE floats; text strings; other columns bytes; lists of
  integers, FLOAT (which stays 32 bits wide), DOUBLE and text become lists. Nulls are left out.

  AxonCache text: records key=value, each ended by the byte 0x1E. A key that begins with the byte
  0x01, which is not part of it, holds a list of strings with | between them.

  Errors name file, line and character of the line. For AxonCache text they count records instead
  of lines, for Parquet rows and columns.

Examples:
  nuthatch build users.jsonl -o users.nut
  zcat dump.gz | nuthatch build - -o users.nut
  nuthatch build names.tsv ages.jsonl -o people.nut --type string
  nuthatch build cities.csv -o cities.nut --key id --column population:i64
  nuthatch build items.parquet -o items.nut --key item_id --value embedding --f32 '*'
  nuthatch build new.jsonl old.jsonl -o merged.nut --on-duplicate first
  nuthatch build users.jsonl -o - | ssh web 'cat > users.nut'

With -o - the snapshot is made in a file without a name in TMPDIR, then written, and the summary
goes to stderr.

Exit status:
  0  the snapshot is made
  2  the command line is wrong
  3  anything else; no file is made, and an older one stays as it was, unless the error says that
     the file was published";
