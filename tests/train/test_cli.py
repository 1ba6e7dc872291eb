"""A command line from a config: nested fields, unions, files, help, and errors by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from phlox import nn, optim, train


class Net(nn.Config):
    """A network.

    Attributes:
        hidden: how wide it is.
    """

    hidden: int = 16
    sizes: tuple[int, ...] = (1, 2)


class Settings(nn.Config):
    """Train a classifier of garments.

    Attributes:
        batch: examples of a step.
    """

    model: Net = Net()
    optimizer: optim.AdamWConfig | optim.SgdConfig = optim.AdamWConfig()
    schedule: optim.SchedulerConfig = optim.CosineSchedulerConfig(1e-3, steps=10)
    batch: int = 64
    quick: bool = False
    name: str | None = None


class Needed(nn.Config):
    rate: float


def same(settings: Settings) -> Settings:
    return settings


def said(*words: str) -> Settings:
    return train.cli(same, words)


def refused(capsys: pytest.CaptureFixture[str], *words: str, main: Any = same) -> str:
    with pytest.raises(SystemExit) as ended:
        train.cli(main, words)
    assert ended.value.code == 2
    return " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_nothing_said_is_the_config_itself() -> None:
    assert said() == Settings()


def test_nested_fields_are_options() -> None:
    words = "--model.hidden 32 --model.sizes 3 4 5 --batch 8 --quick --name a --schedule.steps 20"
    assert said(*words.split()) == Settings(
        model=Net(hidden=32, sizes=(3, 4, 5)),
        schedule=optim.CosineSchedulerConfig(1e-3, steps=20),
        batch=8,
        quick=True,
        name="a",
    )


def test_one_of_several_configs_is_a_word() -> None:
    settings = said("optimizer:sgd-config", "--optimizer.momentum", "0.9", "--batch", "3")
    assert settings.optimizer == optim.SgdConfig(momentum=0.9)
    assert settings.batch == 3
    assert said("--optimizer.beta-1", "0.8").optimizer == optim.AdamWConfig(beta_1=0.8)


def test_an_abstract_config_is_one_of_those_below_it() -> None:
    words = "optimizer:sgd-config optimizer.grad-clipping:clip-by-norm"
    settings = said(*words.split(), "--optimizer.grad-clipping.threshold", "2")
    assert settings.optimizer.grad_clipping == optim.ClipByNorm(2.0)


class Based(nn.Config):
    rule: optim.OptimizerConfig = optim.AdamWConfig()
    rates: optim.SchedulerConfig = optim.WarmUpSchedulerConfig(
        optim.ConstantSchedulerConfig(1.0), 5
    )


# Pages of the documentation define configs of the same names in this process.
@pytest.mark.filterwarnings("ignore:Duplicate subcommand")
def test_bases_of_optim_are_any_of_its_configs() -> None:
    def main(settings: Based) -> Based:
        return settings

    assert train.cli(main, []) == Based()
    words = "rule:lion-config rates:constant-scheduler-config --rates.lr 2 --rule.beta-1 0.5"
    chosen = Based(optim.LionConfig(beta_1=0.5), optim.ConstantSchedulerConfig(2.0))
    assert train.cli(main, words.split()) == chosen
    held = optim.WarmUpSchedulerConfig(optim.ConstantSchedulerConfig(3.0), 7)
    words = "--rates.steps 7 --rates.schedule.lr 3"
    assert train.cli(main, words.split()) == Based(rates=held)


def test_a_file_says_what_the_line_does_not(tmp_path: Path) -> None:
    old = Settings(optimizer=optim.SgdConfig(momentum=0.5), batch=7)
    file = str(old.save(tmp_path / "config.json"))
    assert said("--config", file) == said(f"--config={tmp_path}") == old
    assert said("--batch", "9", "--config", file) == old.replace(batch=9)


def test_help_says_what_docstrings_say(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        said("--help")
    out = capsys.readouterr().out
    for text in ("Train a classifier of garments.", "examples of a step", "how wide it is"):
        assert text in out
    assert "--config FILE" in out
    assert "share of the parameter, times the rate" in " ".join(out.replace("│", " ").split())


def test_errors_name_the_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--batch" in refused(capsys, "--batch", "x")
    assert "--model.hidden" in refused(capsys, "--model.hiden", "3")
    text = refused(capsys, "--schedule.steps", "-4")
    assert "CosineSchedulerConfig.steps makes no sense: got -4" in text

    def main(settings: Needed) -> None:
        del settings

    assert "--rate" in refused(capsys, main=main)


def test_files_that_cannot_be_read_are_clear_errors(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "--config cannot be read" in refused(capsys, "--config", str(tmp_path / "no.json"))
    assert "--config cannot be read" in refused(capsys, "--config")
    (tmp_path / "a.json").write_text('{"batsch": 3}')
    assert "no such field: got batsch" in refused(capsys, "--config", str(tmp_path / "a.json"))


def test_a_function_without_a_config_is_refused() -> None:
    def two(a: Settings, b: int) -> None: ...
    def untyped(settings): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    wrong: Any
    for wrong in (two, untyped, 3, int, lambda: 3):
        with pytest.raises(TypeError, match=r"\[cli\] main takes no config(.|\n)*def main"):
            train.cli(wrong, [])


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tyro", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "phlox-train\[cli\]"'):
        said()
