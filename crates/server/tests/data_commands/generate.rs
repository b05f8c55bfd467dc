//! Random requests for few keys, with arguments that are often wrong.

use nuthatch_testing::random::Random;

/// Random numbers that follow from a seed (`SplitMix64`).
pub(crate) struct Chance(Random);

type Request = Vec<Vec<u8>>;

/// Names with characters that patterns could misinterpret.
const KEYS: &[&[u8]] =
    &[b"a", b"b", b"ab", b"a-b", b"]", b"^b", b"\\", b"a\xff\x80", b"aabab", b"", b"[a]"];

const VALUES: &[&[u8]] = &[
    b"",
    b"0",
    b"1",
    b"-1",
    b"10",
    b"100",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775806",
    b"1.5",
    b"3.0e3",
    b"abc",
    b"abcdefgh",
    b"\xff\xff\xff",
    b"\0\0\0\0",
    b"\x0f\xf0\xaa",
    b" 1",
    b"1 ",
    b"01",
    b"inf",
    b"0.1",
    b"-0",
    b"ohmytext",
    b"mynewtext",
    b"0123456789012345678901234567890123456789012345678901234567890",
];

const INTEGERS: &str = "\
    0,1,2,3,5,7,8,15,16,23,40,-1,-2,-3,-9,-100,100,9223372036854775807,-9223372036854775808,\
    4294967295,9223372036854775808,,abc,1.0,+1, 1";

/// Numbers that are written to fields. Redis saturates numbers below the minimum of these upwards
/// when it sets a field of less than 64 bits, since its own check overflows.
const NUMBERS: &str = "\
    0,1,2,-1,-3,7,100,127,128,-128,-129,255,256,-4611686018427387904,9223372036854775807,\
    1.0,";

/// Seconds from now; so far apart that they can be distinguished however slow a run is.
const SECONDS: &str = "\
    10000,20000,50000,0,-1,-10000,9223372036854775807,x,9223372036854775,\
    -9223372036854775808,9223372036854776";

/// Seconds since 1970, in the future if they are not absurd.
const DATES: &str = "4102444800,4202444800,4302444800,0,1,-5,1000000000,9223372036854775807,abc";

const FLOATS: &str = "\
    0.1,0.2,-0.3,1,3.5,1e3,5.0e-3,1000.1,1e17,1e18,1e20,-1e19,123456789.987654321,1e-17,\
    5e-18,4.9e-18,abc,,.5,5.,.,e1,1e,1e5000,1e-5000,inf,-inf,nan,+2, 2,1e4900,\
    0.30000000000000000001,99999999999999999999.5,-0,0e99999,1e-4940";

const PATTERN_PARTS: &[&[u8]] =
    &[b"*", b"?", b"a", b"b", b"[", b"]", b"^", b"-", b"\\", b"[a-b]", b"[^a]", b"\xff", b"\x80"];

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns one of the words, which are separated by commas.
    fn word(&mut self, words: &'static str) -> &'static str {
        let words: Vec<_> = words.split(',').collect();
        self.of(&words)
    }

    /// Returns one of the few keys, so that a command reads what an earlier one wrote.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        let max = if self.below(3) == 0 { KEYS.len() } else { 4 };
        KEYS[self.below(max)].to_vec()
    }

    /// Returns a request for one of the commands.
    pub(crate) fn request(&mut self) -> Request {
        let form = self.of(FORMS);
        let mut request = Request::new();
        for part in form.split(' ') {
            self.part(part, &mut request);
        }
        // Too few arguments, or too many.
        match self.below(60) {
            0 if request.len() > 1 => drop(request.pop()),
            1 => request.push(b"extra".to_vec()),
            _ => {}
        }
        request
    }

    /// Appends the arguments that a part of a form stands for: see [`FORMS`].
    fn part(&mut self, part: &str, request: &mut Request) {
        let part = match part {
            "EXPIRY" => "{EX+SECONDS|PX+MS|EXAT+DATE|PXAT+DATEMS}",
            "WRITE" => "{SET+WIDTH+OFFSET+NUMBER|INCRBY+WIDTH+OFFSET+NUMBER}",
            "PLACE" => "{0|1|6|7|8|9|23|64|x|-1|4294967296}",
            other => other,
        };
        let argument = match part {
            "KEY" => self.key(),
            "VALUE" => self.of(VALUES).to_vec(),
            "INTEGER" => self.word(INTEGERS).into(),
            "NUMBER" => self.word(NUMBERS).into(),
            "FLOAT" => self.word(FLOATS).into(),
            "SECONDS" => self.word(SECONDS).into(),
            "MS" => [self.word(SECONDS), "000"].concat().into_bytes(),
            "DATE" => self.word(DATES).into(),
            "DATEMS" => [self.word(DATES), "000"].concat().into_bytes(),
            "PATTERN" => (0..self.below(6)).flat_map(|_| self.of(PATTERN_PARTS).to_vec()).collect(),
            "OFFSET" => self.word("#1,#0,3,17,0,7,-1,#x").into(),
            "WIDTH" => self.width(),
            _ if part.ends_with("...") => {
                let part = part.trim_end_matches('.');
                for _ in 0..=self.below(4) {
                    self.part(part, request);
                }
                return;
            }
            _ if part.starts_with('{') => {
                let choices: Vec<_> = part.trim_matches(['{', '}']).split('|').collect();
                let choice = self.of(&choices);
                choice.split('+').filter(|one| !one.is_empty()).for_each(|one| {
                    self.part(one, request);
                });
                return;
            }
            word if self.below(4) == 0 => word.to_ascii_lowercase().into_bytes(),
            word => word.as_bytes().to_vec(),
        };
        request.push(argument);
    }

    fn width(&mut self) -> Vec<u8> {
        let (sign, max) = self.of(&[("i", 66), ("u", 65), ("x", 9)]);
        format!("{sign}{}", self.below(max)).into_bytes()
    }
}

