"""Steps of several ranks end in the bits of one process."""

from __future__ import annotations

import threading
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Wgpu, nn, optim, train
from phlox_tensor import ArgumentError, DisagreementError
from tests.distributed.threads import MAKING, together
from tests.train.nets import LOSS, batches, bits, forward, net


def trained(
    group: Any, step: Any = forward, feed: Any = None, inner: Any = Cpu, **settings: Any
) -> Any:
    """Bits of weights, state and average after some steps, and the losses on the way."""
    with MAKING:
        model = net(Autodiff(inner()))
    config = optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.5))
    rate = optim.CosineSchedulerConfig(1e-2, steps=12).init()
    settings = {"microbatches": 8, "ema": 0.9, "seed": 1, **settings}
    learner = train.Learner(model, config.init(), rate, group=group, **settings)
    losses = []
    for batch in feed or batches((24, 24, 19, 24)):
        losses.append(learner.step(step, batch)["loss"].numpy().tobytes())
    assert learner.ema
    return [*bits(learner.model), *bits(learner.ema.model), *losses]


@pytest.mark.parametrize("limit", [40, 1 << 21], ids=["buckets", "one bucket"])
def test_steps_on_batches_of_other_places_are_refused(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(import_module("phlox_train.step.buckets"), "LIMIT", limit)

    def run(group: Any) -> None:
        feed = batches((6, 6, 6))
        del feed[1 + group.rank]  # each leaves out one, so that both have as many
        with pytest.raises(ArgumentError, match=r"step 1, data \w+ on rank 0; step 1, data \w+ on"):
            trained(group, feed=feed, microbatches=2)

    together(2, run)


def test_states_on_ranks_without_a_group_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"shard_optimizer takes processes(.|\n)*init"):
        train.Learner(net(Autodiff(Cpu())), optim.SgdConfig().init(), 0.1, shard_optimizer=True)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.filterwarnings("ignore:.*have no part")
def test_a_rank_without_rows_has_results_of_all_names(parts: int) -> None:
    def step(model: Any, batch: Any) -> Any:
        logits = model(batch["x"])
        loss = LOSS(logits, batch["y"])
        return {"loss": loss, "logits": logits, "weight": loss.detach() * 0 + 1.0}

    def run(group: Any) -> Any:
        with MAKING:
            model = nn.Linear(8, 3, device=Autodiff(Cpu()))
        learner = train.Learner(
            model, optim.SgdConfig().init(), 0.1, microbatches=parts, group=group
        )
        out = learner.step(step, batches((1,))[0])
        return {name: (x.shape, str(x.dtype), x.device) for name, x in out.items()}

    empty, full = sorted(together(2, run), key=lambda each: each["logits"])
    assert empty == full | {"logits": ((0, 3), *full["logits"][1:])}


def tokens(model: nn.Module, batch: Any) -> dict[str, Any]:
    """A mean over something else than examples, which the function counts itself."""
    out = forward(model, batch)
    return {"loss": out["loss"], "weight": (batch["y"] > 0).astype("float32").sum() + 1.0}


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_any_number_of_ranks_ends_in_the_bits_of_one(compile: bool) -> None:
    alone = trained(None, compile=compile)
    for size in (1, 2, 3, 4, 5, 8) if not compile else (3,):
        found = together(size, lambda group: trained(group, compile=compile))
        assert found == [alone] * size, f"{size} ranks"
    assert trained(None, microbatches=4) != alone  # parts are numbers of the experiment


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_a_gpu_ends_in_its_bits_for_any_number_of_ranks(compile: bool) -> None:
    alone = trained(None, inner=Wgpu)
    for size in (2, 3):
        run = partial(trained, inner=Wgpu, compile=compile)
        assert together(size, run) == [alone] * size, f"{size} ranks"


@pytest.mark.parametrize(
    "settings",
    [
        {"step": tokens},
        {"microbatches": 1},
        {"scaling": "init"},
        {"microbatches": 2},
    ],
    ids=["tokens", "one", "scaled", "two"],
)
@pytest.mark.filterwarnings("ignore:.*have no part")
def test_weights_scaling_and_few_parts(settings: dict[str, Any]) -> None:
    def run(group: Any) -> Any:
        own = dict(settings)
        if "scaling" in own:
            own["scaling"] = optim.LossScalingConfig(scale=8.0, interval=2).init()
        return trained(group, **own)

    assert together(3, run) == [run(None)] * 3


