//! `nuthatch info`: x.

use super::{Answer, Failure};
use clap::Args;
#[derive(Debug, Args)]
pub(crate) struct Info {}
impl Info {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        Ok(Answer::Whole)
    }
}
