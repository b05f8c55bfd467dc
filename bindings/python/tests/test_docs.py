"""Every public name has documentation: one form, and the parameters that it really has."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import types
from typing import TYPE_CHECKING, Any

import pytest

import nuthatch
import nuthatch.fs

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = [
    nuthatch,
    nuthatch.aio,
    nuthatch.chunks,
    nuthatch.delivery,
    nuthatch.errors,
    nuthatch.fs,
    nuthatch.jobs,
]
# `scripts/python spark` installs PySpark and also runs these tests.
if importlib.util.find_spec("pyspark"):
    MODULES.append(importlib.import_module("nuthatch.spark"))

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
PROPERTIES = (property, types.GetSetDescriptorType)


def own_classes(found: type) -> Iterator[type]:
    """Yields a class and its bases of this package."""
    yield from (each for each in found.__mro__ if each.__module__.startswith("nuthatch"))


def overrides(found: type, member: str) -> bool:
    """Returns whether a class of another package, such as `io` or fsspec, specifies a member."""
    return any(hasattr(each, member) for each in set(found.__mro__) - set(own_classes(found)))


def members(name: str, found: type) -> Iterator[tuple[str, Any]]:
    """Yields the public functions and properties of a class that no other package specifies."""
    for each in own_classes(found):
        for member, value in vars(each).items():
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if member.startswith("_") or overrides(found, member):
                continue
            if isinstance(function, FUNCTIONS + PROPERTIES):
                yield f"{name}.{member}", function


def public() -> Iterator[tuple[str, Any]]:
    """Yields all public classes, functions and properties with their names."""
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            full = f"{module.__name__}.{name}"
            if isinstance(found, type):
                yield full, found
                yield from members(full, found)
            elif isinstance(found, FUNCTIONS):
                yield full, found


PUBLIC = dict(public())
CALLABLE = {name: found for name, found in PUBLIC.items() if isinstance(found, FUNCTIONS)}


def documented(text: str) -> list[str]:
    """Returns the parameters in the section `Args` of a docstring."""
    section = re.search(r"^Args:\n((?:(?: .*)?\n?)*)", inspect.cleandoc(text), re.MULTILINE)
    names = re.findall(r"^ {4}[`*]*(\w+)`?:", section[1], re.MULTILINE) if section else []
    return [str(name) for name in names]


def test_the_walk_sees_the_interface() -> None:
    for name in (
        "nuthatch.open",
        "nuthatch.Store.put",
        "nuthatch.Change.key",
        "nuthatch.Snapshot.get",
    ):
        assert name in PUBLIC, name
    assert len(CALLABLE) > 100


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_documentation(name: str) -> None:
    assert inspect.getdoc(PUBLIC[name])


@pytest.mark.parametrize("name", CALLABLE)
def test_documentation_of_functions_begins_with_a_verb(name: str) -> None:
    first = (inspect.getdoc(PUBLIC[name]) or "").split()[0]
    assert re.fullmatch(r"[A-Z][a-z]+s", first), first


@pytest.mark.parametrize("name", CALLABLE)
def test_documented_parameters_exist(name: str) -> None:
    found = CALLABLE[name]
    parameters = [each for each in inspect.signature(found).parameters if each != "self"]
    assert documented(inspect.getdoc(found) or "") == parameters
