"""The tables of layers and optimizers: complete, and what they say of PyTorch is so."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

import pytest

import phlox_nn as nn
import phlox_optim as optim
from phlox._cli import main
from phlox._elsewhere import DIFFERENCES, LAYERS, OPTIMIZERS
from phlox._learning import (
    as_page,
    config_of,
    default_of,
    layers,
    optimizers,
)
from phlox_nn.settings.elsewhere import NO_SETTINGS
from phlox_nn.settings.elsewhere import SETTINGS as LAYER_SETTINGS
from phlox_optim import SimpleOptimizer
from phlox_optim._elsewhere import SETTINGS as OPTIMIZER_SETTINGS
from tools.generate.elsewhere_schedules import DIFFERENCES as SCHEDULE_DIFFERENCES
from tools.generate.elsewhere_schedules import NO_SCHEDULES, SCHEDULES
from tools.generate.learning import WEIGHTS, page, place, schedules, weights

NAMES = {**LAYERS, **OPTIMIZERS}


def test_every_layer_and_optimizer_has_a_row() -> None:
    assert [record["name"] for record in layers()] == sorted(LAYERS)
    rules = {
        n for n, v in vars(optim).items() if inspect.isclass(v) and issubclass(v, SimpleOptimizer)
    }
    assert rules - {"ConfiguredRule", "SimpleOptimizer"} | {"Lbfgs"} == set(OPTIMIZERS)
    assert list(DIFFERENCES) == sorted(DIFFERENCES, key=lambda row: row.name)
    rest = [row.name for row in SCHEDULE_DIFFERENCES if row.name in SCHEDULES]
    assert rest == sorted(rest)


def test_every_schedule_has_a_row() -> None:
    ends = "SchedulerConfig"
    made = {n.removesuffix("Config") for n in vars(optim) if n.endswith(ends) and n != ends}
    assert {record["name"] for record in schedules()} == made
    assert "| CosineScheduler: after the last step | stays at min_lr | rises again" in page()
    assert {name for name in WEIGHTS if hasattr(nn, name)} == {r["name"] for r in weights()}


def test_what_is_said_of_schedules_of_pytorch_is_so() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    there = torch.optim.lr_scheduler

    def rates(name: str, count: int, *args: Any, **settings: Any) -> list[float]:
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        schedule, found = getattr(there, name)(optimizer, *args, **settings), []
        for _ in range(count):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return found

    assert rates("CosineAnnealingLR", 9, 4)[-1] == pytest.approx(1.0)
    assert rates("PolynomialLR", 7)[-2:] == pytest.approx([0.0, 0.0])
    assert rates("LinearLR", 1) == pytest.approx([1 / 3])
    with pytest.raises(ValueError, match="Tried to step"):
        rates("OneCycleLR", 6, 1.0, total_steps=4)
    base = there.LRScheduler
    classes = {n for n, v in vars(there).items() if inspect.isclass(v) and issubclass(v, base)}
    named = {
        n for row in SCHEDULES.values() for n in row[0].replace(" inside of ", ", ").split(", ")
    }
    assert classes - {base.__name__, "_LRScheduler"} <= {*named, *NO_SCHEDULES}


def test_every_row_names_a_test_that_is_there() -> None:
    for package, records in (
        ("nn", layers()),
        ("optim", [*optimizers(), *schedules()]),
        ("weights", weights()),
    ):
        for record in records:
            assert ".py:" in place(package, record["name"]), record["name"]


def test_the_commands_print_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layers"]) == 0
    text = capsys.readouterr().out
    assert "AdaptiveAvgPool2d        output_size  " in text
    assert max(map(len, text.splitlines())) < 160  # as wide as a screen
    assert main(["optimizers", "--json"]) == 0
    found = {record["name"]: record for record in json.loads(capsys.readouterr().out)}
    assert found["Sgd"]["pytorch"] == "SGD"
    assert (found["Lion"]["burn"], found["Adafactor"]["burn"]) == ("Lion", "Adafactor")
    assert found["AdamW"]["settings"].startswith("beta_1=0.9, beta_2=0.999, epsilon=1e-08")


def test_the_commands_tell_all_about_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layers", "lstm"]) == 0
    text = capsys.readouterr().out
    assert "bidirectional=False: whether each layer runs backward too" in text
    assert "proj_size: nn.Linear after it; PyTorch: goes back, too" in text
    assert main(["optimizers", "LBFGS"]) == 0
    assert capsys.readouterr().out.startswith("Lbfgs\nPyTorch: LBFGS\n")
    assert main(["layers", "Conv2d", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert "kernel_size, stride=1, padding='valid', dilation=1, groups=1" in found["settings"]
    for command, said in (
        (
            "layers Dense",
            "[layers] no such layer: got Dense, expected Linear\nhint: phlox layers Linear\n",
        ),
        (
            "layers Lineer",
            "[layers] no such layer: got Lineer, expected Linear, Bilinear\n"
            "hint: phlox layers Linear\n",
        ),
        ("layers Nosuch", "[layers] no such layer: got Nosuch\nhint: phlox layers\n"),
        (
            "layers conv",
            "got conv, expected Conv1d, Conv2d, Conv3d, DeformConv2d, ConvTranspose1d, ",
        ),
        ("optimizers adamx", "got adamx, expected Adam, AdamW\nhint: phlox optimizers Adam\n"),
    ):
        assert main(command.split()) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("record", [*layers(), *optimizers()], ids=lambda record: record["name"])
def test_every_setting_is_explained(record: dict[str, str]) -> None:
    text = as_page(record)
    assert "see the docs" not in text
    assert text.startswith(record["name"])


def test_a_difference_is_of_a_setting_or_says_what_holds_here() -> None:
    assert "| AdamW: weight_decay | 0.01 | as here | 1e-4 | as PyTorch |" in page()
    for row in (*DIFFERENCES, *SCHEDULE_DIFFERENCES):
        known = row.name in {*NAMES, *SCHEDULES}
        assert known or row.name in {*WEIGHTS, "every schedule"}, row
        settings = [field.name for field in fields(config_of(row.name))] if known else []
        assert (row.what in settings) == (row.ours == ""), row
        assert (row.pytorch == "as here") == (row.why == "as PyTorch"), f"why is {row} so?"


def test_hints_for_names_of_pytorch_say_what_the_tables_say() -> None:
    """The hints stand in the packages, which stand alone; the tables say the same pairs."""
    tables: list[tuple[Any, str, Mapping[str, str], Mapping[str, tuple[str, str]]]] = [
        (nn, r"nn\.(\w+)\([^#]*$", vars(nn)["_NAMES"], LAYERS),
        (optim, r"optim\.(\w+)Config\(", vars(optim)["_NAMES"], OPTIMIZERS),
    ]
    for module, pattern, hints, table in tables:
        theirs = {ours: row[0].replace("=", ours).split(", ") for ours, row in table.items()}
        pairs = [(name, re.match(pattern, code)) for name, code in hints.items()]
        hinted = [(name, found[1]) for name, found in pairs if found and found[1] in table]
        wrong = [f"{n} -> {ours}" for n, ours in hinted if not {n, "…"} & {*theirs[ours]}]
        assert not wrong, f"no such pairs in the table: {wrong}"
        capitals = {name.lower() for name in dir(module)}
        named = {each for row in theirs.values() for each in row if each not in ("", "…")}
        lost = sorted(n for n in named if n not in hints and n.lower() not in capitals)
        assert not lost, f"PyTorch's names without a hint: {lost}"
        assert len(hinted) >= 3


def twins() -> Iterator[tuple[str, Any]]:
    """Ours, and each class of PyTorch that is said to be its like."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    for name, (pytorch, _) in NAMES.items():
        for other in (name if pytorch == "=" else pytorch).split(", "):
            if other and other != "…":
                yield name, getattr(torch.nn if name in LAYERS else torch.optim, other)


