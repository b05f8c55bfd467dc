//! Floating-point numbers in the format of Redis.

/// Returns the shortest digits that parse to `number`, in the format `%.17g` of C: with an exponent
/// of at least two digits from 1e17 on and below 1e-4.
///
/// Redis 7.0 has the same format, but always seventeen digits: its `0.10000000000000001` is `0.1`
/// here, and in Redis since 7.2.
pub fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    let scientific = format!("{number:e}");
    let exponent = scientific.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        (!(-4..17).contains(&exponent)).then_some((digits, exponent))
    });
    match exponent {
        Some((digits, exponent)) => format!("{digits}e{exponent:+03}"),
        None => number.to_string(),
    }
}
