//! The Python class of an open snapshot.

use super::batch::{self, Form};
use super::entries::{Entries, Part};
use super::failure::{argument, raised};
use super::held::{Closable, Held};
use super::identity::Identity;
use super::keys::key_bytes;
use super::objects::plain_object;
use super::stats::SnapshotStats;
use super::typed::{get_typed, object_of, type_of_name};
use crate::convert::KeywordArguments;
use nuthatch_snapshot::{OpenOptions, Residency, ValueType};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of times that a file is opened again because it was replaced meanwhile.
const MAX_REOPENS: usize = 8;

/// An open snapshot: an immutable mapping of keys to typed values. All threads can use it at the
/// same time, and children made by `fork`.
///
/// Keys are `str`, which stands for its UTF-8 form, or `bytes`; another class is a `TypeError`.
/// Iteration gives `str` for keys in UTF-8 and `bytes` for others, in the order of the file, which
/// is unrelated to the order of the keys.
///
/// Lists of numbers are read-only NumPy arrays in the memory map of the file, without a copy unless
/// they are compressed; an array keeps the file mapped. Without NumPy they are `memoryview`s.
///
/// All lookups raise `DamagedError` for damaged or unreadable bytes, and `ClosedError` after
/// `close`.
#[pyclass(frozen, weakref, mapping, module = "nuthatch")]
pub(crate) struct Snapshot {
    open: Closable,
    /// The options that it was opened with, for pickling; `None` for the snapshot of a watch, which
    /// is shared, so that it cannot be closed.
    options: Option<Py<PyDict>>,
}

/// Converts the options of opening.
pub(super) fn open_options(
    py: Python<'_>,
    arguments: &KeywordArguments<'_>,
) -> PyResult<OpenOptions> {
    let mut options = OpenOptions::new().lock(arguments.flag("lock")?);
    if let Some(word) = arguments.take::<String>("residency")? {
        options = options.residency(match word.as_str() {
            "mapped" => Residency::Mapped,
            "populated" => Residency::Populated,
            "huge-pages" => Residency::HugePages,
            _ => {
                let expected = "expected mapped, populated or huge-pages";
                return Err(argument(py, format!("residency: {expected}, found {word:?}")));
            }
        });
    }
    Ok(options)
}

/// Opens a snapshot: a file, or a set by the path of its manifest.
#[pyfunction]
#[pyo3(signature = (path, /, **options))]
pub(crate) fn _open_snapshot(
    py: Python<'_>,
    path: PathBuf,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Snapshot> {
    let kept = options.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
    let arguments = KeywordArguments::new("open_snapshot", options);
    let settings = open_options(py, &arguments)?;
    arguments.finish()?;
    // A child or an unpickled snapshot can have another working directory.
    let path = std::path::absolute(&path)?;
    let held = raised(py, py.detach(|| open(&settings, path)))?;
    Ok(Snapshot { open: Closable::new(held), options: Some(kept.unbind()) })
}

/// Opens a snapshot, and reads the identity of the same file.
fn open(options: &OpenOptions, path: PathBuf) -> nuthatch_snapshot::Result<Arc<Held>> {
    let mut before = Identity::of(&path).ok();
    for _ in 0..MAX_REOPENS {
        let snapshot = options.open(&path)?;
        let after = Identity::of(&path).ok();
        match after {
            Some(identity) if before.as_ref() == Some(&identity) => {
                return Ok(Held::opened(snapshot, path, identity));
            }
            after => before = after,
        }
    }
    // The file is replaced all the time: this snapshot can be used, but not unpickled.
    let snapshot = options.open(&path)?;
    Ok(Held::opened(snapshot, path, Identity(String::new())))
}

impl Snapshot {
    /// Returns the object for a generation of a watch.
    pub(super) fn watched(held: Arc<Held>) -> Self {
        Self { open: Closable::new(held), options: None }
    }

    /// Returns an iterator over a part of the entries.
    fn entries(slf: &Bound<'_, Self>, part: Part) -> PyResult<Entries> {
        let held = slf.get().open.share(slf.py())?;
        let snapshot = slf.clone().unbind();
        Ok(Entries::new(held, part, move |py| snapshot.get().check_open(py)))
    }

    /// Fails if the snapshot is closed.
    #[inline]
    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        self.open.get(py).map(|_| ())
    }

    /// Looks up a key; `None` if it is missing.
    #[inline(always)]
    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = key_bytes(key)?;
        let held = self.open.get(py)?;
        if let Ok(found) = held.get().find(bytes) {
            let object = match &found {
                None => Some(None),
                Some(stored) => plain_object(py, stored).map(Some),
            };
            if let Some(object) = object {
                held.check_readable(py)?;
                return Ok(object);
            }
        }
        self.find_shared(py, bytes)
    }

    /// Looks up a key whose value needs Python code, such as a NumPy array, or is damaged.
    #[cold]
    #[inline(never)]
    fn find_shared<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let held = self.open.share(py)?;
        match raised(py, held.get().find(key))? {
            Some(stored) => object_of(py, &stored, &held).map(Some),
            None => Ok(None),
        }
    }

    /// Looks up a value of a type.
    fn typed<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        requested: ValueType,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, bytes) = (key.py(), key_bytes(key)?);
        let found = get_typed(py, &self.open.share(py)?, bytes, requested)?;
        Ok(found.or(default).unwrap_or_else(|| py.None().into_bound(py)))
    }

    fn view<'py>(slf: &Bound<'py, Self>, class: &str) -> PyResult<Bound<'py, PyAny>> {
        slf.get().open.get(slf.py())?;
        slf.py().import("nuthatch.snapshots")?.call_method1(class, (slf,))
    }
}