/// How replies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Bytes,
    /// Line by line, in any order.
    Lines,
    /// Times may differ by as much as a slow run takes.
    Times,
}

/// Returns how replies to this command are compared.
pub(crate) fn compare(request: &Request) -> Compare {
    match request[0].to_ascii_lowercase().as_slice() {
        b"keys" | b"scan" => Compare::Lines,
        b"ttl" | b"pttl" | b"expiretime" | b"pexpiretime" => Compare::Times,
        _ => Compare::Bytes,
    }
}

/// The forms of requests. A word in capitals stands for an argument of a kind or for itself;
/// `{A|B+C|}` is one of the alternatives, one of which may be empty; `...` repeats the part before
/// it.
const FORMS: &[&str] = &[
    "GET KEY",
    "SET KEY VALUE",
    "SET KEY VALUE {NX|XX|GET|KEEPTTL|EXPIRY|bad|EX}...",
    "SET KEY VALUE {NX|XX|GET|NX+GET|XX+GET|} {KEEPTTL|EXPIRY|}",
    "SETNX KEY VALUE",
    "SETEX KEY SECONDS VALUE",
    "PSETEX KEY MS VALUE",
    "GETSET KEY VALUE",
    "GETEX KEY {EXPIRY|PERSIST|KEEPTTL|}",
    "GETEX KEY {EX+SECONDS|PX+MS|PERSIST|EX}...",
    "GETDEL KEY",
    "MGET KEY...",
    "MSET {KEY+VALUE}...",
    "MSETNX {KEY+VALUE}...",
    "APPEND KEY VALUE",
    "STRLEN KEY",
    "GETRANGE KEY INTEGER INTEGER",
    "SUBSTR KEY INTEGER INTEGER",
    "SETRANGE KEY {0|1|3|10|70|-1|x|} VALUE",
    "INCR KEY",
    "DECR KEY",
    "INCRBY KEY INTEGER",
    "DECRBY KEY INTEGER",
    "INCRBYFLOAT KEY FLOAT",
    "INCRBYFLOAT KEY FLOAT",
    "LCS KEY KEY {LEN|IDX|WITHMATCHLEN|IDX+WITHMATCHLEN|bad|MINMATCHLEN|}",
    "LCS KEY KEY IDX {MINMATCHLEN+INTEGER|}",
    "LRANGE KEY INTEGER INTEGER",
    "LLEN KEY",
    "LINDEX KEY INTEGER",
    "SETBIT KEY PLACE {0|1|2|x}",
    "GETBIT KEY PLACE",
    "BITCOUNT KEY {INTEGER|}",
    "BITCOUNT KEY INTEGER INTEGER {BIT|BYTE|x|}",
    "BITPOS KEY {0|1} {INTEGER|INTEGER+INTEGER|}",
    "BITPOS KEY {0|1} INTEGER INTEGER {BIT|BYTE|}",
    "BITPOS KEY {0|1|2|x} {INTEGER+INTEGER+x|}",
    "BITOP {AND|OR|XOR|NOT|bad} KEY KEY...",
    "BITOP NOT KEY KEY",
    "BITFIELD KEY {GET+WIDTH+OFFSET|WRITE|OVERFLOW+SAT|OVERFLOW+FAIL|OVERFLOW+WRAP}...",
    "BITFIELD KEY {OVERFLOW+SAT|OVERFLOW+FAIL|OVERFLOW+WRAP|OVERFLOW+x|} WRITE",
    "BITFIELD_RO KEY {GET+WIDTH+OFFSET|WRITE|bad|}",
    "DEL KEY...",
    "UNLINK KEY...",
    "EXISTS KEY...",
    "TOUCH KEY...",
    "TYPE KEY",
    "RENAME KEY KEY",
    "RENAMENX KEY KEY",
    "COPY KEY KEY {REPLACE|DB+0|DB+99|DB+x|DB+99999999999|bad|}",
    "KEYS PATTERN",
    "SCAN {0|x|-x} COUNT 100000 {MATCH+PATTERN|TYPE+string|TYPE+hash|COUNT|COUNT+0|}",
    "SCAN 0 COUNT 100000 {MATCH+PATTERN|}",
    "EXPIRE KEY SECONDS {NX|XX|bad|}",
    "PEXPIRE KEY MS {NX|XX|NX+XX|}",
    "EXPIREAT KEY DATE {NX|XX|GT|LT|GT+LT|NX+GT|XX+LT|}",
    "PEXPIREAT KEY DATEMS {NX|XX|GT|LT|}",
    "TTL KEY",
    "PTTL KEY",
    "EXPIRETIME KEY",
    "PEXPIRETIME KEY",
    "PERSIST KEY",
    "OBJECT {bad+KEY|ENCODING|REFCOUNT+none}",
];
