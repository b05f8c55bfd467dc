//! The states of a connection, from its first request to its removal.

use std::num::NonZeroU32;

/// Maximum bytes of input that are discarded after a request was refused. This is the maximum
/// length of a request.
const MAX_DISCARDED_BYTES: NonZeroU32 = NonZeroU32::new(1 << 30).unwrap();

/// Seconds without input after which a connection whose request was refused is closed.
pub(crate) const DISCARD_IDLE_S: u64 = 5;

/// The state of a connection. It only advances, down this list.
///
/// The first byte is the tag, so whether requests are executed is one comparison.
#[derive(Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Requests are received and executed.
    Open,
    /// The client sends no more. The requests that it sent before are executed.
    ReadClosed,
    /// A request was refused, and no further request is executed. Replies are sent, and input is
    /// discarded until it ends. Otherwise a client in the middle of a long request would fail as it
    /// writes, and never read the reply.
    Discarding {
        /// Whether the sending side is shut down, since all replies are sent.
        write_closed: bool,
        /// Bytes of input that may still be discarded.
        left: NonZeroU32,
    },
    /// No further request is executed. The socket is shut down once all replies are sent.
    Closing(Ending),
    /// The socket is shut down. The connection is removed once the kernel has ended its operations.
    ShutDown(Ending),
}

// A connection is as long as with a flag for each state.
const _: () = assert!(size_of::<State>() == 8);

/// How the socket of a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Without a reset, if the client sends no more.
    Normal,
    /// Without a reset: the client has sent the end of its input.
    ReadClosed,
    /// With a reset, which drops replies in the kernel, since input or replies were dropped.
    /// Otherwise the system of a client that is still sending may wait for a minute.
    Reset,
}

