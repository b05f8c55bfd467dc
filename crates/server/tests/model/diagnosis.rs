//! Describes the state of the server when a connection gets no reply, so that a hang that was seen
//! once can be understood from the output of the test.

use crate::lane::Lane;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time to wait for the server, which may hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// Describes the connections, as the test and as the server see them. `resp` is a listener for
/// RESP. `patience` is the time to wait for each lane.
pub(crate) fn describe(
    started: Instant,
    lanes: &mut [Lane],
    (resp, patience): (&Path, Duration),
) -> String {
    let mut text = format!("{:.1} s after the server started\n", started.elapsed().as_secs_f64());
    for request in ["INFO server", "INFO clients", "INFO stats", "INFO memory", "CLIENT LIST"] {
        let answer = ask(resp, request).unwrap_or_else(|error| format!("no answer: {error}\n"));
        write!(text, "{request}:\n{answer}").expect("a text");
    }
    // Last, since it changes the state of the server: does it wake up for one more line?
    for (number, lane) in lanes.iter_mut().enumerate() {
        writeln!(text, "connection {number}: {}", lane.probe(patience)).expect("a text");
    }
    if let Ok(list) = ask(resp, "CLIENT LIST") {
        write!(text, "CLIENT LIST after one more line to each:\n{list}").expect("a text");
    }
    text
}

/// Requests a text over a connection of its own.
fn ask(resp: &Path, request: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(resp)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{request}\r\n").as_bytes())?;
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    stream.read_line(&mut head)?;
    let len = head.trim_end().strip_prefix('$').and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut text = vec![0; len];
    stream.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).replace("\r\n", "\n"))
}
