//! `nuthatch dump`: all entries as text.

use super::{Answer, Failure};
use clap::Args;
#[derive(Debug, Args)]
pub(crate) struct Dump {}
impl Dump {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        Ok(Answer::Whole)
    }
}
