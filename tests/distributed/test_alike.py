"""Ranks that are given other things than the others are told, before anything is computed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import phlox as px
from phlox import Autodiff, Cpu, Wgpu, nn, optim, train
from phlox_tensor import ArgumentError
from tests.distributed.test_steps import trained
from tests.distributed.threads import MAKING, together
from tests.train.nets import batches, forward, net

SGD = (optim.SgdConfig().init(), 0.1)


def test_ranks_that_are_given_other_things_are_told() -> None:
    def shares(group: Any) -> Any:  # as of a loop that gives each rank its own rows
        return trained(group, feed=[batches((24, 24))[group.rank]])

    with pytest.warns(
        UserWarning, match=r"given other batches(.|\n)*hint: for batch in run"
    ) as told:
        together(2, shares)
    assert told[0].filename == trained.__code__.co_filename

    def other_parts(group: Any) -> None:
        with pytest.raises(ArgumentError, match="microbatches: got 8 on rank 0, 9 on rank 1"):
            trained(group, microbatches=8 + group.rank)

    together(2, other_parts)

    def other_clipping(group: Any) -> None:
        clipping = optim.ClipByValue(0.5) if group.rank else None
        own = optim.SgdConfig(grad_clipping=clipping).init()
        got = r"optimizer: got grad_clipping=None on rank 0, grad_clipping=ClipByValue.* on rank 1"
        with MAKING:
            model = net(Autodiff(Cpu()))
        with pytest.raises(ArgumentError, match=got):
            train.Learner(model, own, 0.1, group=group)

    together(2, other_clipping)

    def other_settings(group: Any, **settings: Any) -> None:
        with MAKING:
            model = net(Autodiff(Cpu()))
        own = {"optimizer": optim.SgdConfig().init(), "schedule": 0.1, "compile": False, **settings}
        train.Learner(model, microbatches=2, group=group, **own)

    sgd, clipped = optim.SgdConfig(), optim.SgdConfig(grad_clipping=optim.ClipByValue(0.5))
    device = Autodiff(px.Distributed(Cpu(), px.distributed.Solo()))
    with pytest.raises(ArgumentError, match=r"two groups(.|\n)*hint: Learner\(\.\.\.\)"):
        train.Learner(net(device), *SGD, group=px.distributed.Solo())

    for name, both in (
        ("schedule", (0.1, 0.2)),
        ("optimizer", (sgd.init(), clipped.init())),
        ("compile", (False, True)),
        ("ema", (None, 0.9)),
    ):
        with pytest.raises(ArgumentError, match=rf"{name}: got .* on rank 0, .* on rank 1"):
            together(2, lambda g: other_settings(g, **{name: both[g.rank]}))  # noqa: B023 - at once


def test_a_model_that_differs_is_named() -> None:
    def run(group: Any) -> None:
        with MAKING:
            model = nn.Linear(4, 2 + group.rank, device=Autodiff(Cpu()))
        got = r"weight: got trained float32 .*2.* on rank 0, trained float32 .*3.* on rank 1"
        with pytest.raises(ArgumentError, match=got):
            train.Learner(model, optim.SgdConfig().init(), 0.1, group=group)

    together(2, run)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda model: model.replace(first=model.first.freeze()),
            r"the model's first.weight: got trained .* on rank 0, frozen .* on rank 1",
        ),
        (
            lambda model: model.replace(dropout=nn.Dropout(0.1)),
            r"line \d+ of print\(model\): got dropout: Dropout\(prob=0.5\) on rank 0, .*0.1\) on",
        ),
    ],
    ids=["frozen", "dropout"],
)
def test_models_whose_settings_differ_are_refused(change: Any, text: str) -> None:
    def run(group: Any) -> None:
        with MAKING:
            model = net(Autodiff(Cpu()))
        with pytest.raises(ArgumentError, match=text):
            train.Learner(change(model) if group.rank else model, *SGD, group=group)

    together(2, run)


def test_a_model_that_is_frozen_later_is_refused_on_one_rank_and_steps_on_all() -> None:
    def run(group: Any, everywhere: bool) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, *SGD, microbatches=2, group=group)
        feed = iter(batches((4, 4)))
        learner.step(forward, next(feed))
        if everywhere or group.rank:
            learner.model = learner.model.replace(first=learner.model.first.freeze())
        return learner.step(forward, next(feed))["loss"].item()

    one, other = together(2, lambda group: run(group, True))
    assert one == other
    with pytest.raises(ArgumentError, match=r"on rank 0; step 1, .*other parameters \w+ on rank 1"):
        together(2, lambda group: run(group, False))


def test_other_instructions_are_refused_and_other_numbers_of_devices_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = import_module("phlox_train.step.facts")
    kind = facts.kind_of(Cpu())
    assert kind.keys() == {"kind of device", "PHLOX_SIMD"}
    assert facts.kind_of(Wgpu(0)) == facts.kind_of(Wgpu(1)) == {"kind of device": "wgpu"}
    found = ["avx2", "avx512"]
    monkeypatch.setattr(facts, "kind_of", lambda _: kind | {"PHLOX_SIMD": found.pop()})

    def run(group: Any) -> None:
        with MAKING:
            model = net(Autodiff(Cpu()))
        with pytest.raises(ArgumentError, match=r"PHLOX_SIMD: got avx.* on rank 0, avx.* on rank"):
            train.Learner(model, *SGD, group=group)

    together(2, run)


class Marked(nn.Module):
    """A layer, and what is another one in each process."""

    layer: nn.Linear
    mark: Any


def test_devices_of_ranks_have_their_own_numbers_and_sets_their_own_order() -> None:
    facts = import_module("phlox_train.step.facts")
    layer = nn.Linear(2, 1, device=Autodiff(Cpu()))
    # Of small numbers the order is that of insertion where their places meet.
    for both in ([{8, 0}, {0, 8}], [Autodiff(Wgpu(0)), Autodiff(Wgpu(1))]):
        ranks = [Marked(layer, mark) for mark in both]
        assert repr(ranks[0]) != repr(ranks[1])
        devices = [Wgpu(0), Wgpu(1)]
        one, two = map(facts.facts_of, ranks, devices, [[None] * 7] * 2)
        assert one == two
