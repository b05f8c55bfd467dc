//! When certificates expire: their field `notAfter`, read from DER (RFC 5280, section 4.1).

use crate::exposition::MetricsText;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Adds the metric of certificates, of these times in seconds since 1970: the server's own
/// certificate and then those of its issuers, as the server sends them. `None` is a certificate
/// without a known time, which has no sample. Adds nothing if there is no time.
pub fn write_expiry(text: &mut MetricsText, times: &[Option<u64>]) {
    if times.iter().all(Option::is_none) {
        return;
    }
    let help = "Time at which a certificate that the server presents expires, in seconds since \
                1970; position 0 is its own, the others are those of its issuers.";
    let times = times.iter().enumerate();
    let positions = times.filter_map(|(at, time)| time.map(|time| (at.to_string(), time)));
    let name = "nuthatch_certificate_expiry_timestamp_seconds";
    text.gauge(name, help).by_label("position", positions);
}

/// Returns the time at which a certificate in DER expires, in seconds since 1970. `None` if it has
/// another form; 0 if it expired before 1970.
pub(super) fn expiry(certificate: &[u8]) -> Option<u64> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, rest)) = expect(fields, VERSION) {
        fields = rest;
    }
    // The serial number, the algorithm of the signature, and the issuer.
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (validity, _) = expect(fields, SEQUENCE)?;
    let (_, _, not_after) = element(validity)?;
    let (tag, text, _) = element(not_after)?;
    seconds(tag, std::str::from_utf8(text).ok()?)
}

/// Returns the content of an element with this tag, and what follows it.
fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// Returns the tag and the content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk()?;
    let mut len = usize::from(first);
    if first >= 0x80 {
        let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if !(1..=4).contains(&digits.len()) {
            return None;
        }
        len = digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

/// Returns the seconds since 1970 of a time such as `400102030405Z`, or with a year of four digits.
fn seconds(tag: u8, text: &str) -> Option<u64> {
    let digits = text.strip_suffix('Z')?;
    let year_len = match tag {
        UTC_TIME => 2,
        GENERALIZED_TIME => 4,
        _ => return None,
    };
    if digits.len() != year_len + 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |at: usize, len: usize| digits.get(at..at + len)?.parse::<i64>().ok();
    let year = match number(0, year_len)? {
        year if tag == GENERALIZED_TIME => year,
        year if year < 50 => 2000 + year,
        year => 1900 + year,
    };
    let part = |index: usize| number(year_len + 2 * index, 2);
    let days = days_since_1970(year, part(0)?, part(1)?);
    let seconds = ((days * 24 + part(2)?) * 60 + part(3)?) * 60 + part(4)?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here,
/// so that a leap day is the last day of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let days_of_months = (153 * months_since_march + 2) / 5;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + days_of_months + day - 1 - DAYS_TO_1970
}

/// Days from March 1 of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::MetricsFormat;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(year: i32, month: u8, day: u8) -> Vec<u8> {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["x".to_owned()]).expect("a name");
        params.not_after = date_time_ymd(year, month, day);
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn certificates_have_their_time_of_expiry() {
        for ((year, month, day), expected) in [
            ((2026, 11, 28), 1_795_824_000),
            ((2040, 2, 29), 2_214_086_400),
            // From 2050 on, the year has four digits.
            ((2050, 1, 1), 2_524_608_000),
            ((2100, 3, 1), 4_107_542_400),
            ((1999, 12, 31), 946_598_400),
        ] {
            let found = expiry(&certificate(year, month, day));
            assert_eq!(found, Some(expected), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn damaged_certificates_have_none() {
        let whole = certificate(2040, 1, 1);
        for len in 0..whole.len() {
            assert_eq!(expiry(&whole[..len]), None, "{len} bytes");
        }
        for at in 0..whole.len().min(200) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = expiry(&damaged);
        }
        for text in ["400102030405", "4001020304Z", "40010203040xZ", "+00102030405Z", ""] {
            assert_eq!(seconds(UTC_TIME, text), None, "{text}");
        }
    }

    #[test]
    fn the_metric_has_a_sample_for_each_known_time_at_its_position() {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        write_expiry(&mut text, &[]);
        write_expiry(&mut text, &[None]);
        write_expiry(&mut text, &[Some(7), None, Some(9)]);
        let lines: Vec<_> = text.finish().lines().skip(1).map(str::to_owned).collect();
        let name = "nuthatch_certificate_expiry_timestamp_seconds";
        let samples =
            [format!("{name}{{position=\"0\"}} 7"), format!("{name}{{position=\"2\"}} 9")];
        assert_eq!(lines[0], format!("# TYPE {name} gauge"));
        assert_eq!(lines[1..], samples);
    }
}
