//! A job of one source, from options.

use super::Failure;
use clap::Args;
use nuthatch_populate::Job;
use std::path::Path;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

/// The source of a job without a file.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Database or files: postgresql://, mysql://, sqlite:PATH, a path, s3://, gs://, az://, https://
    #[arg(long, value_name = "ADDRESS", help_heading = "Source")]
    source: Option<String>,
    /// Query, for databases
    #[arg(long, value_name = "SQL", requires = "source", help_heading = "Source")]
    query: Option<String>,
    /// Template of the keys, such as user:{id}.{column}
    #[arg(
        long,
        value_name = "TEMPLATE",
        requires = "source",
        required_unless_present = "job",
        help_heading = "Source"
    )]
    key: Option<String>,
    /// Column with values; can be repeated. By default, all columns that are not in the key
    #[arg(long, value_name = "COLUMN", requires = "source", help_heading = "Source")]
    value: Vec<String>,
    /// Type of a column, if it differs from that of the source; can be repeated
    ///
    /// Types: bytes, string, bool, i64, f64, i64[], f64[], f32[], string[], and flatten for an
    /// entry for each field of a JSON object.
    #[arg(long = "column", value_name = "NAME:TYPE", requires = "source", help_heading = "Source")]
    columns: Vec<String>,
    /// Read PostgreSQL in parallel, by ranges of this column of integers
    #[arg(long, value_name = "COLUMN", requires = "source", help_heading = "Source")]
    split: Option<String>,
    /// Read only rows that changed, by this column, which grows with each change of a row; they are
    /// merged with the last generation
    #[arg(long, value_name = "COLUMN", requires = "source", help_heading = "Source")]
    since: Option<String>,
    /// Maximum time between full runs with --since [default: 24h]
    #[arg(long, value_name = "TIME", requires = "since", help_heading = "Source")]
    full_every: Option<String>,
}

impl SourceArgs {
    /// Returns the job.
    pub(super) fn job(&self, output: Option<&Path>) -> Result<Job, Failure> {
        let mut source = Table::new();
        let fields = [
            ("from", &self.source),
            ("query", &self.query),
            ("key", &self.key),
            ("split", &self.split),
            ("since", &self.since),
        ];
        for (name, field) in fields {
            if let Some(text) = field {
                source[name] = value(text);
            }
        }
        if !self.value.is_empty() {
            source["values"] = value(self.value.iter().collect::<Array>());
        }
        let mut types = InlineTable::new();
        for column in &self.columns {
            let (name, column_type) = column.rsplit_once(':').ok_or_else(|| {
                Failure::Usage(format!("--column: expected NAME:TYPE, found \"{column}\""))
            })?;
            types.insert(name, column_type.into());
        }
        if !types.is_empty() {
            source["types"] = value(types);
        }
        let mut document = DocumentMut::new();
        let output = output
            .unwrap_or(Path::new(""))
            .to_str()
            .ok_or_else(|| Failure::Usage("--output: expected a path in UTF-8".to_owned()))?;
        document["output"] = value(output);
        if let Some(time) = &self.full_every {
            document["full_every"] = value(time);
        }
        let mut sources = ArrayOfTables::new();
        sources.push(source);
        document["source"] = Item::ArrayOfTables(sources);
        // The fields are those of the options, which messages therefore name by their field.
        Job::parse(&document.to_string()).map_err(|error| Failure::Usage(error.to_string()))
    }
}
