//! Standard output and standard error: results, messages and progress.

mod greeting;
mod progress;
mod quote;
mod streams;

pub(crate) use greeting::{greet, metrics_at};
pub(crate) use progress::Display;
pub(crate) use quote::quote_key;
pub(crate) use streams::{
    Stdout, print, print_error_lines, print_failure, print_message, print_result, print_summary,
};
