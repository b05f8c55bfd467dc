//! What one check has found.

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Nothing to do.
    Ok,
    /// A change would make the server faster or safer.
    Note,
    /// The server does not start, or not as configured.
    Problem,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What was looked at, such as `open files`.
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// What was found.
    pub(super) found: String,
    /// What to do, if there is something to do.
    pub(super) advice: Option<String>,
    /// A line for a file in `/etc/sysctl.d`, if the advice is one.
    pub(super) sysctl: Option<&'static str>,
}

impl Finding {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), advice: None, sysctl: None }
    }

    pub(super) fn note(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { status: Status::Note, advice, ..Self::ok(name, found) }
    }

    pub(super) fn problem(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status: Status::Problem, ..Self::note(name, found, advice) }
    }

    /// Sets the line for a file in `/etc/sysctl.d`.
    pub(super) fn with_sysctl(self, line: &'static str) -> Self {
        Self { sysctl: Some(line), ..self }
    }
}
