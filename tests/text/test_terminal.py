"""`phlox run` and `phlox chat`."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pytest

from phlox import text
from phlox._cli import main
from tests.text.folders import write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("model"))


def test_run_prints_what_a_model_gives(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    want = text.load(folder).generate("Now is", max_tokens=20, seed=4, top_k=9, stop=["zz", "qq"])
    rules = ["--max-tokens", "20", "--seed", "4", "--top-k", "9", "--stop", "zz", "--stop", "qq"]
    assert main(["run", str(folder), "--prompt", "Now is", *rules]) == 0
    shown = capsys.readouterr()
    assert shown.out == want + "\n"
    assert "tokens read in" in shown.err
    assert "tokens/s" in shown.err
    monkeypatch.setattr("sys.stdin", io.StringIO("Now is"))
    assert main(["run", str(folder), *rules, "--quiet", "--device", "numpy", "--compile"]) == 0
    shown = capsys.readouterr()
    assert shown.out == want + "\n"
    assert shown.err == ""


def test_chat_answers_line_by_line(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    chat = text.load(folder).chat("Be brief.")
    want = [chat.send(said, max_tokens=8, seed=1) for said in ("Hello", "And?")]
    typed = f"Hello\n\nAnd?\n{'long ' * 300}\n/new\nHello\n/exit\nnever\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    rules = ["--system", "Be brief.", "--max-tokens", "8", "--seed", "1"]
    assert main(["chat", str(folder), *rules]) == 0
    shown = capsys.readouterr()
    assert shown.out == "".join(f"{line}\n" for line in [*want, want[0]])
    assert shown.err.count("tokens read") == 3
    assert shown.err.count("the context has no room") == 1


def test_an_interrupt_ends_the_answer_alone(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    taken: list[str] = []

    def interrupted(self: text.Answer) -> str:
        if len(taken) == 2:
            taken.append("")
            raise KeyboardInterrupt
        piece = following(self)
        taken.append(piece)
        return piece

    following = text.Answer.__next__
    monkeypatch.setattr(text.Answer, "__next__", interrupted)
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\nAgain\n"))
    assert main(["chat", str(folder), "--max-tokens", "30", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("".join(taken[:2]))
    assert "".join(taken[3:]) in "\n".join(lines[1:])


def test_what_is_wrong_is_said_in_a_line(folder: Path, tmp_path: Path, capsys: Any) -> None:
    def refused(*words: str) -> str:
        assert main([*words]) == 1
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        assert shown.out == ""
        return str(shown.err)

    none = refused("run", str(tmp_path / "none"), "--prompt", "x")
    assert "there is no model" in none
    assert none.endswith(f'hint: ls "{tmp_path}"\n')
    assert "no choice" in refused("run", str(folder), "--prompt", "x", "--temperature", "-1")
    assert "nothing to go on from" in refused("run", str(folder), "--prompt", "")
    bare = Path(shutil.copytree(folder, tmp_path / "bare"))
    (bare / "tokenizer_config.json").unlink()
    assert "hint: model.generate" in refused("chat", str(bare))
    (bare / "model.safetensors").unlink()
    assert "model.safetensors" in refused("run", str(bare), "--prompt", "x")
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "--repetition-penalty" in capsys.readouterr().out
