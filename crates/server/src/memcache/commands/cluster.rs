//! Slots of a cluster: which requests this node executes, and what others execute instead.

use super::resp_command::command;
use crate::cluster::{Cluster, Forward, Refusal, Replies, Requests, Targets};
use crate::memcache::reply::{self, Line};
use crate::memcache::{Get, KeyBuffer, Meta, MetaVerb, Request, Store, TooLarge};
use crate::resp::commands::{encode_request, writes};
use crate::state::Server;
use nuthatch_cluster::slot::slot_of;

/// Returns why this node does not execute a request. It executes one with keys in different slots
/// if it serves all of them.
#[inline]
pub(crate) fn refuse(
    cluster: &Cluster,
    server: &Server,
    is_permitted: bool,
    request: &Request<'_>,
) -> Option<Refusal> {
    let mut room = KeyBuffer::default();
    let keys = super::keys(request, &mut room);
    // Each node serves keys of snapshots.
    let keys = keys.filter(|key| server.snapshot_key(key).is_none());
    let writes = may_change(request);
    match cluster.refuse(is_permitted, writes, keys.clone())? {
        Refusal::CrossSlot => cluster.refuse_each(is_permitted, writes, keys),
        refusal => Some(refusal),
    }
}

/// Returns whether a request may change an item. One that reads may give an item its number for
/// compare-and-set, or mark it: the target of a move must have them, too.
fn may_change(request: &Request<'_>) -> bool {
    match request {
        Request::Get(get) if get.cas => true,
        Request::Meta(_) => true,
        _ => writes(command(request)),
    }
}

/// The bytes that a key of a request that is split takes in addition to its own.
const SPLIT_KEY_LEN: usize = 64;

/// What the replies of other nodes are joined to.
enum Joined {
    /// The reply of the only one.
    One,
    /// The values of these keys, in this order.
    Values(Vec<Box<[u8]>>),
    /// `OK` of all nodes.
    AllOk,
}

/// Creates what other nodes execute for a request with keys, or for `flush_all`. `bytes` are those
/// of the request, perhaps without its value, and with others after it.
pub(crate) fn forward(request: &Request<'_>, bytes: &[u8]) -> Forward {
    let mut room = KeyBuffer::default();
    let mut slots: Vec<u16> = super::keys(request, &mut room).map(slot_of).collect();
    let is_one_slot = slots.windows(2).all(|two| two[0] == two[1]);
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (requests, joined) = match request {
        Request::Get(get) if !is_one_slot => {
            let keys: Vec<Box<[u8]>> = get.keys.into_iter().map(Into::into).collect();
            (split(get, keys.clone()), Joined::Values(keys))
        }
        Request::TooLarge(TooLarge { key, .. }) => {
            let flag: &[u8] = if key.base64 { b" b" } else { b"" };
            let line = [b"md ", key.text(), flag].concat();
            // Afterwards this node replies with the error.
            (whole(&line, None), Joined::One)
        }
        Request::FlushAll { .. } => (whole(line, None), Joined::AllOk),
        _ => (whole(line, value(request)), Joined::One),
    };
    if let Requests::Whole(_) = requests {
        slots.truncate(1);
    }
    let copied_len = match &requests {
        Requests::Whole(bytes) => bytes.len(),
        Requests::Split(_) => {
            let keys = super::keys(request, &mut room);
            2 * keys.map(|key| key.len() + SPLIT_KEY_LEN).sum::<usize>()
        }
    };
    let is_for_all = matches!(joined, Joined::AllOk);
    let noreply = super::execute::noreply(request);
    Forward {
        targets: if is_for_all { Targets::AllNodes } else { Targets::Slots(slots) },
        requests,
        is_resp3: false,
        writes: writes(command(request)),
        copied_len,
        then_executes: matches!(request, Request::TooLarge(_)),
        join: Box::new(move |replies| join(replies, &joined, noreply)),
    }
}

/// Returns the data block of a request, if it has one.
fn value<'b>(request: &Request<'b>) -> Option<&'b [u8]> {
    match request {
        Request::Store(Store { value, .. })
        | Request::Meta(Meta { verb: MetaVerb::Set(_), value, .. }) => Some(value),
        _ => None,
    }
}

fn whole(line: &[u8], value: Option<&[u8]>) -> Requests {
    let head: [&[u8]; 3] = [b"CLUSTER", b"MEMCACHED", line];
    Requests::Whole(encode_request(head.into_iter().chain(value)))
}

/// Returns requests for some of the keys.
fn split(get: &Get<'_>, keys: Vec<Box<[u8]>>) -> Requests {
    let verb = match (get.exptime, get.cas) {
        (None, false) => "get".to_owned(),
        (None, true) => "gets".to_owned(),
        (Some(exptime), false) => format!("gat {exptime}"),
        (Some(exptime), true) => format!("gats {exptime}"),
    };
    Requests::Split(Box::new(move |positions| {
        let mut line = verb.clone().into_bytes();
        for key in positions.iter().filter_map(|position| keys.get(*position)) {
            line.push(b' ');
            line.extend_from_slice(key);
        }
        let head: [&[u8]; 3] = [b"CLUSTER", b"MEMCACHED", &line];
        encode_request(head.into_iter())
    }))
}

fn join(replies: Replies, joined: &Joined, noreply: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if let Err(text) = try_join(replies, joined, &mut out) {
        out.clear();
        reply::server_error(&mut out, &text);
    }
    if noreply {
        out.clear();
    }
    out
}

