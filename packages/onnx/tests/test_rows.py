"""Rows say what the schemas of ONNX say."""

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import defs

from phlox_onnx import table
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


# Attributes that a row takes and does not look at, with why that changes no number.
_DRAWN = "another library's stream of random numbers"
_EIGHT = "speaks of floats of 8 bits, which phlox lacks"
UNREAD = {
    ("", "Bernoulli", "seed"): _DRAWN,
    ("", "Cast", "round_mode"): _EIGHT,
    ("", "Cast", "saturate"): _EIGHT,
    ("", "CastLike", "round_mode"): _EIGHT,
    ("", "CastLike", "saturate"): _EIGHT,
    ("", "Dropout", "seed"): _DRAWN,
    ("", "LinearAttention", "chunk_size"): "a hint to kernels that work on several steps at once",
    ("", "Multinomial", "seed"): _DRAWN,
    ("", "Optional", "type"): "None is None, whatever it is not",
    ("", "QuantizeLinear", "saturate"): _EIGHT,
    ("", "RandomNormal", "seed"): _DRAWN,
    ("", "RandomNormalLike", "seed"): _DRAWN,
    ("", "RandomUniform", "seed"): _DRAWN,
    ("", "RandomUniformLike", "seed"): _DRAWN,
    ("", "Range", "stash_type"): "on the host numbers are as wide as can be",
    ("", "SequenceEmpty", "dtype"): "a list of nothing has no type",
    ("", "TopK", "sorted"): "elements come in order in any case",
    ("ai.onnx.ml", "LinearClassifier", "multi_class"): "says how it was trained",
    ("com.microsoft", "MatMulNBits", "accuracy_level"): "a hint to kernels of less precision",
    ("com.microsoft", "QuantizeLinear", "saturate"): _EIGHT,
    ("phlox.onnx", "FakeQuantize", "saturate"): _EIGHT,
    ("phlox.onnx", "LearnedQuantize", "saturate"): _EIGHT,
}


def unread(function: Any) -> set[str]:
    """Keyword parameters that the body of a function never names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    made = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda))
    body = made.body if isinstance(made.body, list) else [made.body]
    named = {n.id for line in body for n in ast.walk(line) if isinstance(n, ast.Name)}
    return {a.arg for a in made.args.kwonlyargs} - named


def _plain(function: Any) -> bool:
    return inspect.isfunction(function) and function.__name__ != "<lambda>"


def test_a_row_reads_the_attributes_that_it_takes() -> None:
    functions = [(key, f) for key, row in TABLE.items() for f in (row.run, row.host) if _plain(f)]
    assert len(functions) > 200
    found = {(*key, name) for key, function in functions for name in unread(function)}
    assert found == set(UNREAD)


def test_an_attribute_that_is_not_read_is_found() -> None:
    def row(x: Any, *, axis: int = 0, mode: str = "") -> Any:
        return x.sum(axis=axis)

    assert unread(row) == {"mode"}


def test_functions_of_rows_may_stand_in_one_file() -> None:
    """What a package brings of rows is copied into one ``_ops.py``: no two may share a name."""
    texts: dict[str, set[str]] = {}
    for file in sorted(Path(str(table.__file__)).parent.glob("*.py")):
        source = file.read_text()
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                texts.setdefault(node.name, set()).add(str(ast.get_source_segment(source, node)))
    assert len(texts) > 100
    assert [name for name, found in texts.items() if len(found) > 1] == []
