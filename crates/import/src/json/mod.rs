//! A scanner of JSON text for values of the types that snapshots store. It builds no tree: text
//! without escapes is borrowed, and lists are collected in [`ValueBuffers`], which are reused.

mod buffers;
mod list;
mod number;
mod scanner;
mod skip;
mod string;
mod value;

pub(crate) use buffers::{ParsedValue, ValueBuffers};
pub(crate) use list::Elements;
pub(crate) use number::{Number, f64_by_name};
pub(crate) use scanner::Scanner;
pub(crate) use skip::MAX_DEPTH;
