"""What a newcomer types first."""

from __future__ import annotations

from pathlib import Path

import pytest

import phlox as px
from phlox import Autodiff, Cpu, GradientError, nn

README = Path(__file__).parents[2] / "README.md"


def test_the_first_example_runs_on_a_gpu_too() -> None:
    code = README.read_text("utf-8").split("```python\n")[1].split("```")[0]
    for old, new in (
        ("Cpu", "Wgpu"),
        ("range(300)", "range(3)"),
        ("assert float(loss_of(model)) < 1e-2", ""),
    ):
        assert old in code
        code = code.replace(old, new)
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    assert isinstance(names["model"], nn.Linear)
    assert names["model"].weight.value.device is Autodiff(px.Wgpu())


def test_a_model_made_without_a_recording_device_is_told_how_to_get_there() -> None:
    model = nn.Linear(3, 2, device=Cpu())
    x = px.ones((2, 3), device=Autodiff(Cpu()))
    with pytest.raises(GradientError, match=r"model = model\.train\(Autodiff\(Cpu\(\)\)\)"):
        model(x).sum().backward()
    assert len(model.train(x.device)(x).sum().backward()) == 2
    with pytest.raises(GradientError, match=r"make the model, .* device=Autodiff\(Cpu\(\)\)"):
        model(x.inner()).sum().backward()
