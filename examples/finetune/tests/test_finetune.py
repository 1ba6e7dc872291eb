"""A model in a file that learns a form of answers, and the files that come of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.finetune.__main__ import main
from examples.finetune.tune import Settings, talks
from phlox import nn, text


def test_one_question_of_each_country_is_not_shown() -> None:
    shown, others = list(talks(shown=True)), list(talks(shown=False))
    assert (len(shown), len(others)) == (36, 12)
    assert not set(shown) & set(others)


def test_adapters_teach_a_form_and_are_merged_into_both_kinds_of_files(
    tmp_path: Path, capsys: Any
) -> None:
    main(Settings(base=str(tmp_path / "capitals"), folder=str(tmp_path / "out")))
    said = capsys.readouterr().out
    assert "before: 0 of 36 answers are right, and 0 of 12" in said
    for name in ("adapters", "merged"):
        assert f"{name}: 36 of 36 answers are right, and 12 of 12" in said
    assert isinstance(nn.models.load(tmp_path / "out" / "tuned.gguf"), nn.models.Llama)
    chat = text.load(tmp_path / "out" / "tuned").chat()
    assert chat.send("And of Peru?") == '{"country": "Peru", "capital": "Lima"}'
