"""Rows say what the schemas of ONNX say."""

import inspect
from typing import Any

import onnx
import pytest
from onnx import defs

from phlox_onnx.table import TABLE

# In files under the domain of ONNX, but in no schema.
UNWRITTEN = {"SimplifiedLayerNormalization"}
NAMES = sorted(op for domain, op in TABLE if not domain and op not in UNWRITTEN)
Option = defs.OpSchema.FormalParameterOption


def schema(op: str) -> Any:
    return defs.get_schema(op)


@pytest.mark.parametrize("op", NAMES)
def test_a_row_is_for_the_newest_version(op: str) -> None:
    assert TABLE["", op].version == schema(op).since_version


@pytest.mark.parametrize("op", NAMES)
def test_a_row_takes_the_inputs_of_the_schema(op: str) -> None:
    inputs, row = list(schema(op).inputs), TABLE["", op]
    single = [i.option == Option.Single for i in inputs if i.option != Option.Variadic]
    assert [p.required for p in row.inputs] == single
    assert (row.rest is not None) == any(i.option == Option.Variadic for i in inputs)


@pytest.mark.parametrize("op", NAMES)
def test_a_row_takes_the_attributes_of_the_schema(op: str) -> None:
    attributes, row = schema(op).attributes, TABLE["", op]
    assert set(row.attributes) == set(attributes)
    for name, parameter in inspect.signature(row.run).parameters.items():
        if parameter.kind is not parameter.KEYWORD_ONLY or name not in attributes:
            continue
        given = attributes[name]
        assert (parameter.default is parameter.empty) == given.required, name
        # The default of activations is one for each direction.
        if given.default_value.name and name != "activations":
            default = onnx.helper.get_attribute_value(given.default_value)
            default = default.decode() if isinstance(default, bytes) else default
            default = tuple(default) if isinstance(default, list) else default
            assert parameter.default == pytest.approx(default) or parameter.default == default


def test_the_ops_without_a_row_are_known() -> None:
    every = {s.name for s in defs.get_all_schemas() if not s.domain and not s.deprecated}
    strings = {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}
    others = {"Constant", "ImageDecoder", "TfIdfVectorizer"}
    assert every - {op for domain, op in TABLE if not domain} == strings | others
