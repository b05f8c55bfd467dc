//! Exporters and samplers, which the environment names.
//!
//! The specification of the variables of OpenTelemetry requires a warning for a name that the
//! program does not know, and for an argument that the sampler cannot use; the variable is ignored
//! then. So a deployment whose variables are shared by many programs starts here, too.

use opentelemetry_sdk::trace::Sampler;

const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

/// Returns whether the variable `name` with this value selects the exporter. Its value is a list.
pub(super) fn has_exporter(
    name: &str,
    value: Option<String>,
    warn: &mut impl FnMut(String),
) -> bool {
    let value = value.unwrap_or_default();
    let names: Vec<_> = value.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
    for unknown in names.iter().filter(|one| !["otlp", "none"].contains(one)) {
        warn(format!(
            "{name}: expected otlp or none, found {unknown:?}, which is ignored; unset it, or set \
             it to none to export none of this signal"
        ));
    }
    names.contains(&"otlp") || !names.contains(&"none")
}

/// Returns the sampler of traces.
pub(super) fn sampler(
    variable: impl Fn(&str) -> Option<String>,
    warn: &mut impl FnMut(String),
) -> Sampler {
    let default = || Sampler::ParentBased(Box::new(Sampler::AlwaysOn));
    let (name, argument) = (variable(SAMPLER), variable(SAMPLER_ARGUMENT));
    let name = name.as_deref().unwrap_or_default().trim();
    if ["traceidratio", "parentbased_traceidratio"].contains(&name) {
        let ratio = Sampler::TraceIdRatioBased(ratio(argument, warn));
        let has_parent = name.starts_with("parentbased");
        return if has_parent { Sampler::ParentBased(Box::new(ratio)) } else { ratio };
    }
    if argument.is_some() {
        warn(format!(
            "{SAMPLER_ARGUMENT}: expected {SAMPLER} to be traceidratio or \
             parentbased_traceidratio, found {name:?}; the argument is ignored"
        ));
    }
    match name {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "parentbased_always_off" => Sampler::ParentBased(Box::new(Sampler::AlwaysOff)),
        "" | "parentbased_always_on" => default(),
        _ => {
            warn(format!(
                "{SAMPLER}: expected always_on, always_off or traceidratio, or one of these after \
                 parentbased_, found {name:?}; it is ignored, and parentbased_always_on is used"
            ));
            default()
        }
    }
}

/// Returns the ratio of sampled traces: 1 without a valid argument.
fn ratio(argument: Option<String>, warn: &mut impl FnMut(String)) -> f64 {
    let Some(text) = argument else { return 1.0 };
    let ratio = text.trim().parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.unwrap_or_else(|| {
        warn(format!(
            "{SAMPLER_ARGUMENT}: expected a number from 0 to 1, found {text:?}; it is ignored, and \
             all traces are sampled"
        ));
        1.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sampler of this name and argument, and the warnings.
    fn sampled(name: &str, argument: &str) -> (String, Vec<String>) {
        let mut warnings = Vec::new();
        let of = |variable: &str| {
            let value = if variable == SAMPLER { name } else { argument };
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        let sampler = sampler(of, &mut |warning| warnings.push(warning));
        (format!("{sampler:?}"), warnings)
    }

    #[test]
    fn an_unknown_exporter_is_ignored_with_a_warning() {
        for (value, expected, warned) in [
            ("", true, 0),
            ("otlp", true, 0),
            ("none", false, 0),
            ("otlp, none", true, 0),
            ("zipkin", true, 1),
            ("none,console", false, 1),
            ("None", true, 1),
        ] {
            let mut warnings = Vec::new();
            let mut warn = |warning| warnings.push(warning);
            let is_on = has_exporter("OTEL_TRACES_EXPORTER", Some(value.to_owned()), &mut warn);
            assert_eq!((is_on, warnings.len()), (expected, warned), "{value}: {warnings:?}");
            let expected = "OTEL_TRACES_EXPORTER: expected otlp or none, found";
            assert!(warnings.iter().all(|text| text.starts_with(expected)), "{warnings:?}");
        }
    }

    #[test]
    fn an_unknown_sampler_is_ignored_with_a_warning() {
        let default = sampled("", "");
        assert_eq!(default, ("ParentBased(AlwaysOn)".to_owned(), vec![]));
        assert_eq!(sampled("parentbased_always_off", "").0, "ParentBased(AlwaysOff)");
        assert_eq!(sampled(" always_off ", ""), ("AlwaysOff".to_owned(), vec![]));
        assert_eq!(sampled(" ", ""), default);
        assert_eq!(sampled("traceidratio", "0.25").0, "TraceIdRatioBased(0.25)");
        let based = sampled("parentbased_traceidratio", " 0 ");
        assert_eq!(based, ("ParentBased(TraceIdRatioBased(0.0))".to_owned(), vec![]));
        for name in ["always", "ALWAYS_ON", "xray", "jaeger_remote"] {
            let (sampler, warnings) = sampled(name, "");
            assert_eq!((sampler, warnings.len()), (default.0.clone(), 1), "{warnings:?}");
            assert!(warnings[0].contains(&format!("found {name:?}")), "{warnings:?}");
        }
    }

    #[test]
    fn an_argument_that_no_sampler_uses_is_ignored_with_a_warning() {
        for argument in ["1.5", "-0.1", "NaN", "10%", "inf"] {
            let (sampler, warnings) = sampled("traceidratio", argument);
            assert_eq!((&*sampler, warnings.len()), ("TraceIdRatioBased(1.0)", 1), "{argument}");
            assert!(warnings[0].contains("from 0 to 1"), "{warnings:?}");
        }
        for name in ["", "always_on"] {
            assert_eq!(sampled(name, "0.1").1.len(), 1, "{name}");
        }
    }
}
