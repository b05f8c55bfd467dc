//! The address of the collector, headers and intervals.

use super::choices::{has_exporter, sampler};
use crate::{ENDPOINT_VARIABLE, OTLP_AUTO, OTLP_OFF};
use opentelemetry_sdk::trace::Sampler;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::ops::RangeInclusive;
use std::time::Duration;
use url::Url;

const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const METRIC_INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const LOG_DELAY: &str = "OTEL_BLRP_SCHEDULE_DELAY";
const SPAN_DELAY: &str = "OTEL_BSP_SCHEDULE_DELAY";

/// The range of times in variables, in milliseconds.
const TIMES: RangeInclusive<u64> = 1..=86_400_000;

/// What is exported, where to and when.
#[derive(Debug)]
pub(super) struct Config {
    /// The address, without the path of a signal.
    endpoint: Url,
    /// Headers of each request. Their values are secrets.
    pub(super) headers: HeaderMap,
    /// Maximum time of a request.
    pub(super) timeout: Duration,
    pub(super) metric_interval: Duration,
    /// Maximum time between an item and its export.
    pub(super) log_delay: Duration,
    pub(super) span_delay: Duration,
    pub(super) logs: bool,
    pub(super) metrics: bool,
    pub(super) traces: bool,
    pub(super) sampler: Sampler,
    /// What the environment has that is ignored.
    pub(super) warnings: Vec<String>,
}

impl Config {
    /// Reads the setting, and the variables that `variable` returns if they are set and not empty.
    /// Returns `None` if nothing is to be exported.
    ///
    /// # Errors
    ///
    /// Returns the name of what is invalid, and why. Values of headers and the address are left
    /// out.
    pub(super) fn read(
        setting: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let is_true =
            |name| variable(name).is_some_and(|it: String| it.eq_ignore_ascii_case("true"));
        let endpoint = match setting {
            OTLP_OFF => None,
            OTLP_AUTO if is_true("OTEL_SDK_DISABLED") => None,
            OTLP_AUTO => variable(ENDPOINT_VARIABLE).map(|text| (ENDPOINT_VARIABLE, text)),
            text => Some(("--otlp", text.to_owned())),
        };
        let Some((name, endpoint)) = endpoint else { return Ok(None) };
        let endpoint = parse_endpoint(&endpoint).map_err(|error| format!("{name}: {error}"))?;
        if let Some(protocol) = variable(PROTOCOL).filter(|found| found != "http/protobuf") {
            return Err(format!("{PROTOCOL}: expected http/protobuf, found {protocol}"));
        }
        let headers = parse_headers(&variable(HEADERS).unwrap_or_default());
        let mut warnings = Vec::new();
        let mut warn = |warning| warnings.push(warning);
        let mut is_on = |name| has_exporter(name, variable(name), &mut warn);
        let logs = is_on("OTEL_LOGS_EXPORTER");
        let metrics = is_on("OTEL_METRICS_EXPORTER");
        let traces = is_on("OTEL_TRACES_EXPORTER");
        let sampler = sampler(&variable, &mut warn);
        let time = |name, default| match variable(name) {
            None => Ok(Duration::from_millis(default)),
            Some(text) => {
                let ms = text.trim().parse().ok().filter(|ms| TIMES.contains(ms));
                let (min, max) = (TIMES.start(), TIMES.end());
                let expected = format!("{name}: expected milliseconds from {min} to {max}");
                ms.map(Duration::from_millis).ok_or_else(|| format!("{expected}, found {text:?}"))
            }
        };
        Ok(Some(Self {
            endpoint,
            headers: headers.map_err(|problem| format!("{HEADERS}: {problem}"))?,
            timeout: time(TIMEOUT, 10_000)?,
            metric_interval: time(METRIC_INTERVAL, 60_000)?,
            log_delay: time(LOG_DELAY, 1_000)?,
            span_delay: time(SPAN_DELAY, 5_000)?,
            logs,
            metrics,
            traces,
            sampler,
            warnings,
        }))
    }

