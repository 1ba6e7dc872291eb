"""What holds of every metric: names, docs, states that are records, the same on all devices."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
import phlox_train
from phlox import Cpu, Numpy, Wgpu, nn, train
from phlox._cli import main
from phlox._metrics import HEAD, records
from phlox_nn import Config
from phlox_train import _exports
from phlox_train.metrics.metric import read
from phlox_train.metrics.rows import ROWS

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/14-metrics.md"
SETTINGS: dict[str, tuple[Any, ...]] = {"Average": ("values",)} | dict.fromkeys(
    (
        "AdjustedRand",
        "Completeness",
        "FowlkesMallows",
        "Homogeneity",
        "MutualInformation",
        "Rand",
        "VMeasure",
    ),
    (4, 4),
)


def made(kind: str, **settings: Any) -> Any:
    return ROWS[kind](*SETTINGS.get(kind, ()), **settings)


def outputs(name: str, count: int = 12) -> list[Any]:
    """What a step gives that a metric takes, as float32 and int64."""
    chance = np.random.default_rng(0)
    row = made(name)
    module = type(row).__module__.rpartition(".")[2]
    classes = chance.integers(0, 4, count)
    numbers = chance.gamma(2, 1, (2, count, 3)).astype(np.float32)
    labels = chance.integers(0, 3, (2, count, 4))
    boxes = np.sort(chance.random((2, count, 4, 2, 2)).astype(np.float32), axis=3)
    boxes = boxes.reshape(2, count, 4, 4) * 90
    picture = chance.random((2, 2, 3, 48, 48)).astype(np.float32)
    if name == "MultiScaleSSIM":
        picture = chance.random((2, 1, 1, 176, 176)).astype(np.float32)
    scores = chance.normal(size=(count, 4)).astype(np.float32)
    given: dict[str, list[Any]] = {
        "clusters": [chance.integers(0, 4, count), classes],
        "detection": [boxes[0], scores, labels[0], boxes[1], labels[1]],
        "features": [*numbers],
        "images": [*picture],
        "ranking": [scores, chance.integers(0, 2, (count, 4))],
        "text": [*labels],
    }
    kept = [numbers[0]] if name == "Average" else [*numbers]
    return given.get(module, [scores, classes] if row.takes[0] == "logits" else kept)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_named_and_told(name: str) -> None:
    row = made(name)
    assert row.takes
    assert getattr(train, name) is getattr(phlox_train, name) is ROWS[name]
    assert row.name == row.name.lower()
    assert made(name, name="other").name == "other"
    assert "Example:\n" in (inspect.getdoc(ROWS[name]) or "")
    assert Config.from_dict.__func__(ROWS[name], row.to_dict()) == row  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(row)) == row


@pytest.mark.parametrize("name", ROWS)
def test_devices_agree_and_states_are_records(name: str, tmp_path: Path) -> None:
    given, row, values = outputs(name), made(name), []
    for device in (Numpy(), Cpu(), Wgpu()):
        state = row.merge(None, read(row.part(*(px.asarray(x, device=device) for x in given))))
        values.append(row.value(state))
    for value in values[1:]:
        np.testing.assert_allclose(value, values[0], rtol=2e-5, atol=2e-5)
    recorder = px.record.NamedMsgpackRecorder()
    assert row.join(state, state).keys() == row.state(*map(px.asarray, given)).keys()
    path = recorder.record(
        {k: px.asarray(v, device="numpy") for k, v in state.items()}, tmp_path / "a"
    )
    back = {k: v.numpy() for k, v in recorder.load(path).items()}
    again = read(row.part(*map(px.asarray, given)))
    np.testing.assert_array_equal(
        row.value(row.merge(back, again)), row.value(row.merge(state, again))
    )


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.merges != "keep"])
def test_states_that_are_sums_do_not_grow(name: str) -> None:
    row, sizes = made(name), []
    for count in (6, 24):
        state = row.merge(None, read(row.part(*map(px.asarray, outputs(name, count)))))
        sizes.append(sum(array.nbytes for array in state.values()))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("name", ROWS)
def test_no_examples_are_no_error(name: str) -> None:
    given = [x[:0] for x in outputs(name)]
    value = np.asarray(made(name)(*map(px.asarray, given)))
    assert np.isnan(value).all() or name in ("ConfusionMatrix", "ROC", "PrecisionRecallCurve")


def test_checkers_of_types_see_every_row() -> None:
    assert sorted(_exports.__all__) == sorted(ROWS)
    assert set(ROWS) <= set(dir(train))


def test_the_guide_has_the_table() -> None:
    columns = (*HEAD, "what")
    lines = [columns, ("---",) * len(columns)]
    lines += [tuple(record[c].replace("|", r"\|") for c in columns) for record in records()]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("``", "`")
    assert table in GUIDE.read_text(), f"the table is now\n{table}"


def test_the_command_tells_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == [*ROWS]
    assert main(["metrics", "fbeta"]) == 0
    assert 'average: ``"macro"``' in capsys.readouterr().out
    assert main(["metrics", "F1"]) == 2
    assert "hint: train.FBeta(10)" in capsys.readouterr().err
    for name, said in (
        ("nothing-like-it", "got nothing-like-it\nhint: phlox metrics\n"),
        ("acuracy", "got acuracy, expected Accuracy\nhint: phlox metrics Accuracy\n"),
        ("fit", "[metrics] no such metric: got fit\nhint: phlox metrics\n"),  # no row of ours
    ):
        assert main(["metrics", name]) == 2
        assert said in capsys.readouterr().err
    assert main(["metrics", "fbeta", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["FBeta"]


def test_names_of_others_are_told() -> None:
    with pytest.raises(AttributeError, match=r"hint: train.Jaccard\(10\)"):
        train.MeanIoU  # type: ignore[attr-defined]  # noqa: B018


def test_evaluate_takes_several_rows_of_one_kind() -> None:
    model = nn.Linear(3, 4, device="numpy")
    x = px.random.normal((20, 3), device="numpy")
    y = px.asarray(np.arange(20) % 4, device="numpy")

    def step(model: Any, batch: Any) -> dict[str, Any]:
        logits, words = model(batch[0]), [str(label) for label in batch[1].tolist()]
        told = {"said": words, "right": words}
        return {"loss": logits.mean(), "logits": logits, "targets": batch[1], **told}

    batches = [(x[:7], y[:7]), (x[7:], y[7:])]
    each = train.FBeta(average=None, name="each")
    rows = [train.FBeta(4), each, train.ConfusionMatrix(), train.WER(takes=("said", "right"))]
    found, logits = train.evaluate(model, step, batches, rows), model(x)
    assert found["f_beta"] == train.FBeta()(logits, y)
    np.testing.assert_array_equal(found["each"], train.FBeta(average=None)(logits, y))
    assert np.sum(found["confusion_matrix"]) == 20
    assert found["wer"] == 0
    assert found.better == {"loss": "lower", "f_beta": "higher", "wer": "lower"}
    with pytest.raises(TypeError, match=r"said, which accuracy takes, is no tensor: got list"):
        train.evaluate(model, step, batches, [train.Accuracy(takes=("said", "targets"))])


@pytest.mark.parametrize("kind", ["Accuracy", "AUROC", "CalibrationError", "FBeta"])
def test_scores_of_what_does_not_count_may_be_nan(kind: str) -> None:
    scores = np.asarray([[2, 1, 0], [0, 0, 0], [0, 1, 3], [1, 2, 0]], np.float32)
    targets, metric = px.asarray([0, -1, 2, 1]), made(kind, ignore_index=-1)
    want = metric(px.asarray(scores), targets)
    scores[1] = np.nan
    assert metric(px.asarray(scores), targets) == want
    with pytest.raises(ValueError, match="scores are not numbers"):
        metric(px.asarray(scores), px.asarray([0, 1, 2, 1]))


@pytest.mark.parametrize(
    ("word", "hint"),
    [("learning_rate", "lr=..."), ("validation_data", "valid=..."), ("verbose", "show=...")],
)
def test_words_of_keras_are_told(word: str, hint: str) -> None:
    fit: Any = train.fit
    with pytest.raises(TypeError, match=rf"hint: {re.escape(hint)}$"):
        fit(None, None, None, **{word: 1})
