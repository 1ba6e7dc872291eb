"""Collectives as ops, their derivatives and lanes; parts of a step that meet in them."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Distributed, Wgpu, nn, optim, train
from phlox_tensor import ArgumentError, DeviceError, ShapeError, WrongTypeError
from phlox_tensor.groups import Solo
from tests.distributed.threads import MAKING, together
from tests.train.nets import LOSS, batches, bits

SIZE = 3


def data(rank: int, *shape: int) -> Any:
    return np.random.default_rng(rank).normal(size=shape).astype(np.float32)


ROWS = [data(rank, SIZE * 2, 2) for rank in range(SIZE)]
WHOLE = np.sum(ROWS, axis=0)
EXPECTED: dict[str, Any] = {
    "all_reduce": lambda rank: WHOLE,
    "all_gather": lambda rank: np.concatenate(ROWS, axis=1),
    "reduce_scatter": lambda rank: WHOLE[2 * rank : 2 * rank + 2],
    "broadcast": lambda rank: ROWS[1],
}
CALLS: dict[str, Any] = {
    "all_reduce": px.all_reduce,
    "all_gather": lambda x: px.all_gather(x, axis=1),
    "reduce_scatter": px.reduce_scatter,
    "broadcast": lambda x: px.broadcast(x, 1),
}


@pytest.mark.parametrize("device", [Cpu, Wgpu], ids=["cpu", "wgpu"])
def test_collectives_of_ranks(device: Any) -> None:
    def run(group: Any) -> Any:
        x = px.asarray(ROWS[group.rank], device=Distributed(device(), group))
        return {name: call(x).numpy() for name, call in CALLS.items()}

    for rank, found in enumerate(together(SIZE, run)):
        for name, array in found.items():
            assert np.allclose(array, EXPECTED[name](rank), atol=1e-6), name


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("way", ["eager", "compiled", "lanes"])
def test_derivatives_are_those_of_the_sum_over_ranks(name: str, way: str) -> None:
    call = CALLS[name]

    def loss(weights: Any, x: Any, run: Any = call) -> Any:
        return (run(x * x) * weights).sum()

    def run(group: Any) -> Any:
        device = Autodiff(Distributed(Cpu(), group))
        shape = EXPECTED[name](0).shape
        weights = px.asarray(data(10 + group.rank, *shape), device=device)
        x = px.asarray(ROWS[group.rank], device=device)
        slope: Any = px.grad(loss, 1)
        if way == "lanes":
            found = px.vmap(slope, (None, 0))(weights, px.stack([x, x * 2.0]))
            return found[1].numpy() / 2.0
        if way == "compiled":
            slope = px.compile(slope)
            for _ in range(3):
                slope(weights, x)
        return slope(weights, x).numpy()

    found = together(SIZE, run)
    xs = [px.asarray(row, dtype="float64", device="numpy") for row in ROWS]

    def whole(*xs: Any) -> Any:  # of all ranks in one process
        squares = [x * x for x in xs]
        total = squares[0] + squares[1] + squares[2]
        each: Any = {
            "all_reduce": lambda rank: total,
            "all_gather": lambda rank: px.concat(squares, axis=1),
            "reduce_scatter": lambda rank: total[2 * rank : 2 * rank + 2],
            "broadcast": lambda rank: squares[1],
        }[name]
        losses = [
            (each(rank) * px.asarray(data(10 + rank, *EXPECTED[name](0).shape), dtype="float64",
                                     device="numpy")).sum()
            for rank in range(SIZE)
        ]  # fmt: skip
        return losses[0] + losses[1] + losses[2]

    expected = px.grad(whole, (0, 1, 2))(*xs)
    for mine, right in zip(found, expected, strict=True):
        assert np.allclose(mine, right.numpy(), atol=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"hint: Autodiff\(Distributed\(Cpu"):
        Distributed(Autodiff(Cpu()), Solo())
    for group in (None, 2, Cpu()):
        with pytest.raises(WrongTypeError, match=r"no group(.|\n)*distributed.init"):
            Distributed(Cpu(), group)  # type: ignore[arg-type]
    x = px.ones((2, 3), device=Distributed(Cpu(), Solo()))
    with pytest.raises(ArgumentError, match=r"no such process: got 1, expected 0 <= root < 1"):
        px.broadcast(x, 1)
    with pytest.raises(ArgumentError, match=r"hint: leave ranks out"):
        px.all_gather(x, ranks=2)

    def run(group: Any) -> None:
        with pytest.raises(ShapeError, match=r"expected a multiple of 2 along axis 1"):
            px.reduce_scatter(px.ones((2, 3), device=Distributed(Cpu(), group)), axis=1)

    together(2, run)


def test_what_no_group_sums_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1.5, np.float64(1.5)):
        with pytest.raises(ArgumentError, match=r"not a tensor: got 1.5(.|\n)*px.Distributed\("):
            px.all_reduce(number)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"0-d(.|\n)*hint: x.reshape\(1\)"):
        px.all_gather(px.asarray(1.0))
    wrong: Any = {"op": "mean"}
    with pytest.raises(ArgumentError, match=r"px.all_reduce\(x\) / group.size"):
        px.all_reduce(px.ones(2), **wrong)
    monkeypatch.setattr("phlox_tensor._groups.group._JOINED", [2])  # as distributed.init() says
    with pytest.warns(
        UserWarning, match=r"nothing comes of the 2 processes(.|\n)*hint: px"
    ) as told:
        px.all_reduce(px.ones(2))
    assert told[0].filename == __file__
    px.all_reduce(px.ones(2))  # once


@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_other_calls_are_named_without_words_of_batches(kind: str) -> None:
    def run(group: Any) -> None:
        x = px.ones(2 + (kind == "float32") * group.rank, dtype=["float32", kind][group.rank],
                    device=Distributed(Cpu(), group))  # fmt: skip
        with pytest.raises(ArgumentError, match="different calls") as found:
            px.all_reduce(x)
        assert found.value.hint is None

    together(2, run)


class Net(nn.Module):
    first: nn.Linear
    norm: nn.BatchNorm
    dropout: nn.Dropout
    last: nn.Linear

    def forward(self, x: Any) -> Any:
        return self.last(self.dropout(self.norm(self.first(x)).relu()))


def forward(model: Any, batch: Any) -> Any:
    return {"loss": LOSS(model(batch["x"]), batch["y"])}


def synchronized(device: Any, rate: float = 0.5, sync: bool = True) -> Net:
    px.seed(3)
    norm = nn.BatchNormConfig(16, synchronized=sync).init(device)
    first, last = nn.Linear(8, 16, device=device), nn.Linear(16, 3, device=device)
    return Net(first, norm, nn.Dropout(rate, device=device), last)


def trained(group: Any, compile: bool = False, step: Any = forward, inner: Any = None) -> Any:
    with MAKING:
        model = synchronized(Autodiff(Distributed(Cpu() if inner is None else inner, group)))
    config = optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.5))
    learner = train.Learner(
        model, config.init(), 1e-2, microbatches=8, ema=0.9, seed=5, compile=compile, group=group
    )
    found = [learner.step(step, b)["loss"].numpy().tobytes() for b in batches((24, 19, 24, 3))]
    assert learner.ema
    return [*bits(learner.model), *bits(learner.ema.model), *found]


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_synchronized_batch_norm_does_not_depend_on_processes(compile: bool) -> None:
    alone = trained(Solo())
    for size in (2, 3) if compile else (1, 2, 3, 5, 8):
        assert together(size, lambda group: trained(group, compile)) == [alone] * size, size


def test_synchronized_batch_norm_is_that_of_the_whole_batch() -> None:
    batch = batches((24,))[0]

    def run(group: Any, parts: int, sync: bool) -> Any:
        with MAKING:
            device = Autodiff(Distributed(Cpu(), group)) if sync else Autodiff(Cpu())
            model = synchronized(device, 0.0, sync)
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=parts, seed=0)
        for _ in range(3):
            learner.step(forward, batch)
        return [param.value.numpy() for param in learner.model.param_list()]

    plain = run(None, 1, False)
    for found in together(2, lambda group: run(group, 6, True)):
        for mine, right in zip(found, plain, strict=True):
            assert np.allclose(mine, right, atol=1e-5)


@pytest.mark.parametrize("call", [px.all_reduce, px.all_gather, px.broadcast])
@pytest.mark.parametrize("size", [1, 2])
def test_parts_of_other_shapes_are_refused(call: Any, size: int) -> None:
    def run(group: Any) -> None:
        with MAKING:
            model = synchronized(Autodiff(Distributed(Cpu(), group)))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=2)
        uneven = {"x": np.ones((5, 8), np.float32), "y": np.zeros(5)}
        got = r"float32 \(2,\).* on 0; .*float32 \(3,\).* on 1, expected one call, one shape"
        with pytest.raises(ArgumentError, match=rf"{got}(.|\n)*multiple of microbatches"):
            learner.step(lambda model, batch: call(model.first(batch["x"])[:, 0]).sum(), uneven)

    together(size, run)


def test_parts_that_do_not_meet_are_refused() -> None:
    def step(model: Any, batch: Any) -> Any:
        loss = model.first(batch["x"]).square().mean()
        if batch["y"].numpy()[0] == 0:
            loss = px.all_reduce(loss)
        return loss

    device = Autodiff(Distributed(Cpu(), Solo()))
    learner = train.Learner(synchronized(device), optim.SgdConfig().init(), 0.1, microbatches=2)
    batch = {"x": np.ones((2, 8), np.float32), "y": np.array([0, 1])}
    with pytest.raises(ArgumentError, match="do not meet in the same calls: got 1 of 2 parts"):
        learner.step(step, batch)
    other = train.Learner(synchronized(device), optim.SgdConfig().init(), 0.1, microbatches=2)

    def fails(model: Any, batch: Any) -> Any:
        loss = px.all_reduce(model.first(batch["x"]).square().mean())
        if batch["y"].numpy()[0]:
            raise ValueError("of one part")
        return loss

    with pytest.raises(ValueError, match="of one part"):  # and the other is not left waiting
        other.step(fails, batch)
    assert threading.active_count() < 20
    ends = []

    def meets_at_its_end(model: Any, batch: Any) -> Any:
        try:
            return fails(model, batch)
        finally:  # of a part that is left where it waits
            ends.append(px.all_reduce(px.ones(2, device=device)) if batch["y"][0] == 0 else None)

    last = train.Learner(synchronized(device), optim.SgdConfig().init(), 0.1, microbatches=2)
    with pytest.raises(ValueError, match="of one part"):
        last.step(meets_at_its_end, batch)
    assert ends == [None]
    group: Any = Solo()
    with pytest.raises(ArgumentError, match="two groups"):
        train.Learner(synchronized(device), optim.SgdConfig().init(), 0.1, group=group)


@pytest.mark.filterwarnings("ignore:.*have no part")
@pytest.mark.parametrize("meets", [False, True])
@pytest.mark.parametrize("failing", [(1,), (1, 2)])  # rank 0 has no part
def test_a_failed_part_leaves_no_process_waiting(meets: bool, failing: tuple[int, ...]) -> None:
    def run(group: Any) -> None:
        def step(model: Any, batch: Any) -> Any:
            loss = model.first(batch["x"]).square().mean()
            loss = px.all_reduce(loss) if meets else loss
            if group.rank in failing:
                raise ValueError("of one part")
            return px.all_reduce(loss)

        with MAKING:
            model = synchronized(Autodiff(Distributed(Cpu(), group)))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=2)
        batch = {"x": np.ones((2, 8), np.float32), "y": np.zeros(2)}
        with pytest.raises(ValueError, match="of one part") as error:
            learner.step(step, batch)
        told = r"a part failed in process 1: got ValueError: of one part, expected no error"
        assert (group.rank in failing) or re.search(told, str(error.value))

    together(3, run)
