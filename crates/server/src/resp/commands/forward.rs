//! Requests that another node of the cluster executes: what is sent, and how replies are joined.

use super::split::Joined;
use super::table::find_part;
use super::{Args, Found};
use crate::cluster::{Forward, Replies, ReplyEnd, Requests, Targets};
use crate::resp::Reply;
use crate::state::{Keys, Server, Version};
use nuthatch_cluster::slot::slot_of;

/// The error for a reply of another node that the command does not have.
const INVALID: &[u8] = b"ERR another node of the cluster has sent an unexpected reply";

/// The bytes that a short argument of a request that is split takes in addition to its own.
const SPLIT_ARGUMENT_LEN: usize = 64;

/// Creates what other nodes execute for a request. One without keys is for all nodes: it flushes
/// them.
pub(crate) fn forward(server: &Server, found: Found, args: Args<'_>, version: Version) -> Forward {
    let command = found.command;
    let part = command.flags.container.then(|| find_part(command, args.get(1))).flatten();
    let command = part.map_or(command, |part| part.command);
    let mut slots: Vec<u16> = args.keys(command.keys).map(slot_of).collect();
    let is_resp3 = version == Version::Resp3;
    let is_one_slot = slots.windows(2).all(|two| two[0] == two[1]);
    let is_for_all = command.keys == Keys::NONE;
    let (requests, joined) = match Joined::of(command) {
        _ if is_for_all => (Requests::Whole(encode(args.from(0))), Some(Joined::Status)),
        Some(joined) if !is_one_slot => (split(args, joined.step()), Some(joined)),
        _ => {
            // Each node serves keys of snapshots.
            let is_of_cluster = |key: &&[u8]| server.snapshot_key(key).is_none();
            slots = args.keys(command.keys).find(is_of_cluster).map(slot_of).into_iter().collect();
            (Requests::Whole(encode(args.from(0))), None)
        }
    };
    let copied_len = match &requests {
        Requests::Whole(bytes) => bytes.len(),
        // The arguments and the requests of all parts.
        Requests::Split(_) => {
            2 * args.from(0).map(|arg| arg.len() + SPLIT_ARGUMENT_LEN).sum::<usize>()
        }
    };
    Forward {
        targets: if is_for_all { Targets::AllNodes } else { Targets::Slots(slots) },
        requests,
        is_resp3,
        writes: command.flags.writes,
        copied_len,
        then_executes: false,
        join: Box::new(move |replies| join(replies, joined, version)),
    }
}

/// Returns a request with these arguments.
pub(crate) fn encode<'a>(args: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let len: usize = args.clone().map(|arg| arg.len() + 16).sum();
    let mut bytes = Vec::with_capacity(len + 16);
    let mut request = Reply::new(&mut bytes, Version::default());
    request.array(args.clone().count());
    args.for_each(|arg| request.bulk(arg));
    bytes
}

/// Returns requests for some of the keys, with this many arguments for each.
fn split(args: Args<'_>, step: usize) -> Requests {
    let args: Vec<Box<[u8]>> = args.from(0).map(Into::into).collect();
    Requests::Split(Box::new(move |positions| {
        let of_keys = positions.iter().flat_map(|position| {
            let start = 1 + position * step;
            args.get(start..start + step).unwrap_or_default()
        });
        encode(args.first().into_iter().chain(of_keys).map(|arg| &**arg))
    }))
}

fn join(replies: Replies, joined: Option<Joined>, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, version);
    let mut replies = match replies {
        Ok(replies) => replies,
        Err(reason) => {
            let text = format!("CLUSTERDOWN The request could not be forwarded: {reason}");
            reply.error(text.as_bytes());
            return out;
        }
    };
    let Some(joined) = joined else {
        return replies.pop().map(|(_, bytes)| bytes).unwrap_or_default();
    };
    if let Some(failed) = replies.iter().position(|(_, bytes)| bytes.starts_with(b"-")) {
        return replies.swap_remove(failed).1;
    }
    let is_joined = match joined {
        Joined::Status => {
            reply.ok();
            Some(())
        }
        Joined::Sum => {
            let numbers = replies.iter().map(|(_, bytes)| number(bytes, b':'));
            numbers.sum::<Option<i64>>().map(|sum| reply.integer(sum))
        }
        Joined::Values => join_values(&replies, &mut reply),
    };
    if is_joined.is_none() {
        out.clear();
        Reply::new(&mut out, version).error(INVALID);
    }
    out
}

/// Returns the number in a line with this mark.
fn number(line: &[u8], mark: u8) -> Option<i64> {
    let digits = line.strip_prefix(&[mark])?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Appends an array of the values of all positions.
fn join_values(replies: &[(Vec<usize>, Vec<u8>)], reply: &mut Reply<'_>) -> Option<()> {
    let mut values: Vec<(usize, &[u8])> = Vec::new();
    for (positions, bytes) in replies {
        let head_len = memchr::memchr(b'\n', bytes)? + 1;
        let (head, mut rest) = bytes.split_at_checked(head_len)?;
        if number(head, b'*') != i64::try_from(positions.len()).ok() {
            return None;
        }
        for position in positions {
            let end = ReplyEnd::default().find(rest).ok()??;
            let (value, after) = rest.split_at_checked(end)?;
            values.push((*position, value));
            rest = after;
        }
    }
    values.sort_unstable_by_key(|(position, _)| *position);
    reply.array(values.len());
    for (_, value) in values {
        reply.append(value);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(replies: &[(&[usize], &str)], joined: Joined) -> String {
        let replies = replies.iter();
        let replies = replies.map(|(positions, text)| (positions.to_vec(), text.as_bytes().into()));
        let out = join(Ok(replies.collect()), Some(joined), Version::Resp2);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_are_joined_in_the_order_of_their_keys() {
        let parts: [(&[usize], &str); 2] =
            [(&[1, 2], "*2\r\n$1\r\nb\r\n$-1\r\n"), (&[0, 3], "*2\r\n$1\r\na\r\n$1\r\nd\r\n")];
        let expected = "*4\r\n$1\r\na\r\n$1\r\nb\r\n$-1\r\n$1\r\nd\r\n";
        assert_eq!(joined(&parts, Joined::Values), expected);
        assert_eq!(joined(&[(&[0], ":2\r\n"), (&[1], ":3\r\n")], Joined::Sum), ":5\r\n");
        assert_eq!(joined(&[(&[0], "+OK\r\n"), (&[1], "+OK\r\n")], Joined::Status), "+OK\r\n");
        let failed = joined(&[(&[0], "+OK\r\n"), (&[1], "-OOM\r\n")], Joined::Status);
        assert_eq!(failed, "-OOM\r\n");
        for (invalid, how) in [("*1\r\n:1\r\n", Joined::Values), ("+OK\r\n", Joined::Sum)] {
            assert!(joined(&[(&[0, 1], invalid)], how).starts_with("-ERR another node"));
        }
    }
}
