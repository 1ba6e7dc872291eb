"""One whole step: the bits of the plain loop, compiled or not, in parts, scaled, averaged."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Mixed, Wgpu, data, nn, optim, train
from tests.train.nets import LOSS, Net, batches, bits, forward, net, rows


def learner(device: px.Backend | None = None, **settings: Any) -> train.Learner[Net]:
    clipping = optim.ClipByGlobalNorm(0.3)
    return train.Learner(
        net(device),
        optim.AdamWConfig(grad_clipping=clipping).init(),
        optim.CosineSchedulerConfig(1e-2, steps=50).init(),
        **settings,
    )


def trained(one: train.Learner[Net], step: Any = None, fn: Any = forward) -> list[Any]:
    """Losses, logits, weights and the place of the schedule after the batches."""
    seen = []
    for batch in batches() * 2:
        placed = px.tree.map(lambda x: px.asarray(x, device=one.device), batch)
        out = (step or one.step)(fn, placed if step else batch)
        seen.append((float(out["loss"]), out["logits"].numpy().tobytes()))
    averaged = bits(one.ema.model) if one.ema else []
    return [seen, bits(one.model), averaged, one.steps, one.optimizer.skipped, one.rate]


def test_steps_have_the_bits_of_the_plain_loop() -> None:
    one = learner()
    model = net()
    optimizer = optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.3)).init()
    schedule = optim.CosineSchedulerConfig(1e-2, steps=50).init()
    model, one.model = model.with_training(False), one.model.with_training(False)
    for batch in batches():
        out = one.step(forward, batch)
        logits = model(px.asarray(batch["x"], device=one.device))
        loss = LOSS(logits, px.asarray(batch["y"], device=one.device))
        model = optimizer.step(schedule.step(), model, loss.backward())
        assert float(out["loss"]) == float(loss)
    assert bits(model) == bits(one.model)
    assert one.steps == 5


@pytest.mark.parametrize("microbatches", [1, 3])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_compiled_steps_have_the_bits_of_those_as_written(
    microbatches: int, scaled: bool, mixed: bool
) -> None:
    def made(**more: Any) -> train.Learner[Net]:
        scaling = optim.LossScalingConfig(scale=2.0**126, interval=3).init() if scaled else None
        device = Autodiff(Mixed(Cpu(), "bfloat16") if mixed else Cpu())
        settings: dict[str, Any] = {"microbatches": microbatches, "scaling": scaling, **more}
        return learner(device, ema=0.9, **settings)

    written = trained(made())
    assert written[3:] == [10, written[4], written[5]]
    assert (written[4] > 0) == scaled  # the first scales are too large
    assert trained(made(compile=True)) == written
    assert trained(made(), fn=px.compile(forward)) == written
    if not scaled:  # which reads from the device at each step
        one = made()
        assert trained(one, px.compile(one.step)) == written


def test_random_numbers_follow_from_seed_and_step() -> None:
    def losses(seed: int, disturb: bool) -> list[float]:
        one, found = learner(seed=seed), []
        for batch in batches():
            if disturb:
                px.random.normal((3,))
            found.append(float(one.step(forward, batch)["loss"]))
        return found

    assert losses(1, False) == losses(1, True) != losses(2, False)


def test_a_step_leaves_the_random_stream_where_it_was() -> None:
    one = learner()
    before = px.random.generator().state()
    one.step(forward, batches()[0])
    assert px.random.generator().state() == before


def test_parts_weigh_as_their_examples() -> None:
    """The mean is one over examples, whatever the sizes of parts are, and empty ones count not."""
    device = Autodiff(Cpu())
    whole = {"x": np.arange(10, dtype=np.float32)[:, None], "y": np.zeros((10, 1), np.float32)}

    def square(model: nn.Module, batch: Any) -> px.Tensor[px.Float]:
        return (model(batch["x"]) - batch["y"]).square().mean()

    px.seed(0)
    layer = nn.Linear(1, 1, device=device)
    found = {}
    for parts in (1, 3, 4, 16):
        one = train.Learner(layer, optim.SgdConfig().init(), 1e-2, microbatches=parts)
        loss = one.step(square, whole)["loss"]
        found[parts] = float(loss), float(one.model.weight.value.item())
    for parts, values in found.items():
        assert values == pytest.approx(found[1], rel=1e-5), parts


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("scaling", [False, True])
def test_a_weight_says_what_the_mean_is_over(compile: bool, scaling: bool) -> None:
    device = Autodiff(Cpu())
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    mask = np.array([1, 0, 0, 0, 0, 1], bool)  # two tokens; of six parts, four have none

    def masked(model: nn.Module, batch: Any) -> dict[str, Any]:
        rows = model(batch["x"])[:, 0].square() * batch["mask"].astype(px.float32)
        count = batch["mask"].sum()
        return {"loss": rows.sum() / count.astype(px.float32), "weight": count}

    px.seed(0)
    layer = nn.Linear(2, 1, device=device)
    found = []
    for parts in (1, 2, 6):
        given: Any = {"scaling": optim.LossScalingConfig().init()} if scaling else {}
        rule = optim.SgdConfig().init()
        one = train.Learner(layer, rule, 1e-3, microbatches=parts, compile=compile, **given)
        out = one.step(masked, {"x": x, "mask": mask})
        assert float(out["weight"]) == 2.0
        found.append([float(out["loss"]), *one.model.weight.value.tolist()[0]])
    for values in found[1:]:
        assert values == pytest.approx(found[0], rel=1e-6)


def test_a_batch_without_examples_has_no_parts() -> None:
    one = learner(microbatches=4)
    empty = px.tree.map(lambda x: x[:0], batches()[0])
    with pytest.raises(px.ArgumentError, match=r"\[step\] an empty batch: got no examples"):
        one.step(forward, empty)


def test_statistics_of_parts_move_by_their_mean() -> None:
    one = learner(microbatches=2)
    batch = batches()[0]
    before = one.model
    halves = [before.norm.running_mean.value.numpy()]
    one.step(forward, batch)
    seen = np.asarray(before.first(px.asarray(batch["x"], device=one.device)).detach().numpy())
    expected = halves[0] * 0.9 + 0.1 * np.mean([seen[:6].mean(0), seen[6:].mean(0)], axis=0)
    np.testing.assert_allclose(one.model.norm.running_mean.value.numpy(), expected, rtol=1e-5)


def test_update_is_a_step_by_a_loss_or_by_gradients() -> None:
    found = []
    for form in ("loss", "gradients", "scaled"):
        scaling = optim.LossScalingConfig(scale=8.0).init() if form == "scaled" else None
        one = learner(scaling=scaling)
        px.seed(0)
        for batch in batches():
            x, y = (px.asarray(batch[name], device=one.device) for name in "xy")
            loss = LOSS(one.model(x), y)
            one.update(loss.backward() if form == "gradients" else loss)
        found.append(bits(one.model))
    assert found[0] == found[1] == found[2]  # a scale of a power of two rounds nothing


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("inner", [Cpu, Wgpu])
def test_a_learner_goes_on_from_its_record(inner: Any, scaled: bool) -> None:
    def settings() -> Any:
        scaling = optim.LossScalingConfig(scale=2.0**126, interval=3).init() if scaled else None
        shared = {"device": Autodiff(inner()), "compile": inner is Wgpu}
        return {"ema": 0.9, "scaling": scaling, "microbatches": 2, **shared}

    one, other = learner(**settings()), learner(**settings())
    for batch in batches():
        one.step(forward, batch)
    recorder = px.record.NamedMsgpackRecorder()
    saved = recorder.from_bytes(recorder.to_bytes(one.into_record()))
    assert other.load_record(saved) is other
    assert other.steps == 5
    assert trained(one) == trained(other)


@pytest.mark.parametrize("compile", [False, True])
def test_a_deep_copy_goes_on_as_the_learner_does(compile: bool) -> None:
    one = learner(ema=0.9, compile=compile)
    trained(one)
    other = copy.deepcopy(one)
    assert other.model.param_list()[0].id != one.model.param_list()[0].id
    for _ in range(2):
        trained(one)
        trained(other)
        assert (bits(other.model), other.steps) == (bits(one.model), one.steps)


def test_a_record_of_another_experiment_is_refused() -> None:
    record = learner(microbatches=2).into_record()
    with pytest.raises(px.RecordError, match=r"microbatches differs(.|\n)*microbatches=2"):
        learner().load_record(record)
    with pytest.raises(px.RecordError, match="not of such a learner"):
        learner(ema=0.99).load_record(learner().into_record())


def test_a_plateau_schedule_is_given_its_measures_by_the_loop() -> None:
    plateau = optim.PlateauSchedulerConfig(1e-2, patience=0, factor=0.5).init()
    one = train.Learner(net(), optim.SgdConfig().init(), plateau)
    for measure in (1.0, 2.0):
        one.step(forward, batches()[0])
        plateau.step(measure)
    assert one.rate == 5e-3


WRONG: Any = optim.SgdConfig
FAST: Any = "fast"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: train.Learner(net(Cpu()), optim.SgdConfig().init(), 0.1),
            "no device that records",
        ),
        (
            lambda: train.Learner(net(), WRONG, 0.1),
            r"optimizer is no optimizer(.|\n)*init\(\)",
        ),
        (lambda: train.Learner(net(), optim.SgdConfig().init(), FAST), "schedule is no schedule"),
        (lambda: train.Learner(net(), optim.SgdConfig().init(), True), "schedule is no schedule"),
        (lambda: learner(microbatches=0), "microbatches: got 0"),
        (lambda: learner(ema=1.0), "decay: got 1.0"),
        (lambda: learner().step(lambda m, b: {}, batches()[0]), "gives no loss"),
        (
            lambda: learner().step(lambda m, b: m(b["x"]), batches()[0]),
            r"a Tensor of shape \(\d+, ",
        ),
        (lambda: learner(microbatches=2).step(forward, {"x": 1.0}), "cannot be counted"),
        (lambda: learner().load_record(3), "not of such a learner"),
    ],
)
def test_wrong_uses_say_what_to_type(make: Any, message: str) -> None:
    with pytest.raises(px.PhloxError, match=message):
        make()


def test_names_of_others_say_what_to_type() -> None:
    with pytest.raises(AttributeError, match=r"scaling=optim\.LossScalingConfig"):
        train.GradScaler  # type: ignore[attr-defined]  # noqa: B018 - that it fails is the test


@pytest.mark.parametrize(
    ("owner", "name", "hint"),
    [
        ("learner", "no_sync", "microbatches=8"),
        ("learner", "zero_grad", "learner.step"),
        ("loader", "set_epoch", "each loop is the next epoch"),
        ("model", "no_sync", "microbatches=8"),
        ("run", "set_epoch", r"run\.batches"),
    ],
)
def test_a_name_of_other_libraries_says_what_to_type(owner: str, name: str, hint: str) -> None:
    model = net(Autodiff(Cpu()))
    learner = train.Learner(model, optim.SgdConfig().init(), 0.1)
    loader = data.DataLoader(data.arrays(**rows(4)), 2)
    run = train.Run(None, learner, loader)
    owners = {"learner": learner, "loader": loader, "model": model, "run": run}
    with pytest.raises(AttributeError, match=rf"otherwise(.|\n)*hint: .*{hint}"):
        getattr(owners[owner], name)
    assert getattr(owners[owner], "_absent", None) is None
