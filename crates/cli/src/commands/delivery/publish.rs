//! `nuthatch publish`.

use super::keys::{SigningKeyArg, read_trusted};
use super::{now, runtime};
use crate::arguments::OtlpArgs;
use crate::commands::json_object::JsonObject;
use crate::outcome::{Failure, Outcome};
use crate::process::raise_file_limit;
use crate::terminal::{Display, print_message, print_result};
use clap::Args;
use nuthatch_cli::output::json_string;
use nuthatch_delivery::{Destination, PublishOptions, Published, Retention, publish};
use nuthatch_units::{bytes, parse_size, parse_time};
use std::path::PathBuf;
use std::time::Duration;

const NOTES: &str = "\
Verifies the snapshot, uploads its files under names that begin with their hash, and then replaces
the manifest of DEST, which lists the generations. Files that a listed generation has are not
uploaded again, so of a set only the changed shards are. If the current generation has the same
contents, there is no new one.

A file of 64 KiB to --delta-limit also gets a delta: the rows by which it differs from the one of
the current generation, if they take at most half of its length. Followers that have that file build
the new one from it, and accept the result only if its hash is that of the manifest. For that, the
command reads the current file (from a store, it downloads it), and builds the new one once beside
FILE, with up to 512 MiB of memory and with disk space for both files and for all keys and values.
If that gives other bytes, for example because another version of nuthatch has built FILE, there is
no delta, and a note says so.

The manifest is replaced only if no other publisher has replaced it since this command began.
Otherwise the command fails and leaves the manifest unchanged.

Credentials for s3://, gs:// and az:// come from the environment, as for the store's own tools: for
example AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL.

Generations beyond --keep or older than --keep-age leave the manifest, and their files are removed.
The current generation stays. Files of uploads that failed are removed by the next publication that
is a day younger.

With --sign-key, the generations of a manifest without a signature are not kept. A manifest that
another key has signed is refused, unless --trust-key names that key: to change the key, publish
once with both.

A pair of keys for signatures: openssl genpkey -algorithm ed25519 -out sign.pem, and
openssl pkey -in sign.pem -pubout -out trust.pem for the followers.

Examples:
  nuthatch publish users.nut /srv/shared/users
  nuthatch publish users.nut s3://bucket/users --sign-key sign.pem
  nuthatch publish users/users.nut gs://bucket/users --keep 5 --keep-age 7d

Exit status:
  0  the generation is the current one
  2  invalid command line
  3  any other error, for example: the snapshot is damaged, DEST cannot be written, or another
     publisher has replaced the manifest. The manifest is as before, unless the connection was lost
     while it was being written, the folder of DEST could not be synced, or the result could not be
     written to standard output: `nuthatch generations DEST` shows it";

/// Publish a snapshot as the current generation of a folder or an object store
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Publish {
    /// Snapshot file, or the manifest of a set
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A folder, `s3://bucket/path`, `gs://bucket/path` or `az://container/path`, for one snapshot
    #[arg(value_name = "DEST")]
    destination: String,
    /// Name of the snapshot at the followers; by default that of the current generation, or of FILE
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    key: SigningKeyArg,
    /// With --sign-key: accept a manifest that this Ed25519 public key (PEM) has signed; can be
    /// repeated
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    trust_key: Vec<PathBuf>,
    /// Maximum number of generations that are kept, the new one included
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Maximum age of generations that are kept, such as 7d; any age by default
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    keep_age: Option<Duration>,
    /// Maximum length of a file for which a delta is made, and of its keys and values without
    /// compression, such as 4GiB; 0 for no deltas
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    delta_limit: u64,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Print the result as a JSON object
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    #[command(flatten)]
    otlp: OtlpArgs,
}

impl Publish {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let _logs = self.otlp.start_logs("nuthatch-publish")?;
        // All shards of a set are open at the same time.
        raise_file_limit();
        let destination = Destination::open(&self.destination)?;
        let options = PublishOptions {
            signing_key: self.key.read()?,
            retention: Retention { max_generations: self.keep as usize, max_age: self.keep_age },
            name: self.name.clone(),
            trusted_keys: read_trusted(&self.trust_key)?,
            delta_limit: self.delta_limit,
            ..PublishOptions::at(now())
        };
        let display = Display::new(self.quiet || self.json, None);
        let show = |sent: nuthatch_delivery::Uploaded| {
            display.transferred("publishing", "", sent.bytes, sent.total_bytes);
        };
        let published = runtime(1)?.block_on(publish(&destination, &self.file, &options, show));
        display.finish();
        let published = published?;
        for failure in &published.delta_failures {
            print_message(format_args!("note: no delta for {failure}"));
        }
        for failure in &published.unread_objects {
            print_message(format_args!("note: used again without verification: {failure}"));
        }
        if let Some(failure) = &published.cleanup_failure {
            print_message(format_args!(
                "warning: files that no generation needs were not removed: {failure}"
            ));
        }
        if self.json {
            print_result(&json(&published))?;
        } else if !self.quiet {
            print_result(&text(&destination, &published))?;
        }
        Ok(Outcome::Success)
    }
}

fn text(destination: &Destination, published: &Published) -> String {
    let (generation, at) = (published.generation, destination.address());
    if published.is_unchanged {
        return format!("{at}: generation {generation} already has these contents\n");
    }
    let (all, sent) = (bytes(published.bytes), bytes(published.uploaded_bytes));
    let delta = match published.delta_bytes {
        0 => String::new(),
        len => format!(", delta {}", bytes(len)),
    };
    format!("{at}: generation {generation} is current, {all}, {sent} uploaded{delta}\n")
}

fn json(published: &Published) -> String {
    let removed: Vec<_> = published.removed.iter().map(u64::to_string).collect();
    JsonObject::new()
        .plain("generation", published.generation)
        .plain("unchanged", published.is_unchanged)
        .plain("bytes", published.bytes)
        .plain("uploaded_bytes", published.uploaded_bytes)
        .plain("delta_bytes", published.delta_bytes)
        .plain("delta_failures", array(&published.delta_failures))
        .plain("unread_objects", array(&published.unread_objects))
        .plain("removed", format_args!("[{}]", removed.join(",")))
        .line()
}

/// Returns an array of strings in JSON.
fn array(texts: &[String]) -> String {
    let quoted = texts.iter().map(|text| {
        let mut json = Vec::new();
        json_string(text, &mut json);
        String::from_utf8_lossy(&json).into_owned()
    });
    format!("[{}]", quoted.collect::<Vec<_>>().join(","))
}
