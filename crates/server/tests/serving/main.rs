//! Tests a server with raw bytes over its sockets.

mod cluster;
mod forwarding;
mod in_place;
mod login;
mod long_values;
mod moves;
mod nodes;
mod protocols;
mod reload;
#[path = "../served/mod.rs"]
mod served;
mod shutdown;
mod sockets;
mod tls;
mod zero_copy;

use std::io::{Read, Write};

/// Sends bytes, and reads until the server closes the connection.
fn ask_last(stream: &mut (impl Read + Write), request: &[u8]) -> String {
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, then the end");
    answer.escape_ascii().to_string()
}
