//! Publication of the snapshot of a job.

use super::observer::{Observer, Progress};
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::Job;
use nuthatch_delivery::{
    Destination, PublishOptions, Published, Retention, SigningKey, TrustedKey, Uploaded,
    check_serial as check_serial_now, publish as upload,
};
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::runtime::Builder;

/// Runs a request to a destination to its end, or until the job is interrupted.
pub(super) fn wait<T>(
    interruption: &Interruption,
    request: impl Future<Output = Result<T, nuthatch_delivery::Error>>,
) -> Result<T> {
    let built = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = built.map_err(|error| Error::System(format!("start a runtime: {error}")))?;
    let result = runtime.block_on(interruption.or(request));
    // Does not wait for other threads: a lookup of the name of a host can take long.
    runtime.shutdown_background();
    Ok(result??)
}

/// Checks the destination and the keys of a job, before anything is read.
pub(super) fn check(job: &Job) -> Result<()> {
    if let Some(publish) = &job.publish {
        Destination::open(&publish.destination)?;
        for path in publish.signing_key.iter().chain(&publish.trusted_keys) {
            // Keys are read several times in a run; a pipe can be read once.
            if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
                let path = path.display();
                let message =
                    format!("{path}: expected a file with a key, found another kind of file");
                return Err(Error::Job(message));
            }
        }
        publish.signing_key.as_deref().map(SigningKey::read).transpose()?;
        publish.trusted_keys.iter().try_for_each(|path| TrustedKey::read(path).map(|_| ()))?;
    }
    Ok(())
}

/// Fails if the manifest of the destination was replaced since the run began. The output then stays
/// as it is; without this check, an older snapshot could replace it.
pub(super) fn check_serial(
    job: &Job,
    expected: Option<u64>,
    interruption: &Interruption,
) -> Result<()> {
    let (Some(publish), Some(expected)) = (&job.publish, expected) else { return Ok(()) };
    let destination = Destination::open(&publish.destination)?;
    wait(interruption, check_serial_now(&destination, expected))
}

/// Publishes the snapshot, if the job has a destination. The manifest must still have the serial
/// number that it had when the run began.
pub(super) fn publish(
    job: &Job,
    (now, expected_serial): (SystemTime, Option<u64>),
    (interruption, observer): (&Interruption, &Arc<dyn Observer>),
) -> Result<Option<Published>> {
    let Some(publish) = &job.publish else { return Ok(None) };
    let destination = Destination::open(&publish.destination)?;
    let trusted = publish.trusted_keys.iter().map(|path| TrustedKey::read(path));
    let options = PublishOptions {
        signing_key: publish.signing_key.as_deref().map(SigningKey::read).transpose()?,
        trusted_keys: trusted.collect::<Result<Vec<_>, _>>()?,
        retention: Retention { max_generations: publish.keep, max_age: publish.keep_age },
        delta_limit: publish.delta_limit,
        expected_serial,
        ..PublishOptions::at(now)
    };
    let progress = |sent: Uploaded| {
        observer
            .progress(Progress::Publishing { bytes: sent.bytes, total_bytes: sent.total_bytes });
    };
    match wait(interruption, upload(&destination, &job.output, &options, progress)) {
        Ok(published) => Ok(Some(published)),
        Err(_) if interruption.is_set() => Err(Error::InterruptedPublication {
            output: job.output.clone(),
            destination: destination.address().to_owned(),
        }),
        Err(error) => Err(error),
    }
}
