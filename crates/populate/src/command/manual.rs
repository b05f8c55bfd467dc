//! The notes of the help page.

pub(super) const ABOUT: &str = "\
Build a snapshot from databases and files, check it, and publish it.

A job file in TOML names the sources, how their rows become entries, the conditions that a snapshot
must meet before it replaces the last one (gates), and where it is published. For one source without
gates, options are enough. Sources are PostgreSQL, MySQL and MariaDB, SQLite, and CSV, JSON lines,
Parquet and Arrow files on disk, on web servers or in object stores.";

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

docs/populate.md has all fields, and the type that each column is stored as. A NULL makes no entry,
unless nulls = \"empty\" or \"error\" in the source.

All sources of one database are read in one snapshot of it. Rows are streamed. Passwords are not
shown. Connections to other machines are encrypted and verified, unless tls in the source or sslmode
in its address says otherwise.

If a gate fails, nothing is published: the file of --output and the generation of the destination
stay. The message has what each failed gate found. A snapshot without entries is refused unless
min_entries = 0 in the gates. --accept-change accepts a large change once.

With --every, the command runs until it is interrupted: a run that fails is reported, and the next
one begins at its time.

--json prints the report of a run as an object on a line, with output, incremental, entries, bytes,
sources, gates, published, attempts and seconds; of a run that failed, or a job that is invalid,
with error and gates.

Examples:
  nuthatch populate users.toml
  nuthatch populate users.toml --every 15min
  nuthatch populate users.toml --dry-run
  nuthatch populate --source sqlite:users.db --query \"select id, name, score from users\" \\
    --key \"user:{id}.{column}\" -o users.nut
  nuthatch populate --source 'data/*.parquet' --key \"{id}\" --value score -o scores.nut

Exit status:
    0  success
    1  a gate failed
    2  invalid command line
    3  any other error, for example: the job is invalid, a source cannot be read, or the run was
       interrupted (with --every, an interruption is a success)
  130  another signal, half a second or more after the first, ended the command at once; the next
       run removes its temporary files";