def test_ranks_without_a_part_are_told() -> None:
    def run(group: Any) -> None:
        with MAKING:
            model = net(Autodiff(Cpu()))
        train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=2, group=group, seed=0)

    with pytest.warns(UserWarning, match=r"1 of 3 ranks have no part(.|\n)*microbatches=3") as told:
        together(3, run)
    assert told[0].filename == __file__


def test_parts_are_as_many_as_ranks_by_default() -> None:
    found = together(2, lambda group: trained(group, microbatches=None))
    assert found == [trained(None, microbatches=2)] * 2


class Branch(nn.Module):
    """Layers of which a batch uses one, or that none uses, under a norm that is used twice."""

    layers: list[nn.Linear]
    norm: nn.BatchNorm
    unused: nn.Linear

    def forward(self, x: Any, which: int) -> Any:
        return self.norm(self.norm(self.layers[which](x))).square().mean()


def test_weights_that_some_ranks_or_all_do_not_use() -> None:
    def step(model: Any, batch: Any) -> Any:
        return model(batch["x"], int(batch["which"].numpy()[0]))

    def run(group: Any) -> Any:
        with MAKING:
            px.seed(1)
            device = Autodiff(Cpu())
            layers = [nn.Linear(3, 4, device=device) for _ in range(2)]
            norm, unused = nn.BatchNorm(4, device=device), nn.Linear(2, 2, device=device)
        learner = train.Learner(
            Branch(layers, norm, unused),
            optim.AdamWConfig().init(),
            0.1,
            microbatches=4,
            group=group,
        )
        before = learner.model.unused.weight.value.tolist()
        for _ in range(3):
            x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
            learner.step(step, {"x": x, "which": np.array([0, 0, 0, 0, 0, 0, 1, 1])})
        assert learner.model.unused.weight.value.tolist() == before  # AdamW would decay it
        return bits(learner.model)

    for size in (2, 4):
        assert together(size, run) == [run(None)] * size


def test_parts_without_examples() -> None:
    def run(group: Any) -> Any:
        with MAKING:
            px.seed(1)
            model = nn.Linear(8, 3, device=Autodiff(Cpu()))
        learner = train.Learner(model, optim.AdamWConfig().init(), 0.1, microbatches=8, group=group)
        losses = [
            learner.step(forward, batch)["loss"].numpy().tobytes() for batch in batches((5, 1))
        ]
        return [*bits(learner.model), *losses]

    for size in (3, 8):
        assert together(size, run) == [run(None)] * size


def test_the_model_and_seed_of_rank_0_are_those_of_all() -> None:
    def run(group: Any) -> Any:
        with MAKING:
            px.seed(group.rank)
            model = nn.Linear(2, 1, device=Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, group=group, seed=group.rank)
        return [param.id for param in learner.model.param_list()], bits(learner.model), learner.seed

    one, *others = together(3, run)
    assert others == [one, one]


def test_own_losses_step_by_their_mean() -> None:
    def run(group: Any) -> Any:
        with MAKING:
            px.seed(0)
            model = nn.Linear(1, 1, bias=False, device=Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 1.0, group=group)
        before = learner.model.weight.value.item()
        learner.update((learner.model.weight.value * float(group.rank)).sum())
        return round(before - learner.model.weight.value.item(), 6)

    assert together(3, run) == [1.0] * 3


def test_a_rank_with_other_bits_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("phlox_train.step.learner"), "CHECKED", 2)

    def run(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=3, group=group)
        for number, batch in enumerate(batches()):
            if number == 1 and group.rank == 2:
                weight = learner.model.last.weight
                broken = weight.with_value(weight.value.detach() + 1e-6)
                learner.model = learner.model.with_params({weight.id: broken})
            try:
                learner.step(forward, batch)
            except DisagreementError as error:
                return number, error.what
        return None

    what = "the parameters of rank 2 have other bits than those of the others"
    assert together(3, run) == [(1, what)] * 3


class WithEmpty(nn.Module):
    """A layer, and one of no inputs: its weight has no elements."""

    first: nn.Linear
    empty: nn.Linear

    def forward(self, x: Any) -> Any:
        return (self.first(x) + self.empty(x[:, :0])).square().mean()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("settings", [{}, {"compile": True}, {"shard_optimizer": True}], ids=str)
