//! Floating-point numbers in the format of Redis.

/// Formats a number with the fewest digits that parse to it again. From 1e17 on and below 1e-4, it
/// has an exponent of at least two digits, as `%.17g` of C.
///
/// Redis 7.0 always has seventeen digits: its `0.10000000000000001` is `0.1` here, and in Redis
/// since 7.2.
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