def test_every_class_of_pytorch_has_a_layer_or_a_hint() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    classes = [
        name
        for name, value in vars(torch.nn).items()
        if inspect.isclass(value) and issubclass(value, torch.nn.Module)
    ]
    assert len(classes) > 150
    capitals = {name.lower() for name in dir(nn) if name[0].isupper()}
    known = {*vars(nn)["_NAMES"]}
    missing = [n for n in classes if n.lower() not in capitals and n not in known]
    assert not missing, f"without a row in packages/nn/src/phlox_nn/_elsewhere.py: {missing}"


def test_every_setting_of_pytorch_is_ours_or_has_a_hint() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    asked, silent = set(), set()
    for name, other in twins():
        if name not in LAYERS:
            continue
        recurrent = issubclass(other, torch.nn.RNNBase)
        theirs = inspect.signature(torch.nn.RNNBase if recurrent else other).parameters
        known = [field.name for field in fields(config_of(name))]
        for word in {*theirs} - {*known, "args", "device", "kwargs", "mode"}:
            asked.add((name, word))
            ours = set(LAYER_SETTINGS.get(word, ())) & set(known)
            if not ours and word not in NO_SETTINGS:
                silent.add((name, word))
    assert {("Embedding", "max_norm"), ("Lstm", "proj_size"), ("Linear", "in_features")} <= asked
    assert not silent, f"without a row in packages/nn/src/phlox_nn/_elsewhere.py: {sorted(silent)}"


def _plain(value: Any) -> Any:
    """A default, by what it means."""
    value = 0 if value == "valid" else value
    value = False if value == () else value
    value = False if value is None else value  # left out
    return value.__name__ if inspect.isfunction(value) else value


def test_defaults_are_those_of_pytorch_where_no_difference_is_told() -> None:
    told = {(row.name, row.what) for row in DIFFERENCES if row.pytorch != "as here"}
    compared, different = set(), set()
    for name, other in twins():
        theirs = inspect.signature(other).parameters
        settings = LAYER_SETTINGS if name in LAYERS else OPTIMIZER_SETTINGS
        for field in fields(config_of(name)):
            words = [word for word, ours in settings.items() if field.name in ours]
            word = next((n for n in (field.name, *words) if n in theirs), None)
            ours = default_of(field)
            if word is None or ours is MISSING or theirs[word].default is inspect.Parameter.empty:
                continue
            there = theirs[word].default
            parts = settings.get(word, ())
            if isinstance(there, tuple) and len(parts) > len(there) > 1:  # as betas
                there = there[parts.index(field.name)]
            compared.add((name, field.name))
            if _plain(ours) != _plain(there):
                different.add((name, field.name))
    assert len(compared) > 100
    assert {("Adam", "beta_2"), ("AdamW", "epsilon"), ("Lbfgs", "history")} <= compared
    assert different <= told, sorted(different - told)
