"""`phlox transcribe`: what is said in a sound."""

from __future__ import annotations

import argparse
import sys
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from phlox_nn import models
from phlox_tensor import PhloxError
from phlox_tensor.files import told

from ._errors import TextError
from ._tokenizer import Tokenizer

_MOST_BYTES: Final = 2 << 30  # 18 hours at 16,000 samples of 16 bits a second
_WIDE: Final = {2: "<i2", 4: "<i4"}
_HOW: Final = "ffmpeg -i sound.mp3 -ac 1 -ar 16000 sound.wav"


def read_wave(path: Path) -> tuple[Any, int]:
    """Return the samples of a wave file, (length,) from -1 to 1, channels mixed; and their rate.

    Raises:
        TextError: for a file that is none, is cut short, too large, or of other samples than PCM.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            expected = f"at most {_MOST_BYTES:,}"
            raise TextError("transcribe", f"{path} is too large", got=size, expected=expected)
        with wave.open(str(path)) as file:
            channels, width, rate, count, *_ = file.getparams()
            raw = file.readframes(count)
    except OSError as error:
        raise TextError("transcribe", f"{path} cannot be read", got=error.strerror) from None
    except (EOFError, wave.Error) as error:
        raise _no_wave(path, str(error) or "a file that ends early") from None
    if width not in {1, 2, 3, 4}:
        raise _no_wave(path, f"{8 * width} bits")
    if len(raw) != count * channels * width or not rate:
        raise _no_wave(path, f"{len(raw):,} bytes of {count * channels * width:,}")
    return _floats(raw, width).reshape(-1, channels).mean(axis=1, dtype=np.float32), rate


def _floats(raw: bytes, width: int) -> Any:
    """Numbers from -1 to 1; those of one byte have 128 for 0."""
    if width == 1:
        return np.frombuffer(raw, np.uint8).astype(np.float32) / 128.0 - 1.0
    if width == 3:  # as the upper bytes of four
        whole = np.zeros((len(raw) // 3, 4), np.uint8)
        whole[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        return whole.view("<i4")[:, 0].astype(np.float32) / 2.0**31
    found = np.frombuffer(raw, _WIDE[width]).astype(np.float32)
    return found / 2.0 ** (8 * width - 1)


def _no_wave(path: Path, got: object) -> TextError:
    what, expected = f"{path} is no wave file that is read", "PCM of 8, 16, 24 or 32 bits"
    return TextError("transcribe", what, got=got, expected=expected, hint=_HOW)


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(argv)
    try:
        model = models.load(options.folder, options.device)
        if not isinstance(model, models.Whisper):
            got, expected = type(model).__name__, "Whisper"
            raise TextError("transcribe", "the model does not hear", got=got, expected=expected)
        tokenizer = Tokenizer.load(options.folder)
        audio, rate = read_wave(Path(options.audio))

        def say(segment: models.Segment) -> None:
            words = tokenizer.decode(segment.tokens).strip()
            times = f"{_clock(segment.start)} {_clock(segment.end)}  " if options.times else ""
            print(f"{times}{words}", flush=True)

        models.transcribe(
            model,
            audio,
            sample_rate=rate,
            language=options.language,
            task="translate" if options.translate else "transcribe",
            each=say,
        )
    except KeyboardInterrupt:
        return 130
    except (PhloxError, OSError) as error:
        print(told("transcribe", error), file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="phlox transcribe", description="Write down what is said in a sound."
    )
    parser.add_argument("folder", help="a folder of Whisper, with tokenizer.json")
    parser.add_argument("audio", help="a wave file")
    parser.add_argument("--language", help="such as en; by default the model finds out")
    parser.add_argument("--translate", action="store_true", help="into English")
    parser.add_argument("--times", action="store_true", help="say when each part begins and ends")
    parser.add_argument("--device", help="cpu, wgpu, numpy; by default the default device")
    return parser


def _clock(seconds: float) -> str:
    hundredths = round(seconds * 100)
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes // 60}:{minutes % 60:02}:{rest / 100:05.2f}"
