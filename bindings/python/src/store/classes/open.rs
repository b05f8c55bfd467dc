//! Conversion of keyword arguments into options of stores.

use super::tables::AnyStore;
use crate::convert::KeywordArguments;
use crate::failure::{Failure, Outcome};
use crate::runtime::{CallMode, Work};
use crate::store::engine::{Engine, Local, Remote, take_durability};
use crate::store::results::{Compacted, Verified};
use nuthatch_rpc::{ClientOptions, ClientTls};
use nuthatch_store::{Options, compact, verify_closed};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// Converts the flag for asynchronous calls.
fn mode(asynchronous: bool) -> CallMode {
    if asynchronous { CallMode::Async } else { CallMode::Sync }
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
    let arguments = KeywordArguments::new("open", options);
    let (durability, mut settings) =
        (take_durability(&arguments)?.unwrap_or_default(), Options::new());
    settings = settings.durability(durability);
    if let Some(create) = arguments.take("create")? {
        settings = settings.create(create);
    }
    if let Some(read_only) = arguments.take("read_only")? {
        settings = settings.read_only(read_only);
    }
    if let Some(bytes) = arguments.take("reserve")? {
        settings = settings.reserve(bytes);
    }
    if let Some(bytes) = arguments.take("limit")? {
        settings = settings.limit(bytes);
    }
    if let Some(patience) = arguments.seconds("growth_patience")? {
        settings = settings.growth_patience(patience);
    }
    if let Some(max) = arguments.take("tables")? {
        settings = settings.tables(max);
    }
    if let Some(max) = arguments.take("readers")? {
        settings = settings.readers(max);
    }
    if let Some(max) = arguments.take("threads")? {
        settings = settings.threads(max);
    }
    if let Some(allow) = arguments.take("allow_network_filesystem")? {
        settings = settings.allow_network_filesystem(allow);
    }
    arguments.finish()?;
    let open = Work::blocking(move || Local::open(path, &settings, durability));
    let mode = mode(asynchronous);
    open.answer_with(py, mode, move |py, local| {
        AnyStore::make(py, Engine::Local(Arc::new(local)), mode)
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
    let arguments = KeywordArguments::new("connect", options);
    let mut settings = ClientOptions::new();
    if let Some(token) = arguments.take::<String>("token")? {
        settings = settings.token(token);
    }
    if let Some(insecure) = arguments.take("insecure")? {
        settings = settings.insecure(insecure);
    }
    if let Some(limit) = arguments.seconds("connect_timeout")? {
        settings = settings.connect_timeout(limit);
    }
    if let Some(limit) = arguments.seconds("timeout")? {
        settings = settings.timeout(limit);
    }
    if let Some(max) = arguments.take("retries")? {
        settings = settings.retries(max);
    }
    if let Some(limit) = arguments.seconds("reconnect")? {
        settings = settings.reconnect(limit);
    }
    if let Some(max) = arguments.take("message_bytes")? {
        settings = settings.message_bytes(max);
    }
    let tls = tls(&arguments)?.map_err(|failure| failure.raise(py))?;
    if let Some(tls) = tls {
        settings = settings.tls(tls);
    }
    arguments.finish()?;
    let connect = Work::awaited(Remote::connect(address, settings));
    let mode = mode(asynchronous);
    connect.answer_with(py, mode, move |py, remote| {
        AnyStore::make(py, Engine::Remote(Arc::new(remote)), mode)
    })
}

/// Takes the certificates for TLS.
fn tls(arguments: &KeywordArguments<'_>) -> PyResult<Outcome<Option<ClientTls>>> {
    let (ca, cert) = (arguments.take::<PathBuf>("ca")?, arguments.take::<PathBuf>("cert")?);
    let (key, name) = (arguments.take::<PathBuf>("key")?, arguments.take::<String>("server_name")?);
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
    compacted.answer(py, mode(asynchronous))
}

/// Checks all pages of the store in a folder without opening it.
#[pyfunction]
#[pyo3(signature = (path, asynchronous, /))]
fn _verify_store(py: Python<'_>, path: PathBuf, asynchronous: bool) -> PyResult<Bound<'_, PyAny>> {
    let verified = Work::blocking(move || Ok(Verified::from(verify_closed(&path, |_, _| ())?)));
    verified.answer(py, mode(asynchronous))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_open_store, module)?)?;
    module.add_function(wrap_pyfunction!(_connect_store, module)?)?;
    module.add_function(wrap_pyfunction!(_compact_store, module)?)?;
    module.add_function(wrap_pyfunction!(_verify_store, module)?)
}