fn try_join(replies: Replies, joined: &Joined, out: &mut Vec<u8>) -> Result<(), String> {
    let replies = replies.map_err(|why| format!("the request could not be forwarded: {why}"))?;
    let contents =
        replies.iter().map(|(_, bytes)| content(bytes)).collect::<Result<Vec<_>, _>>()?;
    let failed = |expected: &[u8]| {
        contents.iter().find(|content| !content.is_empty() && !content.ends_with(expected))
    };
    match joined {
        Joined::One => out.extend(contents.iter().copied().flatten()),
        Joined::AllOk => match failed(Line::Ok.bytes()) {
            Some(error) => out.extend_from_slice(error),
            None => reply::line(out, Line::Ok),
        },
        Joined::Values(keys) => {
            if let Some(error) = failed(Line::End.bytes()) {
                out.extend_from_slice(error);
            } else {
                let positions = replies.iter().map(|(positions, _)| &**positions);
                join_values(keys, positions.zip(contents).collect(), out);
            }
        }
    }
    Ok(())
}

/// Appends the values of all keys. A part has the positions of its keys, and their values.
fn join_values(keys: &[Box<[u8]>], mut parts: Vec<(&[usize], &[u8])>, out: &mut Vec<u8>) {
    let mut part_of = vec![0; keys.len()];
    for (number, (positions, _)) in parts.iter().enumerate() {
        positions.iter().for_each(|position| part_of[*position] = number);
    }
    for (key, part) in keys.iter().zip(part_of) {
        let Some((_, rest)) = parts.get_mut(part) else { continue };
        let (value, after) = rest.split_at(value_len(rest, key).unwrap_or(0));
        out.extend_from_slice(value);
        *rest = after;
    }
    reply::line(out, Line::End);
}

/// Returns the reply of memcached in the reply of a node, which is empty for a node that is gone.
fn content(bytes: &[u8]) -> Result<&[u8], String> {
    match bytes.split_first() {
        None => Ok(bytes),
        Some((b'$', rest)) => {
            let start = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            Ok(rest[start..].strip_suffix(b"\r\n").unwrap_or_default())
        }
        Some((_, text)) => Err(String::from_utf8_lossy(text.trim_ascii()).into_owned()),
    }
}

/// Returns the length of the value of a key at the start of a reply, with its lines; `None` if it
/// begins with another one.
fn value_len(reply: &[u8], key: &[u8]) -> Option<usize> {
    let line_end = memchr::memchr(b'\n', reply)? + 1;
    let mut words = reply[..line_end].trim_ascii_end().split(|byte| *byte == b' ');
    if words.next() != Some(b"VALUE") || words.next() != Some(key) {
        return None;
    }
    let len = std::str::from_utf8(words.nth(1)?).ok()?.parse::<usize>().ok()?;
    let len = line_end.checked_add(len)?.checked_add(reply::LINE_END.len())?;
    (len <= reply.len()).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcache::decode::request_of;

    fn bulk(text: &str) -> Vec<u8> {
        format!("${}\r\n{text}\r\n", text.len()).into_bytes()
    }

    /// A number for compare-and-set that `gets` assigned after its item was sent stayed behind.
    #[test]
    fn requests_that_read_numbers_or_marks_are_recorded_while_slots_move() {
        for (line, expected) in [
            ("get a", false),
            ("gets a", true),
            ("gat 9 a", true),
            ("gats 9 a", true),
            ("mg a v", true),
            ("mg a c", true),
            ("incr a 1", true),
            ("touch a 9", true),
            ("delete a", true),
            ("version", false),
        ] {
            let request = request_of(line.as_bytes(), b"").expect(line);
            assert_eq!(may_change(&request), expected, "{line}");
        }
    }

    #[test]
    fn values_are_joined_in_the_order_of_their_keys() {
        let keys = ["a", "b", "c", "b"].map(|key| key.as_bytes().into());
        let replies = vec![
            (vec![1, 3], bulk("VALUE b 0 9\r\nVALUE c 0\r\nVALUE b 0 1\r\n2\r\nEND\r\n")),
            (vec![0, 2], bulk("VALUE c 7 1 5\r\n3\r\nEND\r\n")),
        ];
        let out = join(Ok(replies), &Joined::Values(keys.to_vec()), false);
        let expected =
            "VALUE b 0 9\r\nVALUE c 0\r\nVALUE c 7 1 5\r\n3\r\nVALUE b 0 1\r\n2\r\nEND\r\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn the_error_of_one_node_is_that_of_the_request() {
        let joined = |reply: Vec<u8>, joined: &Joined, noreply| {
            let replies = vec![(vec![0], bulk("OK\r\n")), (vec![1], reply)];
            String::from_utf8(join(Ok(replies), joined, noreply)).expect("text")
        };
        assert_eq!(joined(bulk("OK\r\n"), &Joined::AllOk, false), "OK\r\n");
        assert_eq!(joined(Vec::new(), &Joined::AllOk, false), "OK\r\n");
        assert_eq!(joined(bulk("ERROR\r\n"), &Joined::AllOk, false), "ERROR\r\n");
        let denied = || b"-NOPERM no\r\n".to_vec();
        assert_eq!(joined(denied(), &Joined::AllOk, false), "SERVER_ERROR NOPERM no\r\n");
        assert_eq!(joined(denied(), &Joined::AllOk, true), "");
        let lost = join(Err("it is gone".to_owned()), &Joined::One, false);
        let expected = "SERVER_ERROR the request could not be forwarded: it is gone\r\n";
        assert_eq!(String::from_utf8_lossy(&lost), expected);
    }
}
