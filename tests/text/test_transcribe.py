"""`phlox transcribe`: wave files in, words out."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import pre_tokenizers

from phlox import text
from phlox._cli import main
from phlox_text._transcribe import read_wave
from tests.layers.test_whisper import SPOKEN, folder_of

RATE = 16000


def write_wave(path: Path, samples: Any, width: int = 2, channels: int = 1) -> Path:
    """Write samples from -1 to 1, each channel the same."""
    whole = np.round(np.asarray(samples, np.float64) * (2 ** (8 * width - 1) - 1)).astype(np.int64)
    whole = whole.repeat(channels) + (128 if width == 1 else 0)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(RATE)
        file.writeframes(whole.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Whisper whose tokens are words."""
    made = folder_of(tmp_path_factory.mktemp("whisper"))
    words = {f"word{i}": i for i in range(50)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="word0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(made / "tokenizer.json"))
    return made


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_all_widths_are_numbers(width: int, channels: int, tmp_path: Path) -> None:
    given = np.linspace(-0.9, 0.9, 50)
    found, rate = read_wave(write_wave(tmp_path / "a.wav", given, width, channels))
    assert rate == RATE
    assert found.dtype == np.float32
    assert found.shape == (50,)
    assert np.abs(found - given).max() <= 1.5 / 2 ** (8 * min(width, 3) - 1)


def test_words_are_written_down(folder: Path, tmp_path: Path, capsys: Any) -> None:
    sound = str(write_wave(tmp_path / "a.wav", SPOKEN.clip(-1, 1)))
    assert main(["transcribe", str(folder), sound, "--language", "de", "--times"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0:00:00.02 0:00:03.16  word12"
    assert len(lines) == 4
    assert main(["transcribe", str(folder), sound, "--language", "de", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.splitlines() == [line[23:] for line in lines]


def test_what_is_no_sound_or_no_whisper_is_said(folder: Path, tmp_path: Path, capsys: Any) -> None:
    whole = write_wave(tmp_path / "a.wav", SPOKEN[:800].clip(-1, 1))
    (tmp_path / "cut.wav").write_bytes(whole.read_bytes()[:-10])
    (tmp_path / "text.wav").write_text("no sound at all, and long enough to be a header")
    wide = bytearray(whole.read_bytes())
    wide[34] = 64  # bits of a sample
    (tmp_path / "wide.wav").write_bytes(wide)
    rows = [
        (tmp_path / "wide.wav", "got 64 bits, expected PCM"),
        (tmp_path / "cut.wav", "no wave file that is read: got 1,590 bytes of 1,600"),
        (tmp_path / "text.wav", "expected PCM of 8, 16, 24 or 32 bits"),
        (tmp_path / "none.wav", "cannot be read: got No such file"),
    ]
    for path, message in rows:
        assert main(["transcribe", str(folder), str(path)]) == 1
        assert message in capsys.readouterr().err
    none = str(tmp_path / "none")
    assert main(["transcribe", none, str(whole)]) == 1
    said = f'[transcribe] no such file or directory: got {none}\nhint: ls "{tmp_path}"\n'
    assert capsys.readouterr().err == said
    assert main(["transcribe", str(folder), str(whole), "--language", "fr"]) == 1
    assert "unknown language" in capsys.readouterr().err
    with pytest.raises(text.TextError, match="ffmpeg"):
        read_wave(tmp_path / "text.wav")