    /// Returns the address for a signal: logs, metrics or traces.
    pub(super) fn url(&self, signal: &str) -> Url {
        let mut url = self.endpoint.clone();
        let path = format!("{}/v1/{signal}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }
}

/// Checks a value of the setting: auto, off, or the URL of a collector.
///
/// # Errors
///
/// Returns the problem.
pub fn check(text: &str) -> Result<(), String> {
    match text {
        OTLP_AUTO | OTLP_OFF => Ok(()),
        _ => parse_endpoint(text).map(drop),
    }
}

/// Parses the address of a collector. Errors do not repeat it: it can have a password.
fn parse_endpoint(text: &str) -> Result<Url, String> {
    let expected = "expected auto, off, or the address of a collector for OTLP over HTTP, such as \
                    http://127.0.0.1:4318";
    let url = Url::parse(text).map_err(|error| format!("{expected}: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err(format!("{expected}, found the scheme {}:", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!(
            "expected an address without user and password: set {HEADERS}, for example to \
             Authorization=Bearer%20TOKEN"
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("expected an address without a query: set {HEADERS} for a key"));
    }
    Ok(url)
}

/// Parses headers such as `name=value,other=value`, with values that can be percent-encoded.
fn parse_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (at, pair) in text.split(',').map(str::trim).enumerate() {
        if pair.is_empty() {
            continue;
        }
        let header = pair.split_once('=').and_then(|(name, value)| {
            let name = HeaderName::try_from(name.trim()).ok()?;
            let mut value = HeaderValue::try_from(percent_decoded(value.trim())?).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        let problem =
            || format!("expected NAME=VALUE and commas, found another text at {}", at + 1);
        headers.extend([header.ok_or_else(problem)?]);
    }
    Ok(headers)
}

/// Decodes `%` and two hexadecimal digits. Returns `None` if digits are missing.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(setting: &str, variables: &[(&str, &str)]) -> Result<Option<Config>, String> {
        let of = |name: &str| variables.iter().find(|(one, _)| *one == name);
        Config::read(setting, |name| of(name).map(|(_, value)| (*value).to_owned()))
    }

    fn config(setting: &str, variables: &[(&str, &str)]) -> Config {
        read(setting, variables).expect("valid").expect("an address")
    }

    #[test]
    fn the_setting_comes_before_the_environment() {
        let endpoint = (ENDPOINT_VARIABLE, "https://collector/base/");
        assert!(read("auto", &[]).expect("valid").is_none());
        assert!(read("off", &[endpoint]).expect("valid").is_none());
        let disabled = ("OTEL_SDK_DISABLED", "True");
        assert!(read("auto", &[endpoint, disabled]).expect("valid").is_none());
        let auto = config("auto", &[endpoint]);
        assert_eq!(auto.url("logs").as_str(), "https://collector/base/v1/logs");
        assert_eq!(auto.metric_interval, Duration::from_mins(1));
        let set = config("http://127.0.0.1:4318", &[endpoint, disabled, (METRIC_INTERVAL, "500")]);
        assert_eq!(set.url("traces").as_str(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(set.metric_interval, Duration::from_millis(500));
        let quiet = config("auto", &[endpoint, ("OTEL_LOGS_EXPORTER", "none")]);
        assert!(!quiet.logs && quiet.metrics && quiet.traces);
        assert!(quiet.warnings.is_empty());
        let other = [endpoint, ("OTEL_LOGS_EXPORTER", "x"), ("OTEL_TRACES_SAMPLER", "y")];
        assert_eq!(config("auto", &other).warnings.len(), 2);
    }

    #[test]
    fn headers_are_decoded_and_hidden() {
        let set = config("http://x", &[(HEADERS, "Authorization=Bearer%20a%3D1, x-team = b")]);
        assert_eq!(set.headers["authorization"], "Bearer a=1");
        assert_eq!(set.headers["x-team"], "b");
        assert!(!format!("{set:?}").contains("a=1"), "{set:?}");
    }

    #[test]
    fn errors_name_the_variable_and_hide_secrets() {
        for (setting, variable, value) in [
            ("http://user:secret@x", "--otlp", ""),
            ("http://x/?key=secret", "--otlp", ""),
            ("secret", "--otlp", ""),
            ("unix:/secret", "--otlp", ""),
            ("auto", ENDPOINT_VARIABLE, "http://u:secret@x"),
            ("http://x", HEADERS, "secret"),
            ("http://x", HEADERS, "a=%secret"),
            ("http://x", HEADERS, "a=b,secret key=c"),
            ("http://x", PROTOCOL, "grpc"),
            ("http://x", TIMEOUT, "0"),
            ("http://x", METRIC_INTERVAL, "1m"),
        ] {
            let problem = read(setting, &[(variable, value)]).expect_err(value);
            assert!(problem.starts_with(&format!("{variable}: expected")), "{problem}");
            assert!(!problem.contains("secret"), "{problem}");
        }
        assert!(check("auto").is_ok() && check("https://x/y").is_ok() && check("x").is_err());
    }
}