impl State {
    /// Returns whether no more requests are executed.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        !matches!(self, Self::Open | Self::ReadClosed)
    }

    /// Returns whether the socket is shut down.
    #[inline]
    pub(crate) fn is_shut_down(&self) -> bool {
        matches!(self, Self::ShutDown(_))
    }

    /// Returns whether input is received, to be executed or to be discarded.
    pub(crate) fn receives(&self) -> bool {
        matches!(self, Self::Open | Self::Discarding { .. })
    }

    /// Returns whether input is discarded before the connection is closed.
    pub(crate) fn discards_input(&self) -> bool {
        matches!(self, Self::Discarding { .. })
    }

    /// Returns whether closing the socket resets the connection.
    pub(crate) fn resets(&self) -> bool {
        self.ending() == Ending::Reset
    }

    /// Notes that the client sends no more.
    pub(crate) fn end_input(&mut self) {
        match self {
            Self::Open => *self = Self::ReadClosed,
            Self::Discarding { .. } | Self::Closing(_) => *self = Self::Closing(Ending::ReadClosed),
            // A socket that this server shut down reports the end, too.
            Self::ReadClosed | Self::ShutDown(_) => {}
        }
    }

    /// Ends the execution of requests.
    #[cold]
    pub(crate) fn close(&mut self) {
        if !self.is_closing() {
            *self = Self::Closing(self.ending());
        }
    }

    /// Ends the execution of requests, and discards further input before the connection is closed.
    pub(crate) fn begin_discarding(&mut self) {
        if let Self::Open = self {
            *self = Self::Discarding { write_closed: false, left: MAX_DISCARDED_BYTES };
        } else {
            self.close();
        }
    }

    /// Notes that input was discarded, which arrived after the execution of requests had ended.
    pub(crate) fn discard(&mut self, len: usize) {
        match self {
            Self::Discarding { write_closed, left } => {
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                *self = match NonZeroU32::new(left.get().saturating_sub(len)) {
                    Some(left) => Self::Discarding { write_closed: *write_closed, left },
                    None => Self::Closing(Ending::Reset),
                };
            }
            Self::Closing(ending) | Self::ShutDown(ending) if *ending == Ending::Normal => {
                *ending = Ending::Reset;
            }
            _ => {}
        }
    }

    /// Lets the connection close without discarding more input.
    pub(crate) fn end_discarding(&mut self) {
        if self.discards_input() {
            *self = Self::Closing(self.ending());
        }
    }

    /// Closes the sending side of a connection whose input is discarded. Returns whether it was
    /// open.
    pub(crate) fn close_write(&mut self) -> bool {
        match self {
            Self::Discarding { write_closed, .. } => !std::mem::replace(write_closed, true),
            _ => false,
        }
    }

    /// Notes that the socket is shut down, or will be in this iteration.
    pub(crate) fn shut_down(&mut self) {
        *self = Self::ShutDown(self.ending());
    }

    /// Notes the same, with a reset if replies were dropped.
    pub(crate) fn abort(&mut self, drops_replies: bool) {
        *self = Self::ShutDown(if drops_replies { Ending::Reset } else { self.ending() });
    }

    /// Returns how the socket would be closed now.
    fn ending(&self) -> Ending {
        match self {
            Self::Open => Ending::Normal,
            Self::ReadClosed => Ending::ReadClosed,
            Self::Discarding { left, .. } if *left == MAX_DISCARDED_BYTES => Ending::Normal,
            Self::Discarding { .. } => Ending::Reset,
            Self::Closing(ending) | Self::ShutDown(ending) => *ending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state after each event, in the columns, for each state, in the rows. Input is discarded
    /// in `skip`, and in `sent`, where the sending side is closed. A state ends in `+` if input was
    /// discarded, in `E` if the client has sent the end of its input, and in `R` if closing resets
    /// the connection.
    const TRANSITIONS: &str = "
        state  end    close  refuse part   all    done   write  down   abort  reset
        open   ended  close  skip   open   open   open   open   down   down   downR
        ended  ended  closeE closeE ended  ended  ended  ended  downE  downE  downR
        skip   closeE skip   skip   skip+  closeR close  sent   down   down   downR
        skip+  closeE skip+  skip+  skip+  closeR closeR sent+  downR  downR  downR
        sent   closeE sent   sent   sent+  closeR close  sent   down   down   downR
        sent+  closeE sent+  sent+  sent+  closeR closeR sent+  downR  downR  downR
        close  closeE close  close  closeR closeR close  close  down   down   downR
        closeE closeE closeE closeE closeE closeE closeE closeE downE  downE  downR
        closeR closeE closeR closeR closeR closeR closeR closeR downR  downR  downR
        down   down   down   down   downR  downR  down   down   down   down   downR
        downE  downE  downE  downE  downE  downE  downE  downE  downE  downE  downR
        downR  downR  downR  downR  downR  downR  downR  downR  downR  downR  downR
    ";

    /// An event, and how it changes a state.
    type Event = (&'static str, fn(&mut State));

    const EVENTS: [Event; 10] = [
        ("end", State::end_input),
        ("close", State::close),
        ("refuse", State::begin_discarding),
        ("part", |state| state.discard(10)),
        ("all", |state| state.discard(usize::MAX)),
        ("done", State::end_discarding),
        ("write", |state| {
            state.close_write();
        }),
        ("down", State::shut_down),
        ("abort", |state| state.abort(false)),
        ("reset", |state| state.abort(true)),
    ];

    fn state(name: &str) -> State {
        let discarding = |write_closed, discarded| {
            let left = NonZeroU32::new(MAX_DISCARDED_BYTES.get() - discarded);
            State::Discarding { write_closed, left: left.expect("some are left") }
        };
        let ending = match name.chars().last() {
            Some('E') => Ending::ReadClosed,
            Some('R') => Ending::Reset,
            _ => Ending::Normal,
        };
        match name {
            "open" => State::Open,
            "ended" => State::ReadClosed,
            "skip" => discarding(false, 0),
            "skip+" => discarding(false, 10),
            "sent" => discarding(true, 0),
            "sent+" => discarding(true, 10),
            _ if name.starts_with("close") => State::Closing(ending),
            _ => State::ShutDown(ending),
        }
    }

    fn name(state: &State) -> String {
        let (name, ending) = match *state {
            State::Open => ("open", Ending::Normal),
            State::ReadClosed => ("ended", Ending::Normal),
            State::Discarding { write_closed, left } => {
                let discarded = if left < MAX_DISCARDED_BYTES { "+" } else { "" };
                return format!("{}{discarded}", if write_closed { "sent" } else { "skip" });
            }
            State::Closing(ending) => ("close", ending),
            State::ShutDown(ending) => ("down", ending),
        };
        let suffix = match ending {
            Ending::Normal => "",
            Ending::ReadClosed => "E",
            Ending::Reset => "R",
        };
        format!("{name}{suffix}")
    }

    #[test]
    fn each_event_leads_from_each_state_to_one_state() {
        let lines = TRANSITIONS.trim().lines();
        let mut rows = lines.map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        let head = rows.next().expect("a head");
        assert_eq!(head[1..], EVENTS.map(|(event, _)| event));
        assert_eq!(rows.clone().count(), 12);
        for row in rows {
            assert_eq!((row.len(), row[0]), (1 + EVENTS.len(), &*name(&state(row[0]))));
            for ((event, apply), expected) in EVENTS.iter().zip(&row[1..]) {
                let mut after = state(row[0]);
                apply(&mut after);
                assert_eq!(name(&after), *expected, "{} after {event}", row[0]);
            }
        }
    }

    #[test]
    fn a_state_only_advances() {
        let stage = |state: &State| match state {
            State::Open => 0,
            State::ReadClosed => 1,
            State::Discarding { .. } => 2,
            State::Closing(_) => 3,
            State::ShutDown(_) => 4,
        };
        let lines = TRANSITIONS.trim().lines();
        let states = lines.filter_map(|line| line.split_ascii_whitespace().next());
        for before in states.skip(1) {
            for (event, apply) in EVENTS {
                let mut after = state(before);
                apply(&mut after);
                assert!(stage(&after) >= stage(&state(before)), "{before} after {event}");
            }
        }
    }

    #[test]
    fn the_sending_side_is_closed_once() {
        let mut discarding = state("skip");
        assert!(discarding.close_write() && !discarding.close_write());
        assert!(!state("open").close_write() && !state("close").close_write());
    }

    #[test]
    fn input_is_received_while_it_is_executed_or_discarded() {
        for (name, receives, is_closing) in [
            ("open", true, false),
            ("ended", false, false),
            ("skip+", true, true),
            ("sent", true, true),
            ("close", false, true),
            ("down", false, true),
        ] {
            let state = state(name);
            assert_eq!((state.receives(), state.is_closing()), (receives, is_closing), "{name}");
        }
    }
}
