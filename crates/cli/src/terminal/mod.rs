//! Standard output and standard error: results and messages.

mod greeting;
mod quote;
mod streams;

pub(crate) use greeting::{greet, metrics_at};
pub(crate) use nuthatch_terminal::{Display, print_message};
pub(crate) use quote::quote_key;
pub(crate) use streams::{
    Stdout, print, print_error_lines, print_failure, print_result, print_summary,
};
