//! The login of a client: its user, its password, and its token.

use super::diagnosis::{is_login_disabled, is_login_refused};
use super::proto::AuthenticateRequest;
use super::proto::auth_client::AuthClient;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// The pause after a refused login. etcd needs about 0.1 s of a processor for each one.
const PAUSE: Duration = Duration::from_secs(2);

/// A token of etcd, which is sent with each request.
pub(super) type Token = MetadataValue<Ascii>;

/// A user of etcd. The password is not printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The login of a client. Requests at the same time share a token.
#[derive(Debug)]
pub(super) struct Login {
    credentials: Credentials,
    state: Mutex<State>,
    /// Held during a login, so that requests at the same time cause one.
    running: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
enum State {
    /// A login is required.
    None,
    Token(Token),
    /// etcd has no users: requests need no token.
    Disabled,
    /// A login was refused. It is not tried again before this time.
    Refused(Status, Instant),
}

/// The result of a login.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// A token that the client had already.
    Known(Option<Token>),
    /// A token of a login that was made now.
    New(Token),
    /// etcd has no users: requests need no token. It has said so now.
    Disabled(Status),
}

impl Access {
    /// Returns the token for requests.
    pub(super) fn token(self) -> Option<Token> {
        match self {
            Self::Known(token) => token,
            Self::New(token) => Some(token),
            Self::Disabled(_) => None,
        }
    }
}

impl Login {
    pub(super) fn new(credentials: Credentials) -> Self {
        Self { credentials, state: Mutex::new(State::None), running: tokio::sync::Mutex::default() }
    }

    /// Returns the token for a request. Logs in if there is none.
    pub(super) async fn access(&self, channel: &Channel) -> Result<Access, Status> {
        if let Some(known) = self.known() {
            return known;
        }
        let _running = self.running.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let Credentials { user, password } = self.credentials.clone();
        let request = Request::new(AuthenticateRequest { name: user, password });
        let response = AuthClient::new(channel.clone()).authenticate(request).await;
        let (state, result) = match response {
            Ok(response) => {
                let token = token(&response.into_inner().token)?;
                (State::Token(token.clone()), Ok(Access::New(token)))
            }
            Err(status) if is_login_disabled(&status) => {
                (State::Disabled, Ok(Access::Disabled(status)))
            }
            Err(status) if is_login_refused(&status) => {
                (State::Refused(status.clone(), Instant::now() + PAUSE), Err(status))
            }
            Err(status) => return Err(status),
        };
        *self.state() = state;
        result
    }

    /// Returns the result of an earlier login; `None` if a login is required.
    fn known(&self) -> Option<Result<Access, Status>> {
        match &*self.state() {
            State::None => None,
            State::Token(token) => Some(Ok(Access::Known(Some(token.clone())))),
            State::Disabled => Some(Ok(Access::Known(None))),
            State::Refused(_, until) if *until <= Instant::now() => None,
            State::Refused(status, _) => Some(Err(status.clone())),
        }
    }

    /// Forgets a token that etcd has refused, unless there is a newer one.
    pub(super) fn forget(&self, refused: Option<&Token>) {
        let mut state = self.state();
        let is_current = match &*state {
            State::Token(token) => Some(token) == refused,
            State::Disabled => refused.is_none(),
            State::None | State::Refused(..) => false,
        };
        if is_current {
            *state = State::None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn token(text: &str) -> Result<Token, Status> {
    let mut token: Token = text
        .parse()
        .map_err(|_| Status::internal("etcd has sent a token with other characters"))?;
    token.set_sensitive(true);
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_token_is_not_forgotten() {
        let credentials = Credentials { user: "me".into(), password: "s3cret".into() };
        let login = Login::new(credentials);
        let known = |login: &Login| match login.known() {
            Some(Ok(access)) => access.token(),
            _ => None,
        };
        let (old, new) = (token("a.1").expect("a token"), token("b.2").expect("a token"));
        *login.state() = State::Token(new.clone());
        login.forget(Some(&old));
        login.forget(None);
        assert_eq!(known(&login), Some(new.clone()));
        login.forget(Some(&new));
        assert!(login.known().is_none());
        *login.state() = State::Disabled;
        assert!(login.known().is_some());
        login.forget(None);
        assert!(login.known().is_none());
        let shown = format!("{login:?} {new:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("b.2"), "{shown}");
    }
}
