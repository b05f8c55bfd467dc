//! `nuthatch completions`: scripts that let shells complete commands.

use super::{Answer, Cli, Failure};
use crate::streams::Stdout;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

const NOTES: &str = "\
Examples:
  nuthatch completions bash > ~/.local/share/bash-completion/completions/nuthatch
  nuthatch completions zsh > ~/.zfunc/_nuthatch
  nuthatch completions fish > ~/.config/fish/completions/nuthatch.fish";

/// Print a script that lets your shell complete nuthatch commands
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "nuthatch", &mut script);
        let mut stdout = Stdout::new();
        stdout.put(&script)?;
        stdout.flush()?;
        Ok(Answer::Whole)
    }
}