#[pymethods]
impl Snapshot {
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.find(py, key)? {
            Some(value) => Ok(value),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Returns the value of a key.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.find(py, key)? {
            Some(value) => Ok(value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = key_bytes(key)?;
        let held = self.open.get(py)?;
        let found = raised(py, held.get().contains(bytes))?;
        held.check_readable(py)?;
        Ok(found)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.open.get(py)?.get().len() as usize)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Entries> {
        Self::entries(slf, Part::Keys)
    }

    /// Iterates over the entries as pairs of a key and a value.
    fn _items(slf: &Bound<'_, Self>) -> PyResult<Entries> {
        Self::entries(slf, Part::Entries)
    }

    /// Iterates over the values.
    fn _values(slf: &Bound<'_, Self>) -> PyResult<Entries> {
        Self::entries(slf, Part::Values)
    }

    /// Returns a view of the keys, as that of a `dict`.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(slf, "_Keys")
    }

    /// Returns a view of the values, as that of a `dict`.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(slf, "_Values")
    }

    /// Returns a view of the pairs of a key and a value, as that of a `dict`.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(slf, "_Items")
    }

    /// Returns the values of many keys, which is several times as fast as one lookup each. For 256
    /// keys and more, the search does not hold the interpreter's lock, so other threads run Python
    /// code meanwhile.
    ///
    /// With ``out="numpy"``, all values have one type: a bool or a number, or lists of numbers of
    /// one length, which become the rows of a matrix. With ``out="arrow"``, all values have one
    /// type, and libraries such as `PyArrow` and Polars read the column without a copy, by the
    /// Arrow ``PyCapsule`` interface.
    ///
    /// Args:
    ///     `keys`: The keys.
    ///     `default`: The value for missing keys. For a NumPy array, missing keys without a default
    ///         are a `KeyError`; a column has nulls, and no default.
    ///     `out`: The result: ``list``, ``numpy`` or ``arrow``.
    ///     `value_type`: The type that all values must have, such as ``i64`` or ``list of f32``. By
    ///         default, values in a list have any type, and those of an array or a column have the
    ///         type of the first one.
    ///
    /// Returns:
    ///     The values in the order of the keys.
    ///
    /// Raises:
    ///     `WrongTypeError`: A value has another type.
    ///     `ArgumentError`: ``out`` or ``value_type`` is invalid, the lists of a matrix have
    ///         different lengths, or there is no value whose type an array or a column could have.
    #[pyo3(signature = (keys, default=None, *, out="list", value_type=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        out: &str,
        value_type: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let form = Form::of_name(out);
        let form = form.ok_or_else(|| {
            argument(py, format!("out: expected list, numpy or arrow, found {out:?}"))
        })?;
        let requested = value_type.map(|name| {
            let message = || format!("value_type: expected a type such as \"i64\", found {name:?}");
            type_of_name(name).ok_or_else(|| argument(py, message()))
        });
        let held = self.open.share(py)?;
        batch::get_many(keys, &held, default, form, requested.transpose()?)
    }

    /// Returns a value of type bytes.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_bytes<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::Bytes)
    }

    /// Returns a string.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_string<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::String)
    }

    /// Returns a bool.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_bool<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::Bool)
    }

    /// Returns an integer.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_i64<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::I64)
    }

    /// Returns a float.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_f64<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::F64)
    }

    /// Returns a list of integers, as an array of ``int64``. An empty list is one of any type.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_i64_list<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::I64List)
    }

    /// Returns a list of 64-bit floats, as an array of ``float64``. An empty list is one of any
    /// type.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_f64_list<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::F64List)
    }

    /// Returns a list of 32-bit floats, as an array of ``float32``. An empty list is one of any
    /// type.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_f32_list<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::F32List)
    }

    /// Returns a list of strings. An empty list is one of any type.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `default`: Returned for a missing key.
    ///
    /// Raises:
    ///     `WrongTypeError`: The value has another type.
    #[pyo3(signature = (key, default=None))]
    fn get_string_list<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.typed(key, default, ValueType::StringList)
    }

    /// Returns the type of the value of a key, such as ``string`` or ``list of f32``; `None` for a
    /// missing key.
    ///
    /// Args:
    ///     `key`: The key.
    fn value_type(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
        let bytes = key_bytes(key)?;
        let held = self.open.get(py)?;
        let found = raised(py, held.get().value_type(bytes))?;
        held.check_readable(py)?;
        Ok(found.map(ValueType::name))
    }

    /// Returns the statistics, from the headers of the files.
    fn stats(&self, py: Python<'_>) -> PyResult<SnapshotStats> {
        Ok(SnapshotStats::from(self.open.get(py)?.get().stats()))
    }

    /// Returns the metadata that the writer was given: the value of each name, in ascending order
    /// of the names.
    ///
    /// Raises:
    ///     `DamagedError`: The metadata is damaged.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let held = self.open.share(py)?;
        let metadata = raised(py, held.get().metadata())?;
        let dict = PyDict::new(py);
        for (name, value) in metadata.iter() {
            dict.set_item(PyString::new(py, name), PyBytes::new(py, value))?;
        }
        Ok(dict)
    }

    /// Checks every byte of the files, on all processors. Other threads run Python code meanwhile.
    ///
    /// Raises:
    ///     `DamagedError`: A file is damaged. The exception has its `path` and the `offset` in
    ///     bytes.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.open.share(py)?;
        raised(py, py.detach(|| held.get().verify()))?;
        Ok(())
    }

    /// Checks that every page that was read so far was readable. If this succeeds, all bytes that
    /// were read from arrays before the call came from the file. Lookups check it themselves.
    ///
    /// Raises:
    ///     `DamagedError`: A file was truncated while it was open, or its device failed. The code
    ///         is ``unreadable``.
    fn check_readable(&self, py: Python<'_>) -> PyResult<()> {
        raised(py, self.open.get(py)?.get().check_readable())
    }

    /// Closes the snapshot. Later calls raise `ClosedError` in all threads, and so does the next
    /// step of an iteration; calls of `get_many` and `verify` that are running complete. Arrays
    /// remain valid; the file is unmapped when the last of them is gone. The snapshot of a watch
    /// stays open, since its callers share it. Another call does nothing.
    fn close(&self, py: Python<'_>) {
        if self.options.is_some() {
            self.open.close(py);
        }
    }

    /// Returns whether the snapshot is closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.open.peek(py).is_none()
    }

    /// Returns the path that the snapshot was opened with, as an absolute path.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<PathBuf> {
        Ok(self.open.get(py)?.path.clone())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }

    /// Pickles the path, the options and the checksum of the header. Unpickling opens the path, and
    /// fails if another file is there.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let held = self.open.share(py)?;
        let (Some(identity), Some(options)) = (&held.identity, &self.options) else {
            let message = "the snapshot of a watch cannot be pickled: pickle the watch";
            return Err(argument(py, message.to_owned()));
        };
        let again = py.import("nuthatch.snapshots")?.getattr("_open_again")?;
        (again, (held.path.as_os_str(), &identity.0, options)).into_bound_py_any(py)
    }

    /// Returns the checksum of the header, which identifies the content.
    #[getter]
    fn _identity(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.open.get(py)?.identity.as_ref().map(|identity| identity.0.clone()))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.open.peek(py) {
            Some(held) => {
                let (path, entries) = (held.path.display(), held.get().len());
                format!("<nuthatch.Snapshot of {entries} entries in {path}>")
            }
            None => "<nuthatch.Snapshot, closed>".to_owned(),
        }
    }
}
