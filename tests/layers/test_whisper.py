"""Text out of speech: frames of sound, what must not follow, segments, windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox.nn import models
from tests.layers.media_rows import DEVICE, TOKENS, given, model_of

SPOKEN = np.random.default_rng(3).normal(size=30000).astype("f") * 0.1
SAID = {
    "begin_suppress_tokens": [3, 40],
    "bos_token_id": 40,
    "decoder_start_token_id": 41,
    "eos_token_id": 40,
    "is_multilingual": True,
    "lang_to_id": {"<|de|>": 43, "<|en|>": 42},
    "max_initial_timestamp_index": 20,
    "max_length": 30,
    "no_timestamps_token_id": 48,
    "pad_token_id": 40,
    "suppress_tokens": [1, 2, 41, 42, 43, 44, 45, 46, 47],
    "task_to_id": {"transcribe": 44, "translate": 45},
}

FRAME = [0.386952, 0.707202, 0.614452, 0.65787, 0.70578, 0.68419, 0.515507, 0.663826]
SEGMENTS = [(0.02, 3.16, [12]), (3.16, 3.18, [12]), (3.18, 3.28, [12]), (3.28, 3.34, [12, 12, 12])]


def folder_of(place: Path) -> Path:
    """The small model with its tokens, on a disk."""
    folder = models.save(model_of("Whisper"), place)
    (folder / "generation_config.json").write_text(json.dumps(SAID))
    return folder


def test_frames_are_those_of_the_paper() -> None:
    """Computed by the feature extractor of transformers 5.24."""
    sound = px.asarray(SPOKEN[:16000], device=DEVICE)
    found = models.log_mel(sound).numpy()
    assert found.shape == (80, 100)
    assert np.abs(found[::10, 50] - FRAME).max() < 1e-5
    assert models.log_mel(sound, 128).shape == (128, 100)


@pytest.mark.long
@pytest.mark.parametrize("mels", [80, 128])
def test_frames_are_those_of_transformers(mels: int) -> None:
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    make = other.WhisperFeatureExtractor(feature_size=mels)
    want = make(SPOKEN, sampling_rate=16000, return_tensors="np").input_features[0]
    sound = px.asarray(np.pad(SPOKEN, (0, 480000 - len(SPOKEN))), device=DEVICE)
    assert np.abs(models.log_mel(sound, mels).numpy() - want).max() < 1e-5


def test_a_cache_gives_what_there_is_at_once() -> None:
    model, (frames, tokens) = model_of("Whisper"), given("Whisper")
    heard, cache, found = model.hear(frames), None, []
    for start, end in ((0, 3), (3, 4), (4, 7)):
        logits, cache = model.extend(tokens[:, start:end], heard, cache)
        found.append(logits.numpy())
    want = model(frames, tokens).numpy()
    assert np.abs(np.concatenate(found, axis=1) - want).max() < 1e-5
    last, _ = model.extend(tokens, heard, last=True)
    assert np.abs(last.numpy() - want[:, -1:]).max() < 1e-5


RULES = models.SpeechTokens(4, 3, 5, suppressed=(1,), suppressed_first=(0, 3), latest_first=2)


@pytest.mark.parametrize(
    ("said", "likely", "allowed"),
    [
        ([], 0, [6, 7, 8]),  # first a time, not a late one
        ([6], 0, [0, 2, 3, 4]),  # then text
        ([6, 0], 0, [0, 2, 3, 4, 7, 8, 9, 10]),  # a time that ends it is a later one
        ([6, 0, 8], 8, [8, 9, 10]),  # behind which the next begins, at the same or a later time
        ([6, 0, 8], 3, [3, 4, 8, 9, 10]),  # or nothing
        ([6, 0, 8, 9], 0, [0, 2, 3, 4]),
        ([6, 0], 9, [7, 8, 9, 10]),  # where times are likelier together than a word
    ],
)
def test_times_follow_the_rules_of_the_paper(
    said: list[int], likely: int, allowed: list[int]
) -> None:
    scores = np.zeros(11)
    scores[likely] = 5.0
    found = RULES.allowed(scores, said, timestamps=True)
    assert np.flatnonzero(np.isfinite(found)).tolist() == allowed


def test_without_times_text_follows_that_is_not_suppressed() -> None:
    first = RULES.allowed(np.zeros(11), [], timestamps=False)
    assert np.flatnonzero(np.isinf(first)).tolist() == [0, 1, 3, *range(5, 11)]
    then = RULES.allowed(np.zeros(11), [7], timestamps=False)
    assert np.flatnonzero(np.isinf(then)).tolist() == [1, *range(5, 11)]


def test_a_long_sound_is_heard_in_windows(tmp_path: Path) -> None:
    """Two seconds of sound in windows of one; segments are those of transformers 5.24."""
    model: Any = models.load(folder_of(tmp_path), DEVICE)
    each: list[models.Segment] = []
    found = models.transcribe(model, SPOKEN, language="de", each=each.append)
    assert found.language == "de"
    assert each == list(found.segments)
    assert [(round(s.start, 2), round(s.end, 2), list(s.tokens)) for s in each] == SEGMENTS
    plain = models.transcribe(model, SPOKEN, language="de", timestamps=False)
    assert [(s.start, s.end) for s in plain.segments] == [(0.0, 1.0), (1.0, 1.87)]
    told = models.transcribe(model, SPOKEN)
    assert told.language in {"de", "en"}
    half = models.transcribe(model, SPOKEN, sample_rate=32000, timestamps=False)
    assert [s.end for s in half.segments] == pytest.approx(
        [0.94]
    )  # of the sound, not of the window


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_segments_are_those_of_transformers(seed: int, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    folder = folder_of(tmp_path)
    there = other.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    ours: Any = models.load(folder, DEVICE)
    sound = np.random.default_rng(seed).normal(size=16000 + 9000 * seed).astype("f")
    frames = models.log_mel(px.asarray(sound, device=DEVICE), 8).numpy()
    with torch.no_grad():
        told = there.generate(
            torch.tensor(frames[None]), language="de", return_timestamps=True, return_segments=True
        )
    want = [
        (float(s["start"]), float(s["end"]), tuple(t for t in s["tokens"].tolist() if t < 40))
        for s in told["segments"][0]
    ]
    found = models.transcribe(ours, sound, language="de").segments
    assert [s.tokens for s in found] == [tokens for _, _, tokens in want]
    times = [(s.start, s.end) for s in found]
    assert np.abs(np.array(times) - [(start, end) for start, end, _ in want]).max() < 1e-6


def test_what_cannot_be_transcribed_is_refused(tmp_path: Path) -> None:
    model = model_of("Whisper")
    with pytest.raises(px.ArgumentError, match="a model without a folder"):
        models.transcribe(model, SPOKEN)
    place = models.save(model, tmp_path)
    loaded: Any = models.load(place, DEVICE)
    with pytest.raises(FileNotFoundError, match="generation_config"):
        models.transcribe(loaded, SPOKEN)
    (place / "generation_config.json").write_text('{"eos_token_id": 3}')
    with pytest.raises(px.RecordError, match="none of Whisper: got KeyError"):
        models.transcribe(loaded, SPOKEN)
    loaded = models.load(folder_of(tmp_path), DEVICE)
    with pytest.raises(px.ArgumentError, match="unknown language: got 'fr', expected de, en"):
        models.transcribe(loaded, SPOKEN, language="fr")
    with pytest.raises(px.ArgumentError, match="unknown task"):
        models.transcribe(loaded, SPOKEN, language="de", task="sing")
    with pytest.raises(px.ArgumentError, match=r"no line of samples: got \(2, 15000\)"):
        models.transcribe(loaded, SPOKEN.reshape(2, -1), language="de")
    with pytest.raises(px.ArgumentError, match="from -1 to 1: got int16, expected floats") as info:
        models.transcribe(loaded, (SPOKEN * 9).astype(np.int16), language="de")
    assert "/ 32768" in str(info.value)
    with pytest.raises(px.ArgumentError, match="no numbers: got an infinity or NaN"):
        models.transcribe(loaded, np.where(SPOKEN > 0.1, np.nan, SPOKEN), language="de")
    rates: tuple[Any, ...] = (16000.0, True, None, 0)
    for rate in rates:
        with pytest.raises(px.ArgumentError, match=f"no rate: got {rate}"):
            models.transcribe(loaded, SPOKEN, sample_rate=rate)
    with pytest.raises(px.ArgumentError, match="unknown language") as info:
        models.transcribe(loaded, SPOKEN, language="<|DE|>")
    assert "language='de'" in str(info.value)
    with pytest.raises(px.ArgumentError, match="of another model: got 50258"):
        models.transcribe(loaded, SPOKEN, tokens=models.SpeechTokens())
    with pytest.raises(px.ArgumentError, match="the model has one language"):
        models.transcribe(loaded, SPOKEN, language="de", tokens=RULES)
    with pytest.raises(px.ShapeError, match=r"no windows of sound: got \(1, 8, 99\)"):
        model.hear(px.zeros((1, 8, 99), device=DEVICE))
    for wrong in (TOKENS[0], TOKENS[[0, 0, 0]]):
        with pytest.raises(px.ShapeError, match="tokens are not those of the windows"):
            model(given("Whisper")[0][:1], px.asarray(wrong, device=DEVICE))
    many = px.asarray(np.tile(TOKENS[:1], 5), device=DEVICE)
    with pytest.raises(px.ShapeError, match="got 35 tokens, expected at most 30"):
        model(given("Whisper")[0][:1], many)


@pytest.mark.parametrize("name", ["words", "frames", "mels", "positions", "d_ff"])
def test_no_size_of_a_model_is_zero(name: str) -> None:
    with pytest.raises(nn.ConfigError, match=f"{name}.*more than 0|{name}.*at least 1"):
        models.WhisperConfig(**{name: 0})
