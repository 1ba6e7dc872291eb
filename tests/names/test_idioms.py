"""The code that stands in the hint for a name of another library gives what that name gives."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_tensor._elsewhere.spellings import COMPLEX, FOREIGN, NAMES
from tests.names.given import GIVEN
from tests.names.idioms import (
    APART,
    COMPARED,
    DRAWN,
    DRAWN_VALUES,
    DRAWS,
    OWN,
    SEVERAL,
    USED,
    VALUES,
)
from tools.generate.spelling_rows import ROWS

CODES = {name: code.format(ns="px") for name, (_, code) in FOREIGN.items()}
# Names of Burn alone, which no library here has.
BURN = {row.burn.rpartition(".")[2] for row in ROWS} - {
    name.rpartition(".")[2] for row in ROWS for name in (row.numpy, row.torch)
}


def plain() -> dict[str, str]:
    """Code of x, or of x and y, alone: compared with the function of that name."""
    rest = {n: c for n, c in CODES.items() if n not in {*COMPARED, *DRAWN, *APART, *BURN}}
    return {n: c for n, c in rest.items() if re.search(r"\b[xy]\b", c)}


def test_every_hint_is_run_or_says_why_not() -> None:
    told = {*COMPARED, *DRAWN, *APART, *plain(), *BURN}
    assert set(CODES) - told == set(), "no line of idioms.txt, no row of DRAWN or APART"
    for table in (COMPARED, DRAWN, APART, OWN, USED):
        assert set(table) <= set(CODES), set(table) - set(CODES)
        assert list(table) == sorted(table)


def test_what_is_said_of_namespaces_names_what_there_is() -> None:
    found = 0
    for code in (*NAMES.values(), *COMPLEX.values()):
        for owner, words in re.findall(r"\b(px|nn)\.([A-Za-z0-9_.]*\w)", code.format(ns="px")):
            value: Any = {"nn": nn, "px": px}[owner]
            for word in words.split("."):
                value = getattr(value, word)
            found += 1
    assert found > 50


@pytest.mark.parametrize("name", ["histogram2d", "isnat", "igamma", "exp10", "range"])
def test_a_name_of_others_that_means_something_else_gets_no_guess(name: str) -> None:
    with pytest.raises(px.UnknownNameError, match="no such name") as caught:
        getattr(px, name)
    assert "hint" not in str(caught.value)


def test_a_name_that_changes_a_tensor_is_written_as_a_result() -> None:
    for name, code in (("sqrt_", "x = px.sqrt(x)"), ("clamp_min_", "x = x.maximum(0.5)")):
        with pytest.raises(px.UnknownNameError, match="never change") as caught:
            getattr(px, name)
        assert str(caught.value).endswith(f"hint: {code}")


@pytest.mark.long
def test_no_name_of_another_library_is_taken_for_a_slip_of_the_pen() -> None:
    from tests.names.beside import F, scipy, torch

    px_of = {np.fft: px.fft, np.linalg: px.linalg, torch.fft: px.fft, torch.linalg: px.linalg}
    asked, guessed = 0, {}
    for room in (np, *px_of, torch, F, torch.special, scipy.special):
        owner = px_of.get(room, px)
        lacking = {name for name in dir(room) if name[0] != "_" and not hasattr(owner, name)}
        for name in lacking:
            with pytest.raises(px.UnknownNameError) as caught:
                getattr(owner, name)
            asked += 1
            if "no such name" in str(caught.value) and "hint: " in str(caught.value):
                guessed[name] = str(caught.value)
    assert asked > 1000
    assert guessed == {}


PAIRS = [(name, pair) for name, (_, pairs) in COMPARED.items() for pair in pairs]


@pytest.mark.long
@pytest.mark.parametrize(("name", "pair"), [*PAIRS, *((name, "x y") for name in plain())])
def test_a_hint_gives_what_the_name_gives(name: str, pair: str) -> None:
    from tests.names.beside import difference, function, ours, theirs

    differs, names = pair.startswith("! "), pair.removeprefix("! ").split()
    given = VALUES | OWN.get(name, {}) | {n: GIVEN[v] for n, v in zip("xy", names, strict=False)}
    line, _, remark = CODES[name].partition("  # ")
    if name in COMPARED:
        other = COMPARED[name][0]
        library = "numpy" if re.search(r"\b(np|scipy)\.", other) else "torch"
    else:
        library = "numpy" if function(name, "numpy") else "torch"
        used = sorted(set(re.findall(r"\b[xy]\b", line)))
        other = f"{function(name, library)}({', '.join(used)})"
    found = difference(
        ours(USED.get(name, "{}").format(line), given), theirs(other, given, library)
    )
    assert bool(found) is differs, found
    assert remark or not differs, "a hint that differs says where"


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWN)
def test_a_hint_that_draws_has_the_distribution_of_the_name(name: str) -> None:
    from tests.names.beside import MODULES, ours, stats

    rng = np.random.default_rng(0)
    wanted = eval(DRAWN[name], MODULES | {"n": DRAWS, "rng": rng})
    px.seed(0)
    shape = f"({DRAWS}, 3)" if name in SEVERAL else f"({DRAWS},)"
    code = re.sub(r"\((3,|2, 3|5, 3)\)", shape, CODES[name])
    given: dict[str, Any] = {**DRAWN_VALUES, **OWN.get(name, {})}
    found = np.asarray(ours(code.replace("bernoulli(3)", f"bernoulli({DRAWS})"), given))
    first = found[:, 0] if name in SEVERAL else found
    assert first.shape == (DRAWS,)
    assert stats.ks_2samp(first, wanted).statistic < 0.027, "of a million tries, one may fail"
