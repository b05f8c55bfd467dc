//! Standard output and standard error: results, messages and progress.

mod greeting;
mod progress;
mod quote;
mod streams;

pub(crate) use greeting::{greet, metrics_at};
pub(crate) use progress::Display;
pub(crate) use quote::shown;
pub(crate) use streams::{Stdout, print, report, report_result, tell, tell_lines};
