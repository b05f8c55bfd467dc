//! Values of snapshots as text and bytes, as `nuthatch get` prints them and the cache server sends
//! them. `nuthatch-import` reads the text back without loss.

mod json;
mod raw;
mod tsv;

pub use json::{json_row, json_string, json_value};
pub use raw::raw_value;
pub use tsv::{tsv_escape, tsv_value};

/// A number that can be appended to text.
trait Number: Copy {
    /// Appends the number. A float that JSON cannot represent is appended as its name or its bits,
    /// in quotes if `quoted` is set.
    fn append(self, quoted: bool, out: &mut Vec<u8>);

    /// Returns whether JSON cannot represent the number.
    fn is_special(self) -> bool;
}

impl Number for i64 {
    fn append(self, _quoted: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
    }

    fn is_special(self) -> bool {
        false
    }
}

macro_rules! float_number {
    ($float:ty, $digits:literal) => {
        impl Number for $float {
            fn append(self, quoted: bool, out: &mut Vec<u8>) {
                if self.is_finite() {
                    let mut buffer = zmij::Buffer::new();
                    out.extend_from_slice(buffer.format_finite(self).as_bytes());
                    return;
                }
                let name = if self == Self::INFINITY {
                    "Infinity".to_owned()
                } else if self == Self::NEG_INFINITY {
                    "-Infinity".to_owned()
                } else if self.to_bits() == Self::NAN.to_bits() {
                    "NaN".to_owned()
                } else {
                    format!(concat!("0x{:0", $digits, "x}"), self.to_bits())
                };
                let quote: &[u8] = if quoted { b"\"" } else { b"" };
                out.extend_from_slice(quote);
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(quote);
            }

            fn is_special(self) -> bool {
                !self.is_finite()
            }
        }
    };
}
float_number!(f64, 16);
float_number!(f32, 8);

/// Appends a list in JSON, with quotes around the numbers that JSON cannot represent.
fn number_list<N: Number>(list: &[N], out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, number) in list.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        number.append(true, out);
    }
    out.push(b']');
}

/// Appends a list of strings in JSON.
fn string_list<'a>(list: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, string) in list.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json_string(string, out);
    }
    out.push(b']');
}
