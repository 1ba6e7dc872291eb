"""A keyword of another library: what the error says, done, gives what the keyword gives there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from phlox_tensor import REGISTRY, PhloxError, UnknownArgumentError
from phlox_tensor._errors.keywords import INSTEAD, KEYWORDS
from tests.names.given import GIVEN
from tests.names.idioms import VALUES

TEXT = Path(__file__).with_name("keywords.txt").read_text(encoding="utf-8")
CALLS = [row.split(" ; ") for row in TEXT.splitlines() if not row.startswith("#")]
# Words of functions that draw, and of first arguments beside others: no line gives the same.
UNTRIED = {
    "axisa", "axisb", "axisc", "boundaries", "lam", "loc", "log_probs", "maxval", "minval",
    "num_samples", "probs", "replace", "tau",
}  # fmt: skip
# Rows whose code packages/tensor/tests/test_spellings.py runs, or that is another form.
ELSEWHERE = {
    ("all_reduce", "op"),  # of processes: tests/distributed
    ("batch_norm", "weight"),
    ("cov", "aweights"),
    ("eigh", "UPLO"),
    ("embedding_bag", "offsets"),
    ("histogram", "weights"),
    *((f"lp_pool{n}d", "kernel_size") for n in (1, 2, 3)),  # by place
}


def _called(code: str) -> ast.Call:
    """The call in a line that the row is about: the first one of ours."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return next(call for call in calls if ast.unparse(call.func).startswith("px."))


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def test_every_keyword_of_others_is_tried() -> None:
    tried = set()
    for code, _ in CALLS:
        call = _called(code)
        tried |= {(_name(call), keyword.arg) for keyword in call.keywords}
    assert set(KEYWORDS) - {word for _, word in tried} == UNTRIED
    rows = {(op, key.partition(":")[0]) for op, row in INSTEAD.items() for key in row}
    any_op = {("any_op", word) for word in INSTEAD["any_op"]}
    assert rows - any_op - tried == ELSEWHERE
    assert {word for _, word in any_op} <= {word for _, word in tried}


def _with(code: str, named: dict[str, str]) -> str:
    """Code with other code in the places of names, but not in text."""
    for name, value in named.items():
        code = re.sub(rf"(?<![\"'])\b{name}\b(?![\"'])", f"({value})", code)
    return code


def _done(code: str, given: dict[str, Any]) -> Any:
    """What a line gives once it is written as its error says."""
    from tests.names.beside import ours

    found = ours(code, given)
    if not isinstance(found, UnknownArgumentError):
        return found
    call = _called(code)
    written: dict[Any, str] = {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg}
    places = [ast.unparse(each) for each in call.args]
    hint = str(found.hint).replace("…", "...").partition("  # ")[0]
    if found.what.endswith("is given by its place"):
        places.append(written.pop(str(found.got)))
    elif re.match(r"\w+=(?!=)", hint):
        if found.what.startswith("more arguments"):
            more = int(str(found.got).split()[0])
            written, places = dict(enumerate(places[-more:])) | written, places[:-more]
            words: dict[Any, str] = {word: written.pop(word) for word in range(more)}
        else:
            words = {word: written.pop(word) for word in str(found.got).split(", ")}
        said = {k.arg: ast.unparse(k.value) for k in _called(f"px.f({hint})").keywords if k.arg}
        for (name, value), word in zip(said.items(), [*words, *words], strict=False):
            named = {"x": (places or [""])[0], word: words[word]}
            written[name] = words[word] if value == "..." else _with(value, named)
    else:
        op = REGISTRY.get(_name(call))
        owned = [o.name for o in op.signature.operands] + list(op.attribute_names) if op else []
        last = [*places, *written.values()][-1]
        named = dict.fromkeys(("weight", "weights"), last) | dict(zip("xy", places, strict=False))
        named |= dict(zip(owned, places, strict=False)) | written
        names = {n: ours(v, given) for n, v in named.items()}
        return ours(hint, {**given, **names})
    settings = [f"{name}={value}" for name, value in written.items()]
    new = f"{ast.unparse(call.func)}({', '.join([*places, *settings])})"
    return _done(code.replace(ast.unparse(call), new), given)


@pytest.mark.long
@pytest.mark.parametrize(("code", "other"), CALLS, ids=[code for code, _ in CALLS])
def test_what_the_error_says_gives_what_the_keyword_gives(code: str, other: str) -> None:
    from tests.names.beside import difference, theirs

    given, library = VALUES | GIVEN, "torch" if re.search(r"\b(torch|F)\.", other) else "numpy"
    found = _done(code, given)
    assert not isinstance(found, PhloxError)
    assert difference(found, theirs(other, given, library)) == ""
