"""Training by one call, evaluation, predictions, trials of rates, beside loops of one's own."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Mixed, data, nn, optim, train
from phlox_train.metrics.metric import Better, State
from tests.train.loops import stop_at
from tests.train.nets import LOSS, batches, bits, forward, net, rows
from tests.train.test_kills import rows_of


class Right:
    """The share of right answers, as a sum over examples and their count."""

    name = "right"
    takes = ("logits", "targets")
    better: Better = "higher"

    def part(self, logits: px.Tensor[Any], targets: px.Tensor[Any]) -> dict[str, px.Tensor[Any]]:
        right = (logits.argmax(axis=1) == targets).sum()
        return {"right": right, "count": px.asarray(float(len(targets)))}

    def merge(self, state: State | None, part: State) -> State:
        if state is None:
            return {name: np.asarray(array, np.float64) for name, array in part.items()}
        return {name: state[name] + part[name] for name in state}

    def value(self, state: State) -> float:
        return float(state["right"] / state["count"])


METRIC = Right()
RULE = optim.SgdConfig()


def loader(count: int = 30, **more: Any) -> data.DataLoader:
    return data.DataLoader(data.arrays(**rows(count)), 8, **more)


def fitted(folder: Path | None = None, device: Any = None, **settings: Any) -> Any:
    return train.fit(
        net(device),
        forward,
        loader(shuffle=True),
        optimizer=optim.AdamWConfig().init(),
        lr=optim.CosineSchedulerConfig(1e-2, steps=12).init(),
        epochs=3,
        valid=loader(20),
        metrics=[METRIC],
        run=folder,
        show=False,
        **settings,
    )


def test_fit_has_the_bits_of_a_loop(tmp_path: Path) -> None:
    done = fitted(tmp_path)
    learner = train.Learner(
        net(), optim.AdamWConfig().init(), optim.CosineSchedulerConfig(1e-2, steps=12).init()
    )
    batches = loader(shuffle=True)
    losses = [float(learner.step(forward, batch)["loss"]) for _ in range(3) for batch in batches]
    assert bits(done.model) == bits(learner.model)
    assert done.history("train/loss").values.tolist() == losses
    whole = px.tree.map(px.asarray, rows(20))
    logits = learner.model.valid()(whole["x"])
    assert done.best("valid/right", "higher").value <= 1.0
    last = done.history("valid/loss").values[-1]
    assert last == pytest.approx(float(LOSS(logits, whole["y"])), rel=1e-6)
    right = float((logits.argmax(axis=1) == whole["y"]).sum()) / 20
    assert done.history("valid/right").values[-1] == pytest.approx(right)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("ema", [None, 0.9])
def test_compiled_fits_have_the_same_bits(mixed: bool, ema: float | None) -> None:
    device = Autodiff(Mixed(Cpu(), "bfloat16") if mixed else Cpu())
    written = fitted(device=device, ema=ema, microbatches=2)
    compiled = fitted(device=device, ema=ema, microbatches=2, compile=True)
    assert bits(written.model) == bits(compiled.model)
    for name in ("train/loss", "valid/loss", "valid/right"):
        assert (written.history(name).values == compiled.history(name).values).all()


def test_a_fit_goes_on_from_its_folder(tmp_path: Path) -> None:
    calm = fitted(tmp_path / "calm", ema=0.9)
    for step in (3, 4, 7, 12):
        stopped = fitted(tmp_path / f"{step}", ema=0.9, callbacks=[stop_at(step)])
        assert (stopped.reason, stopped.run.steps) == ("tested", step)
        again = fitted(tmp_path / f"{step}", ema=0.9)
        assert bits(again.model) == bits(calm.model)
        assert rows_of(tmp_path / f"{step}") == rows_of(tmp_path / "calm")


def test_the_best_model_comes_from_its_checkpoint(tmp_path: Path) -> None:
    for name, ema in (("a", None), ("b", 0.5)):
        done = fitted(tmp_path / name, ema=ema)
        best = done.best("valid/loss")
        model = done.best_model("valid/loss")
        again = train.evaluate(model, forward, loader(20))
        assert again["loss"] == best.value
    with pytest.raises(px.PhloxError, match=r"not kept(.|\n)*KeepBest"):
        fitted().best_model("valid/loss")


def test_a_plateau_schedule_follows_the_evaluation() -> None:
    config = optim.PlateauSchedulerConfig(1.0, patience=0, factor=0.5)
    plateau, alone = config.init(), config.init()
    done = train.fit(
        net(), forward, loader(), optimizer=optim.SgdConfig().init(), lr=plateau, epochs=3,
        valid=loader(20), show=False,
    )  # fmt: skip
    for loss in done.history("valid/loss").values.tolist():
        alone.step(loss)
    assert done.learner.rate == alone.rate < 1.0


def test_evaluation_is_a_mean_over_examples_wherever_batches_end() -> None:
    model = net()
    found = [
        train.evaluate(model, forward, data.DataLoader(data.arrays(**rows(20)), size), [METRIC])
        for size in (20, 8, 3)
    ]
    for one in found:
        assert one["loss"] == pytest.approx(found[0]["loss"], rel=1e-6)
        assert one["right"] == found[0]["right"]
        assert one.better == {"loss": "lower", "right": "higher"}


def test_evaluation_leaves_models_and_random_numbers_alone() -> None:
    model, before = net(), px.random.generator().state()

    def noisy(model: nn.Module, batch: Any) -> Any:
        out = forward(model, batch)
        return {**out, "loss": out["loss"] + px.random.uniform(())}

    batches = loader(20, shuffle=True)
    first = train.evaluate(model, noisy, batches)
    assert train.evaluate(model, noisy, batches) == first  # of the same batches again
    assert px.random.generator().state() == before
    assert model.dropout.training


@pytest.mark.filterwarnings(r"ignore:\[predict\]")
@pytest.mark.parametrize("shuffle", [False, True])
def test_compiled_evaluations_record_each_size_of_batches_once(shuffle: bool) -> None:
    def noisy(model: Any, batch: Any) -> Any:
        logits = model(batch["x"]) + px.random.uniform((3,))
        return {"loss": LOSS(logits, batch["y"]), "logits": logits, "targets": batch["y"]}

    def doubled(model: Any, batch: Any) -> Any:
        train.evaluate(model, noisy, [batch])  # draws from numbers of its own
        return noisy(model, batch)["logits"] * 2

    compiled, logits = px.compile(noisy), px.compile(lambda m, b: noisy(m, b)["logits"] * 2)
    batches = loader(100, shuffle=shuffle)  # 8 and 4 rows
    for seed in (0, 1):
        px.seed(seed)
        model = net()
        found = train.evaluate(model, compiled, batches, [METRIC])
        assert found == train.evaluate(model, noisy, batches, [METRIC])
        rows_found = train.predict(model, logits, batches)
        assert (rows_found == train.predict(model, doubled, batches)).all()
    assert (compiled.versions, logits.versions) == (2, 2)


def test_a_weight_counts_in_evaluations() -> None:
    def weighed(model: Any, batch: Any) -> dict[str, Any]:
        return {"loss": batch["x"].mean(), "weight": batch["w"].sum()}

    parts = [{"x": px.ones(2) * k, "w": px.ones(2) * k} for k in (0.0, 1.0, 3.0)]
    assert train.evaluate(net(), weighed, parts)["loss"] == pytest.approx((1 * 2 + 3 * 6) / 8)


def test_predictions_are_those_of_all_batches() -> None:
    model = net()
    found = train.predict(
        model, lambda model, batch: {"y": batch["y"], "p": model(batch["x"])}, loader(20)
    )
    whole = rows(20)
    assert (found["y"] == whole["y"]).all()
    assert found["p"].shape == (20, 3)
    np.testing.assert_allclose(found["p"], model.valid()(px.asarray(whole["x"])).numpy(), rtol=1e-5)


def test_predictions_in_another_order_are_warned_of() -> None:
    for settings in ({"shuffle": True}, {"drop_last": True}):
        with pytest.warns(
            UserWarning, match=r"\[predict\] the loader shuffles or leaves out items"
        ):
            train.predict(net(), lambda model, batch: model(batch["x"]), loader(20, **settings))


def test_a_trial_of_rates_changes_nothing() -> None:
    def small(**more: Any) -> train.Learner[Any]:
        return train.Learner(net(), optim.SgdConfig().init(), 1e-3, ema=0.9, **more)

    one, other = small(), small(compile=True)
    batches = loader(shuffle=True)
    before, place = bits(one.model), batches.position
    found = train.find_lr(one, forward, batches, highest=100.0)
    assert (bits(one.model), batches.position) == (before, place)
    assert (one.steps, one.rate) == (0, 1e-3)
    assert found.rates[0] == 1e-7
    assert (np.diff(found.rates) > 0).all()
    assert 1e-4 < found.suggestion < 10.0
    again = train.find_lr(other, forward, batches, highest=100.0)
    assert (again.losses == found.losses).all()


def test_wrong_uses_say_what_to_type() -> None:
    one = train.Learner(net(), optim.SgdConfig().init(), 1e-3)
    small = loader(8)
    sizes = itertools.count(1)
    cases: list[tuple[Any, str]] = [
        (lambda: train.evaluate(net(), forward, []), "no examples"),
        (lambda: train.evaluate(net(), lambda m, b: forward(m, b)["loss"], small, [METRIC]),
         "right takes(.|\n)*'logits': logits"),
        (lambda: train.evaluate(net(), forward, small, [METRIC, METRIC]), "names occur twice"),
        (lambda: train.evaluate(net(), forward, small, [train.Accuracy]), r"hint: Accuracy\(\)"),  # type: ignore[list-item]
        (lambda: train.evaluate(net(), forward, small, ["accuracy"]), "not a metric"),  # type: ignore[list-item]
        (lambda: train.predict(net(), lambda m, b: m(b["x"]).sum(), small), "no axis of examples"),
        (lambda: train.predict(net(), lambda m, b: m(b["x"]), []), "no batches"),
        (lambda: train.predict(net(), lambda m, b: px.ones((2, next(sizes))), [*small] * 2),
         r"batch 1 .*\(2, 2\), expected \(…, 1\)"),
        (lambda: train.find_lr(one, forward, []), "no batches"),
        (lambda: train.find_lr(one, forward, small, lowest=1.0, highest=0.1), "do not grow"),
        (lambda: train.find_lr(one, forward, small, steps=3), "steps: got 3"),
    ]  # fmt: skip
    for make, message in cases:
        with pytest.raises(px.PhloxError, match=message):
            make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": [train.KeepBest("valid/acuracy")]}, r"KeepBest waits(.|\n)*valid/accuracy'\)"),
        ({"keep": [train.KeepBest("val_loss")]}, "KeepBest waits.*got val_loss"),
        ({"stop": [train.NoImprovement("valid/los")]}, r"NoImprovement waits(.|\n)*'valid/loss'"),
        ({"stop": [train.Reached("validation/loss", 0.1)]}, "Reached waits"),
        ({"stop": [train.Reached("other/loss", 0.1)]}, r"Reached waits(.|\n)*split='other'"),
        ({"valid": None}, r"metrics are of an evaluation(.|\n)*valid="),
        ({"valid": data.arrays(**rows(9))}, r"gives items, not batches(.|\n)*DataLoader"),
        ({"metrics": ["accuracy"]}, r"not a metric: got 'accuracy'(.|\n)*train.Accuracy\(\)"),
        (
            {"metrics": [train.Accuracy(), train.Accuracy()]},
            r"occur twice(.|\n)*name=\"another_acc",
        ),
    ],
)
def test_what_would_never_do_anything_is_refused(settings: Any, message: str) -> None:
    given: Any = {"valid": batches(), "metrics": [train.Accuracy()], "show": False, **settings}
    rule = optim.SgdConfig().init()
    with pytest.raises((px.ArgumentError, px.WrongTypeError), match=message):
        train.fit(net(), forward, batches(), optimizer=rule, lr=0.1, epochs=2, **given)


def test_a_dataset_is_not_evaluated() -> None:
    with pytest.raises(px.WrongTypeError, match=r"\[evaluate\] a dataset gives items"):
        train.evaluate(net(), forward, data.arrays(**rows(9)))


def test_another_training_begins_at_the_first_batch_of_a_loader() -> None:
    shared = loader(shuffle=True)
    next(iter(shared))  # a look at it, which leaves it in the middle of its epoch
    found = []
    for batches_ in (shared, shared, loader(shuffle=True)):
        done = train.fit(
            net(),
            forward,
            batches_,
            optimizer=optim.SgdConfig().init(),
            lr=0.1,
            epochs=2,
            show=False,
        )
        found.append((done.learner.steps, bits(done.model)))
    assert found[0] == found[1] == found[2]
    assert found[0][0] == 8


def test_what_a_metric_gives_by_class_has_no_best() -> None:
    assert train.FBeta(average=None).better == "none"
    assert train.FBeta().better == "higher"
    assert train.FBeta(task="binary", average=None).better == "higher"
