//! Conversion of keyword arguments into options of stores.

use super::data::AnyStore;
use super::engine::Engine;
use super::figures::{Compacted, Verified};
use super::local::Local;
use super::remote::Remote;
use crate::failure::{Failure, Outcome};
use crate::named::Named;
use crate::work::{Face, Work};
use nuthatch_rpc::{ClientOptions, ClientTls};
use nuthatch_store::{Durability, Options, compact, verify_closed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// Converts the flag for asynchronous calls.
fn face(asynchronous: bool) -> Face {
    if asynchronous { Face::Async } else { Face::Sync }
}

/// Converts the name of a durability.
pub(crate) fn durability_of(word: &str) -> PyResult<Durability> {
    match word {
        "sync" => Ok(Durability::Sync),
        "group" => Ok(Durability::Group),
        "none" => Ok(Durability::None),
        _ => {
            let message = format!("durability: expected sync, group or none, found {word:?}");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Takes the durability of commits.
pub(crate) fn durability(named: &Named<'_>) -> PyResult<Option<Durability>> {
    named.take::<String>("durability")?.map(|word| durability_of(&word)).transpose()
}

/// Opens the store in a folder.
#[pyfunction]
#[pyo3(signature = (path, asynchronous, /, **options))]
fn _open_store<'py>(
    py: Python<'py>,
    path: PathBuf,
    asynchronous: bool,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let named = Named::new("open", options);
    let (durability, mut wanted) = (durability(&named)?.unwrap_or_default(), Options::new());
    wanted = wanted.durability(durability);
    if let Some(create) = named.take("create")? {
        wanted = wanted.create(create);
    }
    if let Some(read_only) = named.take("read_only")? {
        wanted = wanted.read_only(read_only);
    }
    if let Some(bytes) = named.take("reserve")? {
        wanted = wanted.reserve(bytes);
    }
    if let Some(bytes) = named.take("limit")? {
        wanted = wanted.limit(bytes);
    }
    if let Some(patience) = named.seconds("growth_patience")? {
        wanted = wanted.growth_patience(patience);
    }
    if let Some(most) = named.take("tables")? {
        wanted = wanted.tables(most);
    }
    if let Some(most) = named.take("readers")? {
        wanted = wanted.readers(most);
    }
    if let Some(most) = named.take("threads")? {
        wanted = wanted.threads(most);
    }
    if let Some(allow) = named.take("allow_network_filesystem")? {
        wanted = wanted.allow_network_filesystem(allow);
    }
    named.finish()?;
    let open = Work::blocking(move || Local::open(path, &wanted, durability));
    let face = face(asynchronous);
    open.answer_with(py, face, move |py, local| {
        AnyStore::make(py, Engine::Local(Arc::new(local)), face)
    })
}

/// Connects to a store behind a server.
#[pyfunction]
#[pyo3(signature = (address, asynchronous, /, **options))]
fn _connect_store<'py>(
    py: Python<'py>,
    address: String,
    asynchronous: bool,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let named = Named::new("connect", options);
    let mut wanted = ClientOptions::new();
    if let Some(token) = named.take::<String>("token")? {
        wanted = wanted.token(token);
    }
    if let Some(insecure) = named.take("insecure")? {
        wanted = wanted.insecure(insecure);
    }
    if let Some(limit) = named.seconds("connect_timeout")? {
        wanted = wanted.connect_timeout(limit);
    }
    if let Some(limit) = named.seconds("timeout")? {
        wanted = wanted.timeout(limit);
    }
    if let Some(most) = named.take("retries")? {
        wanted = wanted.retries(most);
    }
    if let Some(limit) = named.seconds("reconnect")? {
        wanted = wanted.reconnect(limit);
    }
    if let Some(most) = named.take("message_bytes")? {
        wanted = wanted.message_bytes(most);
    }
    let tls = tls(&named)?.map_err(|failure| failure.raise(py))?;
    if let Some(tls) = tls {
        wanted = wanted.tls(tls);
    }
    named.finish()?;
    let connect = Work::awaited(Remote::connect(address, wanted));
    let face = face(asynchronous);
    connect.answer_with(py, face, move |py, remote| {
        AnyStore::make(py, Engine::Remote(Arc::new(remote)), face)
    })
}

/// Takes the certificates for TLS.
fn tls(named: &Named<'_>) -> PyResult<Outcome<Option<ClientTls>>> {
    let (ca, cert) = (named.take::<PathBuf>("ca")?, named.take::<PathBuf>("cert")?);
    let (key, name) = (named.take::<PathBuf>("key")?, named.take::<String>("server_name")?);
    let wrong = |error: nuthatch_rpc::TlsError| Failure::argument(error.to_string());
    if cert.is_some() != key.is_some() {
        return Ok(Err(Failure::argument("expected cert and key together or not at all")));
    }
    if ca.is_none() && cert.is_none() && name.is_none() {
        // The client uses the certificates of the system if the address requires TLS.
        return Ok(Ok(None));
    }
    let tls = ca.map_or_else(ClientTls::system, |ca| ClientTls::open(&ca));
    let tls = tls.and_then(|tls| match (cert, key) {
        (Some(cert), Some(key)) => tls.identity(&cert, &key),
        _ => Ok(tls),
    });
    let tls = tls.map(|tls| name.map_or(tls.clone(), |name| tls.name(&name)));
    Ok(tls.map(Some).map_err(wrong))
}

/// Compacts the store in a folder in place.
#[pyfunction]
#[pyo3(signature = (path, asynchronous, /))]
fn _compact_store(py: Python<'_>, path: PathBuf, asynchronous: bool) -> PyResult<Bound<'_, PyAny>> {
    let compacted = Work::blocking(move || Ok(Compacted::from(compact(path)?)));
    compacted.answer(py, face(asynchronous))
}

/// Checks all pages of the store in a folder without opening it.
#[pyfunction]
#[pyo3(signature = (path, asynchronous, /))]
fn _verify_store(py: Python<'_>, path: PathBuf, asynchronous: bool) -> PyResult<Bound<'_, PyAny>> {
    let verified = Work::blocking(move || Ok(Verified::from(verify_closed(&path, |_, _| ())?)));
    verified.answer(py, face(asynchronous))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_open_store, module)?)?;
    module.add_function(wrap_pyfunction!(_connect_store, module)?)?;
    module.add_function(wrap_pyfunction!(_compact_store, module)?)?;
    module.add_function(wrap_pyfunction!(_verify_store, module)?)
}
