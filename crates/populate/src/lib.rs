//! Snapshots from databases and files: reads rows, makes entries of them by templates, checks the
//! snapshot by gates, and publishes it.
//!
//! A [`Job`] names the sources, the snapshot and the gates. [`run`] runs it once, and [`preview`]
//! returns its first entries. The program `nuthatch-populate` is a shell around these.
//!
//! Modules import in one direction, down this list:
//!
//! | folder | content |
//! |---|---|
//! | `run/` | one run of a job, with its attempts, its report, and the merge of incremental jobs |
//! | `gates/` | what must hold before a snapshot is published |
//! | `build/` | the threads that pass rows to the writer of the snapshot |
//! | `sources/` | readers of databases and files, one file or folder for each |
//! | `job/` | jobs, and their form in TOML |
//! | `interruption/` | waits that end when the job is interrupted |
//! | `error.rs`, `gate_report.rs` | errors, and the outcome of gates |

mod build;
mod error;
mod gate_report;
mod gates;
mod interruption;
mod job;
mod run;
mod sources;

pub use error::{Error, Result};
pub use gate_report::GateReport;
pub use job::{
    Address, Format, GateQuery, Gates, Job, Publish, Ratio, Secret, SnapshotOptions, Source, Tls,
};
pub use nuthatch_rows::ColumnType;
pub use run::{Observer, PreviewedEntry, Progress, Report, SourceReport, preview, run};
