"""Runs of several ranks: one folder, one log, and another number of them at each start."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phlox import Autodiff, Cpu, Wgpu, data, optim, train
from phlox_tensor import ArgumentError, DisagreementError
from phlox_tensor.groups import Solo
from tests.distributed.threads import MAKING, together
from tests.distributed.training import log_of, whole
from tests.train.nets import batches, bits, forward, net, rows


def run(group: Any, folder: Path, stop: int | None = None, **settings: Any) -> Any:
    """Three epochs, or so many steps."""

    def ends(event: train.Event, run: train.Run) -> None:
        if isinstance(event, train.Stepped) and event.step == stop:
            run.stop("tested")

    saves = train.Every(epochs=1, minutes=10)
    return whole(group, folder, epochs=3, callbacks=[ends], save=saves, **settings)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("calm")
    (found,) = together(1, lambda group: run(group, folder))
    return found, log_of(folder)


def test_each_start_may_have_another_number_of_ranks(calm: Any, tmp_path: Path) -> None:
    for size, stop in ((4, 3), (3, 6), (5, None)):  # epochs have four steps
        found = together(size, lambda group: run(group, tmp_path, stop))  # noqa: B023 - at once
    assert found == [calm[0]] * 5
    assert log_of(tmp_path) == calm[1]


@pytest.mark.parametrize("size", [2, 8])
def test_a_run_is_the_same_for_any_number_of_ranks(calm: Any, tmp_path: Path, size: int) -> None:
    compile = size == 2
    assert together(size, lambda group: run(group, tmp_path, compile=compile)) == [calm[0]] * size
    assert log_of(tmp_path) == calm[1]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("inner", [Cpu, Wgpu], ids=["cpu", "wgpu"])
@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
def test_all_numbers_of_ranks_and_changes_of_it_end_in_the_same_bits(
    tmp_path: Path, inner: Any, compile: bool
) -> None:
    alone = run(Solo(), tmp_path / "alone", inner=inner)
    for starts in ([1], [2], [3], [4], [5], [8], [4, 3, 5]):
        folder = tmp_path / "-".join(map(str, starts))
        found: list[Any] = []
        for size, stop in zip(starts, [*(3, 6)[: len(starts) - 1], None], strict=True):
            go = partial(run, folder=folder, stop=stop, inner=inner, compile=compile)
            found = together(size, go)
        assert found == [alone] * starts[-1], starts
        assert log_of(folder) == log_of(tmp_path / "alone")


def test_states_of_an_optimizer_are_sharded_and_saved_whole(calm: Any, tmp_path: Path) -> None:
    names = []
    for size, stop in ((3, 2), (1, 5), (2, None)):
        found = together(
            size,
            lambda group: run(group, tmp_path, stop, shard_optimizer=True),  # noqa: B023 - at once
        )
        names.append(sorted(path.name for path in (tmp_path / "checkpoints").iterdir()))
    assert [len(each) for each in names] == [3, 2, 4]  # of two steps, old ones removed
    assert sum("-1-of-2" in name for name in names[-1]) == 2
    assert found == [calm[0]] * 2
    assert log_of(tmp_path) == calm[1]


def test_a_shard_that_is_lost_is_missed(calm: Any, tmp_path: Path) -> None:
    def go(group: Any) -> Any:
        return run(group, tmp_path, 3 if group.size == 3 else None, shard_optimizer=True)

    together(3, go)
    shard = next((tmp_path / "checkpoints").glob("step-000000003.*-2-of-3.*"))
    data = shard.read_bytes()
    shard.unlink()
    with pytest.raises(train.RunError, match="is damaged: got a shard is not there"):
        run(Solo(), tmp_path)
    shard.write_bytes(data)
    assert together(2, go) == [calm[0]] * 2


def test_a_shard_that_cannot_be_written_ends_all_ranks(
    calm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = import_module("phlox_train.runs.shards")
    write = shards._RECORDER.record

    def full(record: Any, path: Path) -> Path:
        if "-1-of-2" in path.name and "step-000000003" not in path.name:
            raise OSError(28, "No space left on device")
        return write(record, path)

    monkeypatch.setattr(
        shards,
        "_RECORDER",
        SimpleNamespace(record=full, load=shards._RECORDER.load, extension=".mpk"),
    )
    errors: list[Any] = []

    def go(group: Any, stop: int) -> None:
        try:
            run(group, tmp_path, stop, shard_optimizer=True)
        except train.RunError as error:
            errors.append(str(error.got))

    together(2, lambda group: go(group, 3))
    assert errors == []
    together(2, lambda group: go(group, 6))
    assert len(errors) == 2
    assert all("rank 1: [Errno 28] No space left" in error for error in errors)
    monkeypatch.undo()
    assert together(3, lambda group: run(group, tmp_path, shard_optimizer=True)) == [calm[0]] * 3
    assert log_of(tmp_path) == calm[1]


def test_each_rank_keeps_states_of_its_own() -> None:
    def states(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        config = optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(0.1))
        scaling = optim.LossScalingConfig(scale=8.0).init()
        learner = train.Learner(
            model, config.init(), 0.1, scaling=scaling, microbatches=4, seed=0,
            group=group, shard_optimizer=True,
        )  # fmt: skip
        for batch in batches((12, 12)):
            learner.step(forward, batch)
        own: Any = learner.optimizer.into_record()["states"]
        whole: Any = learner.into_record()["optimizer"]
        return bits(learner.model), sorted(own), sorted(whole["states"])

    (alone,) = together(1, states)
    found = together(3, states)
    assert [each[0] for each in found] == [alone[0]] * 3
    everything = found[0][2]
    assert len(everything) == len(alone[1]) == 6
    assert sorted(key for each in found for key in each[1]) == everything
    assert all(each[1] for each in found)


def test_batches_that_do_not_come_apart_are_whole_on_each_rank() -> None:
    def feeds() -> list[Any]:
        noisy = data.DataLoader(
            data.arrays(**rows(24)), 12, transform=lambda b, rng: b | {"x": b["x"] + rng.normal()}
        )
        assert not noisy.splits
        return [noisy, batches((12, 12))]

    def trained(group: Any, feed: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(
            model, optim.SgdConfig().init(), 0.1, microbatches=4, group=group, seed=0
        )
        with train.Run(None, learner, feed, show=False) as run:
            for _ in run.epochs(2):
                for batch in run.batches():
                    assert len(batch["x"]) == 12
                    learner.step(forward, batch)
        return bits(learner.model)

    for place in range(2):
        (alone,) = together(1, lambda group: trained(group, feeds()[place]))  # noqa: B023 - at once
        assert together(3, lambda group: trained(group, feeds()[place])) == [alone] * 3  # noqa: B023


def test_fit_takes_a_group() -> None:
    def fitted(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        loader = data.DataLoader(data.arrays(**rows(48)), 16, shuffle=True)
        check = data.DataLoader(data.arrays(**rows(30)), 8)
        done = train.fit(
            model,
            forward,
            loader,
            optimizer=optim.AdamWConfig().init(),
            lr=train_rate(),
            epochs=2,
            valid=check,
            metrics=[train.Accuracy()],
            microbatches=4,
            seed=1,
            group=group,
            show=False,
        )
        return bits(done.model), done.best("valid/accuracy").value

    (alone,) = together(1, fitted)
    assert together(3, fitted) == [alone] * 3


def test_a_rank_reads_the_batches_that_it_evaluates() -> None:
    def evaluated(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        seen: list[int] = []

        def noted(item: Any) -> Any:
            seen.append(1)
            return item

        check = data.DataLoader(data.of(data.arrays(**rows(30))).map(noted), 8)
        return train.evaluate(model, forward, check, [train.Accuracy()], group=group), len(seen)

    (alone,) = together(1, evaluated)
    assert alone[1] == 30
    found = together(5, evaluated)  # the last one has no batch
    assert [values for values, _ in found] == [alone[0]] * 5
    assert [count - 8 for _, count in found] == [8, 8, 8, 6, 0]  # all look at four rows, twice


def _own_rows(rank: int) -> Any:
    return data.DataLoader(data.arrays(**{k: v[rank::2] for k, v in rows(24).items()}), 4)


def _other_end(rank: int) -> Any:
    own = rows(24)
    own["x"][12:] += rank
    return data.DataLoader(data.arrays(**own), 4)


@pytest.mark.parametrize(
    ("loader", "what"),
    [
        (_own_rows, "first row of batch 0"),
        (_other_end, "first row of batch 3"),
        (lambda r: data.DataLoader(data.arrays(**rows(24 - 4 * r)), 4), "items: got 24 on rank 0"),
        (lambda r: data.DataLoader(data.arrays(**rows()), 4 + r), "batch: got 4 on rank 0, 5 on r"),
        (lambda r: data.DataLoader(data.arrays(**rows()), 4, shuffle=r == 0), "order: got 1 on ra"),
        (lambda r: data.DataLoader(data.arrays(**rows()), 4, shuffle=True, seed=r), "seed: got 0"),
        (lambda r: batches((4, 4))[: 2 - r], "length: got 2 on rank 0, 1 on rank 1"),
    ],
)
def test_loaders_that_differ_between_ranks_are_refused(loader: Any, what: str) -> None:
    def run(group: Any) -> None:
        learner, batches = _learner(group), loader(group.rank)
        with pytest.raises(ArgumentError, match=rf"\[run\] .*{what}"):
            train.Run(None, learner, batches, show=False).__enter__()
        with pytest.raises(ArgumentError, match=rf"\[evaluate\] .*{what}"):
            train.evaluate(learner.model, forward, batches, group=group)

    together(2, run)


def test_a_dataset_that_gives_other_numbers_each_time_is_no_other_dataset() -> None:
    def run(group: Any) -> None:
        own = np.random.default_rng(group.rank)
        noisy = data.of(data.arrays(**rows(12))).map(
            lambda row: {**row, "x": row["x"] + own.random()}
        )
        with train.Run(None, _learner(group), data.DataLoader(noisy, 4), show=False) as run:
            assert len([*run.batches()]) == 3

    together(2, run)


def test_evaluations_of_other_batches_are_refused() -> None:
    def run(group: Any) -> None:
        own = [{k: v[group.rank :: 2] for k, v in batch.items()} for batch in batches((4, 4))]
        with pytest.raises(ArgumentError, match=r"evaluate, 2 batches, data .* on rank 0; eval"):
            train.evaluate(_learner(group).model, forward, own, group=group)

    together(2, run)


def test_ranks_that_leave_out_other_steps_of_a_run_are_told() -> None:
    def run(group: Any) -> None:
        got = "step 1, batch 1 of epoch 0 on rank 0; epoch 0 of the run after batch 2, step 2 on"
        with pytest.raises(ArgumentError, match=got):
            _run(group, 1, left_out=2 - group.rank)

    together(2, run)


def test_ranks_whose_runs_have_other_lengths_are_told() -> None:
    def run(group: Any) -> None:
        with pytest.raises(ArgumentError, match="the end of the run on rank 0; step 4, batch 0 of"):
            _run(group, 1 + group.rank)

    together(2, run)


def _run(group: Any, epochs: int, left_out: int | None = None) -> None:
    learner = _learner(group)
    loader = data.DataLoader(data.arrays(**rows(16)), 4)
    with train.Run(None, learner, loader, show=False) as run:
        for _ in run.epochs(epochs):
            for number, batch in enumerate(run.batches()):
                if number != left_out:
                    learner.step(forward, batch)


def _learner(group: Any) -> Any:
    with MAKING:
        model = net(Autodiff(Cpu()))
    return train.Learner(model, optim.SgdConfig().init(), 0.1, group=group, seed=0)


def train_rate() -> Any:
    return optim.PlateauSchedulerConfig(0.1, patience=0).init()


def test_ranks_that_part_are_told_at_the_end_of_a_run(tmp_path: Path) -> None:
    def parts(group: Any) -> None:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, group=group, seed=0)
        with train.Run(tmp_path, learner, batches((4, 4)), show=False, system=None) as run:
            for batch in run.batches():
                learner.step(forward, batch)
                if group.rank:
                    weight = learner.model.last.weight
                    other = weight.with_value(weight.value.detach() * 2.0)
                    learner.model = learner.model.with_params({weight.id: other})

    with pytest.raises(DisagreementError, match=r"of the ranks have other bits(.|\n)*some ranks"):
        together(2, parts)
    assert not list((tmp_path / "checkpoints").glob("step-*"))


def test_another_config_is_named() -> None:
    def begin(group: Any) -> Any:
        with MAKING:
            model = net(Autodiff(Cpu()))
        learner = train.Learner(model, optim.SgdConfig().init(), 0.1, group=group)
        config = {"rate": 0.1 * (1 + (group.rank == 1))}
        with (
            pytest.raises(train.RunError, match=r"rank 1 has another config: got rate: 0\.1"),
            train.Run(None, learner, batches(), config=config, show=False),
        ):
            pass

    together(2, begin)
