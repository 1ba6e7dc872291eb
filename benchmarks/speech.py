"""Whisper of the smallest size, with random weights, beside that of transformers if it is there."""

from __future__ import annotations

from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run
from phlox import nn

SECONDS, RATE = 30, 16000
POSITIONS = 104  # so many tokens as 30 seconds of quick English have
TOKENS = nn.models.SpeechTokens()


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    px.seed(0)
    device = px.Cpu()
    sound = np.random.default_rng(0).normal(size=SECONDS * RATE).astype(np.float32) * 0.1
    model = nn.models.WhisperConfig(positions=POSITIONS).init(device)
    with TemporaryDirectory() as folder:
        nn.models.save(model, folder)
        twins: dict[str, Run] = (
            _transformers(folder, sound) if with_torch and find_spec("transformers") else {}
        )
    wanted = {"30 s to 102 tokens": 1.2}
    return [
        Case(name, run, twins.get(name), times=wanted.get(name, 0.0))
        for name, run in _phlox(model, sound)
    ]


def _phlox(model: nn.models.Whisper, sound: Any) -> list[tuple[str, Run]]:
    audio = px.asarray(sound, device=px.Cpu())
    frames = nn.models.log_mel(audio)[None]
    quiet = model.valid()

    def whole() -> Any:
        return nn.models.transcribe(model, audio, timestamps=False, tokens=TOKENS)

    return [
        ("frames of 30 s", lambda: nn.models.log_mel(audio).numpy()),
        ("encoder of Whisper tiny", lambda: quiet.encoder(frames).numpy()),
        ("30 s to 102 tokens", whole),
    ]


def _transformers(folder: str, sound: Any) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons
    import transformers  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - the same

    transformers.logging.set_verbosity_error()
    make: Any = transformers.WhisperFeatureExtractor()
    model: Any = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    said: dict[str, Any] = {"decoder_start_token_id": TOKENS.start, "eos_token_id": TOKENS.end}
    said |= {"pad_token_id": TOKENS.end, "max_length": POSITIONS}
    said |= {"suppress_tokens": [], "begin_suppress_tokens": []}
    model.generation_config = transformers.GenerationConfig(**said, no_timestamps_token_id=50363)

    def frames() -> Any:
        return make(sound, sampling_rate=RATE, return_tensors="pt").input_features

    ready = frames()

    def encoder() -> None:
        with torch.no_grad():
            model.model.encoder(ready)

    def whole() -> None:
        with torch.no_grad():
            model.generate(frames(), return_timestamps=False)

    return {
        "frames of 30 s": frames,
        "encoder of Whisper tiny": encoder,
        "30 s to 102 tokens": whole,
    }
