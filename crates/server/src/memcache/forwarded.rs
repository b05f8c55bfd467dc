//! Requests of memcached that other nodes of the cluster forward, in a command of RESP.

use super::commands::{self, Call};
use super::decode::request_of;
use super::{KeyBuffer, Request};
use crate::output::ZeroCopyValues;
use crate::state::{ForwardedError, ForwardedRequests, MayExecute, MemcachedState, Server};
use nuthatch_cache::Guard;
use std::sync::Arc;

/// Executes these requests.
#[derive(Debug)]
pub(crate) struct MemcachedRequests(pub(crate) Arc<MemcachedState>);

impl MemcachedRequests {
    fn call<'a>(
        &'a self,
        (guard, server): (&'a Guard<'_>, &'a Server),
        out: &'a mut Vec<u8>,
        zero_copy: &'a mut ZeroCopyValues,
    ) -> Call<'a> {
        Call { guard, server, shared: &self.0, out, zero_copy, prefetched: &[] }
    }
}

impl ForwardedRequests for MemcachedRequests {
    fn execute(
        &self,
        (guard, server): (&Guard<'_>, &Server),
        is_permitted: bool,
        may: &MayExecute<'_>,
        (line, value): (&[u8], &[u8]),
    ) -> Result<Vec<u8>, ForwardedError> {
        let request = request_of(line, value).ok_or(ForwardedError::Invalid)?;
        let mut room = KeyBuffer::default();
        let keys: Vec<&[u8]> = commands::keys(&request, &mut room).collect();
        if !may(commands::command(&request), &keys) {
            return Err(ForwardedError::Denied);
        }
        if let Some(cluster) = &server.cluster
            && let Some(refusal) = commands::refuse(cluster, server, is_permitted, &request)
        {
            return Err(ForwardedError::Refused(refusal));
        }
        let (mut out, mut zero_copy) = (Vec::new(), ZeroCopyValues::default());
        let mut call = self.call((guard, server), &mut out, &mut zero_copy);
        match commands::execute(&mut call, &request) {
            Ok(_) => Ok(out),
            Err(_) => Err(ForwardedError::Full),
        }
    }

    fn out_of_memory(
        &self,
        (guard, server): (&Guard<'_>, &Server),
        (line, value): (&[u8], &[u8]),
    ) -> Option<Vec<u8>> {
        let request: Request<'_> = request_of(line, value)?;
        let (mut out, mut zero_copy) = (Vec::new(), ZeroCopyValues::default());
        let mut call = self.call((guard, server), &mut out, &mut zero_copy);
        commands::out_of_memory(&mut call, &request);
        Some(out)
    }
}
