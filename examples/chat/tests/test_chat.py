"""A tiny model that learns capitals, and the folder that it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.chat.__main__ import main
from examples.chat.facts import CAPITALS, QUESTIONS, talks
from examples.chat.teach import Settings, examples_of, make_tokenizer
from phlox import text
from phlox._cli import main as command


def test_targets_are_the_tokens_of_the_answer_and_its_end() -> None:
    tokenizer = text.Tokenizer(make_tokenizer())
    found = examples_of(tokenizer, talks())
    assert len(found) == len(CAPITALS) * len(QUESTIONS)
    for each in found:
        counted = each["targets"] != -1
        assert np.array_equal(each["targets"][counted], each["tokens"][counted])
        answer = tokenizer.decode(each["targets"][counted].tolist(), special=True)
        assert answer.startswith("The capital of ")
        assert answer.endswith(".<|end|>")


def test_the_model_learns_all_capitals_and_talks(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "capitals"
    main(Settings(folder=str(folder)))
    assert "48 of 48 answers are right" in capsys.readouterr().out
    chat = text.load(folder).chat()
    assert chat.send("Which city is the capital of Norway?") == "The capital of Norway is Oslo."
    prompt = "<|user|>And of Kenya?<|end|><|assistant|>"
    assert command(["run", str(folder), "--prompt", prompt]) == 0
    assert capsys.readouterr().out == "The capital of Kenya is Nairobi.\n"
