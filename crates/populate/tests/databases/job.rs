//! Jobs with one source, a query of a server.

use crate::place::{Place, Run};
use nuthatch_testing::database::Database;
use std::process::{Child, Stdio};

/// Runs a job, with the password of the servers in its environment.
pub(crate) fn run(place: &Place, job: &str) -> Run {
    Run::of(start(place, job).wait_with_output().expect("the command"))
}

/// Starts a job, with its output in pipes.
pub(crate) fn start(place: &Place, job: &str) -> Child {
    place.file("job.toml", job);
    let mut command = place.command(&["job.toml", "--json"]);
    command.env("MYSQL_PWD", "a5ecret").env("PGPASSWORD", "a5ecret");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command")
}

/// Returns a job. `more` has fields of its source, and tables after it.
pub(crate) fn job(server: &Database, query: &str, more: &str) -> String {
    format!(
        "output = \"a.nut\"\n[[source]]\nfrom = \"{}\"\nquery = \"\"\"{query}\"\"\"\n\
         key = \"{{id}}.{{column}}\"\n{more}",
        server.address()
    )
}
