"""A new module that is thrown away is told."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from phlox import Autodiff, nn, optim, record

CALLS: dict[str, str] = {
    "fork": "model.fork(device)",
    "freeze": "model.freeze()",
    "map": "model.map(lambda path, param: param)",
    "replace": "model.replace(bias=None)",
    "unfreeze": "model.unfreeze('weight')",
    "no_grad": "model.no_grad()",
    "to_device": "model.to_device(device='numpy')",
    "valid": "model.valid()",
    "train": "model.train(device)",
    "with_training": "model.with_training(*[True])",
    "load_record": "model.load_record(model.into_record())",
    "load_file": "model.load_file(path)",
    "initialize": "nn.initialize(model, nn.initializers.Ones())",
    "apply_lora": "nn.apply_lora(model, 1)",
    "quantize_weights": "nn.quantize_weights(model)",
    "weight_norm": "nn.weight_norm(model)",
    "spectral_norm": "nn.spectral_norm(model)",
    "map_modules": "nn.map_modules(model, lambda path, part: part)",
    "moving_average": "nn.moving_average(model, model, 0.5)",
}


def run(code: str, path: Path) -> list[str]:
    """What is told while lines run."""
    model = nn.Linear(4, 4)
    names = {"model": model, "nn": nn, "device": Autodiff("numpy")}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exec(code, {**names, "path": model.save_file(path / "model")})
    assert all(each.filename == "<string>" for each in told)
    return [str(each.message) for each in told]


@pytest.mark.parametrize("name", CALLS)
def test_a_module_that_is_thrown_away_is_told(name: str, tmp_path: Path) -> None:
    code = CALLS[name]
    (text,) = run(f"try:\n    for i in [0]:\n        {code}\nfinally:\n    pass", tmp_path)
    assert text.startswith(f"[{name}] the new module is thrown away")
    assert name in text.partition("hint: ")[2]
    for kept in (
        f"x = {code}",
        f"print({code})",
        f"_ = {code}",
        f"(lambda: {code})()",
        f"[{code}]",
    ):
        assert run(kept, tmp_path) == []
    assert run(f"def f():\n    return {code}\nf()", tmp_path) == []


def test_a_model_that_restore_gives_is_kept(tmp_path: Path) -> None:
    model, optimizer = nn.Linear(4, 4), optim.SgdConfig().init()
    checkpoints = record.Checkpointer(tmp_path)
    checkpoints.save(1, model=model, optimizer=optimizer)
    with pytest.warns(UserWarning, match=r"\[restore\].*model is as it was\nhint: model = "):
        checkpoints.restore(model=model, optimizer=optimizer)
    found = checkpoints.restore(model=model, optimizer=optimizer)
    assert found is not None
    checkpoints.save(2, optimizer=optimizer, epoch=3)
    checkpoints.restore(optimizer=optimizer, epoch=0)
