//! The notes of the help page.

pub(super) const ABOUT: &str = "\
Build a snapshot from databases and files, check it, and publish it.

A job file in TOML names the sources, how their rows become entries, what must hold before the
snapshot replaces the last one (gates), and where it is published. For one source, options are
enough. Sources are PostgreSQL, MySQL and MariaDB, SQLite, and CSV, JSON lines, Parquet and Arrow
files on disk, on web servers or in object stores.";

pub(super) const NOTES: &str = "\
A job:
  output = \"users.nut\"
  publish = \"s3://bucket/users\"            # optional, as \"nuthatch publish\"

  [[source]]
  from = \"postgresql://reader@db/app\"
  password_file = \"/run/secrets/db\"        # or password_env, or PGPASSWORD, MYSQL_PWD
  query = \"select id, name, score, settings from users\"
  key = \"user:{id}.{column}\"               # {column} is the name of the column with the value
  types = { settings = \"flatten\" }         # an entry for each field of the JSON
  split = \"id\"                             # read in parallel, by ranges of id

  [gates]
  min_entries = 1000
  max_entry_change = \"10%\"                 # against the last generation
  required_keys = [\"user:1.name\"]
  sample = 100                             # rows that are read again and compared

docs/populate.md has all fields, and the type that each column is stored as. NULL has no entry,
unless nulls is \"empty\" or \"error\".

All sources of one database are read in one snapshot of it. Rows are streamed. Passwords are not
shown. Connections to other machines are encrypted and verified, unless tls or sslmode says
otherwise.

If a gate does not let the snapshot pass, nothing is published: the file of --output and the
generation of the destination stay. The message has what each gate found.

With --every, the command runs until it is interrupted: a run that fails is reported, and the next
one begins at its time.

--json prints the report of a run as an object on a line, with output, incremental, entries, bytes,
sources, gates, published, attempts and seconds.

Examples:
  nuthatch populate users.toml
  nuthatch populate users.toml --every 15min
  nuthatch populate users.toml --dry-run
  nuthatch populate --source sqlite:users.db --query \"select id, name, score from users\" \\
    --key \"user:{id}.{column}\" -o users.nut
  nuthatch populate --source data/*.parquet --key \"{id}\" --value score -o scores.nut

Exit status:
  0  success
  1  a gate did not let the snapshot pass
  2  invalid command line
  3  any other error, for example: the job is invalid, or a source cannot be read";
