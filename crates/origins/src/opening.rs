//! Opening an object: asking its origin what it is.

use crate::access::Access;
use crate::address::{Address, Place};
use crate::attempts::{Attempts, Fault};
use crate::counts::{Count, Tally};
use crate::engine::{Asked, Engine};
use crate::error::{Error, Result};
use crate::origin::{Head, Origin};
use crate::version::Version;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

/// Opens an object.
pub(crate) async fn open(engine: &Arc<Engine>, text: &str, access: &Access) -> Result<Version> {
    let address = Address::parse(text)?;
    // What a file is costs nothing to find out.
    let local = matches!(address.place, Place::File(_));
    let (origin, plain) = if engine.clients.ready_for(&address.place) {
        engine.clients.origin(address, access)?
    } else {
        let (making, access) = (engine.clone(), access.clone());
        let make = move || making.clients.origin(address, &access);
        let task = Task(engine.spawn(async { spawn_blocking(make).await })?);
        task.end().await?.map_err(|_| Error::closed())??
    };
    let asked = Asked { address: text.to_owned(), shown: access.headers.clone() };
    if let Some(head) = engine.believed_head(&asked).filter(|_| !local) {
        return Ok(Version::new(
            engine.clone(),
            origin,
            plain,
            (head, None),
            asked,
            Tally::default(),
        ));
    }
    let tally = Tally::default();
    let asking = Asking { engine: engine.clone(), origin, address: plain, tally };
    let task = Task(engine.spawn(asking.run())?);
    let (asking, answer) = task.end().await?;
    let answer = answer?;
    let Asking { engine, origin, address, tally } = asking;
    if answer.1.is_none() && !local {
        engine.note_head(asked.clone(), &answer.0);
    }
    Ok(Version::new(engine, origin, address, answer, asked, tally))
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    async fn end(mut self) -> Result<T> {
        (&mut self.0).await.map_err(|_| Error::closed())
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The task that asks.
struct Asking {
    engine: Arc<Engine>,
    origin: Origin,
    address: String,
    tally: Tally,
}

/// What the origin said, and all bytes, if it does not tell how many there are.
pub(crate) type Answer = (Head, Option<Bytes>);

impl Asking {
    async fn run(self) -> (Self, Result<Answer>) {
        let answer = self.ask().await;
        (self, answer)
    }

    async fn ask(&self) -> Result<Answer> {
        let mut attempts = Attempts::new(&self.engine.settings, &self.address);
        loop {
            self.count(Count::Checks, 1);
            self.count(Count::Retries, u64::from(attempts.again()));
            match self.once().await {
                Ok(answer) => return Ok(answer),
                Err(fault) => tokio::time::sleep(attempts.failed(fault)?).await,
            }
        }
    }

    async fn once(&self) -> Result<Answer, Fault> {
        let (head, body) = self.engine.in_time(self.origin.head()).await?;
        let Some(mut body) = body else { return Ok((head, None)) };
        let mut all = BytesMut::new();
        while let Some(bytes) = self.engine.in_time(body.next()).await? {
            self.check_room(all.len() + bytes.len())?;
            all.extend_from_slice(&bytes);
            self.count(Count::Fetched, bytes.len() as u64);
        }
        Ok((head, Some(all.freeze())))
    }

    fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
        self.engine.count(count, number);
    }

    fn check_room(&self, len: usize) -> Result<()> {
        let most = self.engine.settings.unmeasured_most;
        if len as u64 <= most {
            return Ok(());
        }
        let expected = format!("a length, or at most {most} bytes");
        let (address, found) = (self.address.clone(), "no length, and more bytes".into());
        Err(Error::Answer { address, expected, found })
    }
}
