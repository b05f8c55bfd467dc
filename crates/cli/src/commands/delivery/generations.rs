//! `nuthatch generations`.

use super::keys::{SigningKeyArg, TrustedKeyArgs};
use super::runtime;
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;
use clap::Args;
use nuthatch_delivery::{Destination, Generation, Manifest, generations, roll_back, timestamp};
use nuthatch_units::{bytes, grouped};
use std::fmt::Write;

const NOTES: &str = "\
--rollback makes another generation the current one, older or newer, and followers fetch it. The
next publication becomes current again, with a number after the last one: stop the job that
publishes first. Generations are never changed.

With --rollback, --sign-key signs the new manifest; it is required if the manifest is signed.

--json prints an object on a line for each generation:
  {\"generation\":7,\"current\":true,\"created\":\"2026-11-27T09:30:00Z\",\"name\":\"users.nut\",
   \"entries\":5,\"bytes\":1344,\"files\":1,\"metadata\":{\"source\":\"crm\"}}   (on one line)

Examples:
  nuthatch generations /srv/shared/users
  nuthatch generations s3://bucket/users --rollback 6
  nuthatch generations s3://bucket/users --json | jq 'select(.current).created'

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: nothing is published, or there is no such generation";

/// List the generations of a folder or an object store, or make another one the current one
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Generations {
    /// The destination of "nuthatch publish"
    #[arg(value_name = "DEST")]
    destination: String,
    /// Make this generation the current one
    #[arg(long, value_name = "N")]
    rollback: Option<u64>,
    #[command(flatten)]
    signing_key: SigningKeyArg,
    #[command(flatten)]
    trusted_keys: TrustedKeyArgs,
    /// Print a JSON object for each generation
    #[arg(long)]
    json: bool,
}

impl Generations {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let destination = Destination::open(&self.destination)?;
        let (key, trusted) = (self.signing_key.read()?, self.trusted_keys.read()?);
        if key.is_some() && self.rollback.is_none() {
            return Err(Failure::Usage("--sign-key is for --rollback, and there is none".into()));
        }
        let manifest = runtime(1)?.block_on(async {
            match self.rollback {
                Some(id) => roll_back(&destination, id, key.as_ref(), &trusted).await,
                None => generations(&destination, &trusted).await,
            }
        })?;
        print(&if self.json { json(&manifest) } else { text(&manifest) })?;
        Ok(Outcome::Success)
    }
}

fn text(manifest: &Manifest) -> String {
    let mut text =
        String::from("  generation  published                     entries        size  name\n");
    for generation in &manifest.generations {
        let mark = if generation.id == manifest.current { "*" } else { " " };
        let _ = writeln!(
            text,
            "{mark} {:>10}  {:20}  {:>15}  {:>10}  {}",
            generation.id,
            timestamp(generation.created),
            grouped(generation.entries),
            bytes(generation.bytes()),
            generation.name(),
        );
    }
    text
}

fn json(manifest: &Manifest) -> String {
    manifest.generations.iter().map(|generation| line(generation, manifest.current)).collect()
}

fn line(generation: &Generation, current: u64) -> String {
    let mut metadata = JsonObject::new();
    for (name, value) in &generation.metadata {
        metadata = metadata.text(name, value);
    }
    JsonObject::new()
        .plain("generation", generation.id)
        .plain("current", generation.id == current)
        .text("created", &timestamp(generation.created))
        .text("name", generation.name())
        .plain("entries", generation.entries)
        .plain("bytes", generation.bytes())
        .plain("files", generation.files.len())
        .plain("metadata", metadata.end())
        .line()
}
