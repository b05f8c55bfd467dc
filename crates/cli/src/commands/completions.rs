//! `nuthatch completions`: scripts that let shells complete commands.

use crate::outcome::{Failure, Outcome};
use crate::terminal::Stdout;
use clap::{Args, Command};
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
    /// Prints the script for the commands of `command`.
    pub(crate) fn run(&self, mut command: Command) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "nuthatch", &mut script);
        let mut stdout = Stdout::new();
        stdout.write(&script)?;
        stdout.flush()?;
        Ok(Outcome::Success)
    }
}