def test_bits_of_bfloat16_and_of_no_elements_are_compared(
    monkeypatch: pytest.MonkeyPatch, dtype: str, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr(import_module("phlox_train.step.learner"), "CHECKED", 1)
    batch = {"x": px.ones((4, 3), dtype=dtype).numpy()}

    def run(group: Any, **settings: Any) -> Any:
        with MAKING:
            px.seed(1)
            device = Autodiff(Cpu(float=dtype))
            layers = (nn.Linear(size, 2, device=device) for size in (3, 0))
            model = WithEmpty(*layers)
        learner = train.Learner(
            model, optim.AdamWConfig().init(), 0.1, microbatches=2, group=group, **settings
        )
        for _ in range(2):
            learner.step(lambda model, batch: model(batch["x"]), batch)
        return bits(learner.model)

    assert together(2, partial(run, **settings)) == [run(None)] * 2


def test_a_batch_that_is_not_the_share_of_a_rank_is_refused() -> None:
    def run(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=4, group=group)
        learner.rows = 24  # so a share has 12 of them
        with pytest.raises(ArgumentError, match="got 24 examples, expected 12 of 24"):
            learner.step(forward, batches((24,))[0])

    together(2, run)


def test_long_gradients_travel_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = trained(None)
    monkeypatch.setattr(import_module("phlox_train.step.buckets"), "LIMIT", 40)
    sent: list[int] = []

    def run(group: Any) -> Any:
        found = trained(group)
        sent.append(sum(name == "all_to_all" for name, _ in group.calls))
        return found

    assert together(3, run) == [alone] * 3
    assert sent == [4 * 5] * 3  # in each step 3, 48, 16 and 16, 16, and 128 numbers


def test_gradients_leave_while_the_backward_pass_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("phlox_train.step.buckets"), "LIMIT", 40)
    waited: list[bool] = []

    def run(group: Any) -> None:
        left = threading.Event()
        exchange = group.all_to_all

        def all_to_all(*args: Any) -> None:
            left.set()
            exchange(*args)

        group.all_to_all = all_to_all

        def step(model: Any, batch: Any) -> Any:
            hidden = model.norm(model.first(batch["x"]))  # back here, the last layer is done with
            hidden = px.register_hook(hidden, lambda _: waited.append(left.wait(20)))
            return model.last(model.dropout(hidden)).square().mean()

        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, group=group, seed=0)
        learner.step(step, batches((12,))[0])

    together(2, run)
    assert waited == [True, True]


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_what_small_values_look_like_is_told_once(
    monkeypatch: pytest.MonkeyPatch, compile: bool
) -> None:
    small = import_module("phlox_train.step.small")
    objects = small.all_gather_object
    told: list[int] = []

    def all_gather_object(group: Any, value: Any) -> Any:
        told.append(group.rank)
        return objects(group, value)

    monkeypatch.setattr(small, "all_gather_object", all_gather_object)
    alone = trained(None, compile=compile)
    assert together(3, partial(trained, compile=compile)) == [alone] * 3  # one batch is short
    assert sorted(told) == [0, 1, 2]


def test_ranks_that_know_other_forms_tell_again() -> None:
    def run(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner: Any = train.Learner(
            model, optim.SgdConfig().init(), 0.1, microbatches=4, group=group, seed=0
        )
        for number, batch in enumerate(batches((12, 12, 12))):
            if number == 1 and group.rank == 1:  # as after an error within an exchange
                learner.parallel._exchange.forms._known.clear()
            learner.step(forward, batch)
        return bits(learner.model)

    def alone() -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, microbatches=4, seed=0)
        for batch in batches((12, 12, 12)):
            learner.step(forward, batch)
        return bits(learner.model)

    assert together(2, run) == [alone()] * 2


def test_counts_of_a_step_that_change_are_numbers_on_their_way() -> None:
    def step(model: Any, batch: Any) -> Any:
        out = forward(model, batch)
        return {"loss": out["loss"], "weight": int(batch["x"].numpy()[0, 0] * 1e6) % 7 + 1}

    run = partial(trained, step=step)
    assert together(3, run) == [run(None)] * 3


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_counts_of_numpy_are_numbers(compile: bool) -> None:
    def step(model: Any, batch: Any, kind: Any = np.float32) -> Any:
        out = forward(model, batch)
        return {"loss": out["loss"], "weight": kind(len(batch["x"]) * 3)}

    run = partial(trained, step=step, compile=compile)
    assert together(2, run) == [run(None)] * 2
    assert run(None, step=partial(step, kind=float)) == run(None)
