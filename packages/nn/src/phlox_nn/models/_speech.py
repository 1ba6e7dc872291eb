"""Text out of speech: windows of 30 seconds, the likeliest token each time, and its times."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from phlox_tensor import (
    ArgumentError,
    Float,
    RecordError,
    Tensor,
    asarray,
    fft,
    int16,
    isdtype,
    isfinite,
)
from phlox_tensor.names import some

from ._causal import Caches
from ._whisper import HOP, RATE, Whisper, log_mel

_SETTINGS: Final = "generation_config.json"
_SETTINGS_BYTES: Final = 16 << 20
_TICK: Final = 0.02  # seconds between two tokens of time
_Scores = np.ndarray[Any, Any]


class Segment(NamedTuple):
    """What was said, and when.

    Attributes:
        start: seconds from the start of the sound.
        end: the same.
        tokens: those of text alone.
    """

    start: float
    end: float
    tokens: tuple[int, ...]


class Transcript(NamedTuple):
    """What was said in a sound.

    Attributes:
        segments: one after the other.
        language: the word for it, such as ``"en"``; None for a model of one language.
    """

    segments: tuple[Segment, ...]
    language: str | None


@dataclass(frozen=True)
class SpeechTokens:
    """Tokens of Whisper that are no text, and those that it must not say.

    Attributes:
        start: begins a text.
        end: ends it; those below are text.
        no_timestamps: says that no times follow; those above are times, 0.02 seconds apart.
        languages: token by language, ``"en"``; empty for a model of one language.
        tasks: token by task, ``"transcribe"`` and ``"translate"``.
        suppressed: never said.
        suppressed_first: not said first.
        latest_first: the latest time that a window may begin with, in steps of 0.02 seconds.
    """

    start: int = 50258
    end: int = 50257
    no_timestamps: int = 50363
    languages: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()
    latest_first: int | None = 50

    @classmethod
    def read(cls, folder: str | Path) -> SpeechTokens:
        """Return those of the ``generation_config.json`` of a published folder.

        Raises:
            FileNotFoundError: there is none.
            RecordError: for a file that is none of Whisper.
        """
        path = Path(folder) / _SETTINGS
        if path.stat().st_size > _SETTINGS_BYTES:
            got = f"{path.stat().st_size:,} bytes"
            raise RecordError("transcribe", f"{_SETTINGS} is too large", got=got)
        try:
            given = json.loads(path.read_bytes())
            return cls(
                start=int(given["decoder_start_token_id"]),
                end=int(given["eos_token_id"]),
                no_timestamps=int(given["no_timestamps_token_id"]),
                languages={k.strip("<|>"): int(v) for k, v in _of(given, "lang_to_id").items()},
                tasks={k: int(v) for k, v in _of(given, "task_to_id").items()},
                suppressed=tuple(map(int, given.get("suppress_tokens") or ())),
                suppressed_first=tuple(map(int, given.get("begin_suppress_tokens") or ())),
                latest_first=given.get("max_initial_timestamp_index"),
            )
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            got = f"{type(error).__name__}: {error}"
            raise RecordError("transcribe", f"{_SETTINGS} is none of Whisper", got=got) from None

    def beginning(self, language: str | None, task: str, *, timestamps: bool) -> tuple[int, ...]:
        """Return the tokens that a window begins with.

        Raises:
            ArgumentError: for a language or a task that there is no token for.
        """
        said = [self.start]
        if self.languages:
            said.append(_known("language", language, self.languages))
            said.append(_known("task", task, self.tasks))
        elif language is not None or task != "transcribe":
            got, expected = f"language {language!r}, task {task!r}", "neither"
            raise ArgumentError(
                "transcribe", "the model has one language", got=got, expected=expected
            )
        return (*said, *(() if timestamps else (self.no_timestamps,)))

    def allowed(self, scores: _Scores, said: Sequence[int], *, timestamps: bool) -> _Scores:
        """Return scores (words,) with -inf for what must not follow.

        Times come in pairs, the end of a segment and the start of the next, and do not fall; one is
        said where all of them together are likelier than the likeliest word.

        Args:
            scores: logits.
            said: all after the beginning.
            timestamps: whether times are said.
        """
        scores = scores.astype(np.float32)
        scores[list(self.suppressed)] = -inf
        if not said:
            scores[list(self.suppressed_first)] = -inf
        if not timestamps:
            scores[self.no_timestamps :] = -inf
            return scores
        first = self.no_timestamps + 1
        scores[self.no_timestamps] = -inf
        times = [token for token in said if token >= first]
        if times:
            closed = len(said) < 2 or said[-2] >= first
            just = said[-1] >= first
            if just and closed:
                scores[first:] = -inf
            elif just:
                scores[: self.end] = -inf
            scores[first : times[-1] + (not just or closed)] = -inf
        elif not said:
            scores[:first] = -inf
            if self.latest_first is not None:
                scores[first + self.latest_first + 1 :] = -inf
        likeliest, among = scores[:first].max(), scores[first:]
        top = among.max(initial=-inf)
        if top > -inf and top + np.log(np.exp(among - top).sum()) > likeliest:
            scores[:first] = -inf
        return scores


def _of(given: Any, name: str) -> Mapping[str, Any]:
    return given.get(name) or {} if given.get("is_multilingual", True) else {}


def _known(what: str, word: Any, known: Mapping[str, int]) -> int:
    if word not in known:
        expected = some(sorted(known))
        near = str(word).strip("<|>").lower()
        hint = f"{what}={near!r}" if near in known else None
        raise ArgumentError(
            "transcribe", f"unknown {what}", got=repr(word), expected=expected, hint=hint
        )
    return known[word]


def transcribe(
    model: Whisper,
    audio: Any,
    *,
    sample_rate: int = RATE,
    language: str | None = None,
    task: str = "transcribe",
    timestamps: bool = True,
    tokens: SpeechTokens | None = None,
    each: Callable[[Segment], None] | None = None,
) -> Transcript:
    """Return what is said in a sound of any length.

    A window of 30 seconds is heard at a time, and the likeliest token taken each time; the next
    window begins where the last whole segment ends. Without times a window follows the other.

    Args:
        model: of ``nn.models.load``, or any.
        audio: samples (length,) from -1 to 1, a tensor or an array.
        sample_rate: how many a second; others than 16,000 are resampled.
        language: what is spoken, such as ``"en"``; None for the model to find out in the first
            window.
        task: ``"transcribe"``, or ``"translate"`` into English.
        timestamps: whether segments are those that the model tells; else a window is one.
        tokens: that are no text; None for those of the folder of the model.
        each: is called with each segment as it is found.

    Raises:
        ArgumentError: for audio that is no line of finite floats, a rate that is none, an unknown
            language or task, tokens of another model, and a model without a folder when there are
            no tokens.
        FileNotFoundError: the folder has no ``generation_config.json``.
        RecordError: the file there is none of Whisper.

    Example:
        >>> import phlox as px
        >>> from phlox_nn import models
        >>> px.seed(0)
        >>> model = models.WhisperConfig(60, 12, frames=50, d_model=8, n_heads=2).init()
        >>> given = models.SpeechTokens(start=1, end=8, no_timestamps=8)
        >>> models.transcribe(model, px.zeros(16000), timestamps=False, tokens=given).language
    """
    rules = _tokens_of(model) if tokens is None else tokens
    _check_words(rules, model.settings.words)
    quiet = model.with_training(False).freeze()
    frames, count = _frames(quiet, audio, sample_rate)
    window, found = 2 * model.settings.frames, list[Segment]()
    start = 0
    while start < count:
        part = frames[:, start : start + window]
        given = min(window, count - start)
        heard = quiet.hear(part.pad(((0, 0), (0, window - part.shape[-1])))[None])
        if rules.languages and language is None:
            language = _language(quiet, heard, rules)
        first = rules.beginning(language, task, timestamps=timestamps)
        said = _greedy(quiet, heard, first, rules, timestamps=timestamps)
        made, step = _segments(said, rules, start, given)
        for segment in made:
            found.append(segment)
            if each is not None:
                each(segment)
        start += step
    return Transcript(tuple(found), language)


def _check_words(rules: SpeechTokens, words: int) -> None:
    """Refuse tokens that the model does not have."""
    named = (rules.start, rules.end, *rules.languages.values(), *rules.tasks.values())
    most = max(*named, *rules.suppressed, *rules.suppressed_first)
    if most >= words:
        what, expected = "the tokens are of another model", f"tokens below {words}"
        raise ArgumentError("transcribe", what, got=most, expected=expected)


def _tokens_of(model: Whisper) -> SpeechTokens:
    if model.source is None:
        raise ArgumentError(
            "transcribe",
            "a model without a folder",
            got="no tokens",
            expected="those that are no text",
            hint="tokens=nn.models.SpeechTokens(start=..., end=..., no_timestamps=...)",
        )
    place = Path(model.source)
    return SpeechTokens.read(place if place.is_dir() else place.parent)


def _frames(model: Whisper, audio: Any, sample_rate: int) -> tuple[Tensor[Float], int]:
    """Frames (mels, length) of all, at least those of a window, and how many are of the sound."""
    if type(sample_rate) is not int or sample_rate < 1:
        raise ArgumentError(
            "transcribe",
            "no rate",
            got=repr(sample_rate),
            expected="an int above 0",
            hint="sample_rate=16000",
        )
    table = model.decoder.embed_tokens.weight.value
    given = audio if isinstance(audio, Tensor) else asarray(np.asarray(audio), device=table.device)
    if given.ndim != 1:
        hint = "audio.mean(axis=0)" if given.ndim == 2 else None
        raise ArgumentError(
            "transcribe", "no line of samples", got=given.shape, expected="(length,)", hint=hint
        )
    if not isdtype(given.dtype, "real floating"):
        hint = "audio.astype(np.float32) / 32768" if given.dtype == int16 else None
        raise ArgumentError(
            "transcribe",
            "samples are not from -1 to 1",
            got=given.dtype,
            expected="floats",
            hint=hint,
        )
    if not isfinite(given).all():
        raise ArgumentError(
            "transcribe", "samples that are no numbers", got="an infinity or NaN", expected="floats"
        )
    samples = given.astype(table.dtype).to_device(table.device)
    if sample_rate != RATE:
        samples = fft.resample(samples, sample_rate, RATE)
    length, window = samples.shape[0], 2 * model.settings.frames * HOP
    samples = samples.pad(((0, max(window - length, 0)),))
    frames = log_mel(samples, model.settings.mels)
    return frames, max(min(-(-length // HOP), frames.shape[-1]), 1)


def _language(model: Whisper, heard: Caches, rules: SpeechTokens) -> str:
    """The likeliest language of a window."""
    scores = _Writer(model, heard).after((rules.start,))
    return max(rules.languages, key=lambda name: float(scores[rules.languages[name]]))


class _Writer:
    """Logits of what follows, of one window."""

    def __init__(self, model: Whisper, heard: Caches) -> None:
        self.model = model
        self.heard = heard
        self.cache: Caches | None = None

    def after(self, tokens: Sequence[int]) -> _Scores:
        """Read more tokens; return the logits (words,) after them."""
        given = asarray(np.array([tokens]), device=self.heard[0].keys.device)
        logits, self.cache = self.model.extend(given, self.heard, self.cache, last=True)
        return logits.numpy()[0, -1]


def _greedy(
    model: Whisper, heard: Caches, first: tuple[int, ...], rules: SpeechTokens, *, timestamps: bool
) -> list[int]:
    """The likeliest tokens, until the end or until all positions are full."""
    writer, said, new = _Writer(model, heard), list[int](), list(first)
    for _ in range(model.settings.positions - len(first)):
        scores = rules.allowed(writer.after(new), said, timestamps=timestamps)
        token = int(scores.argmax())
        if token == rules.end:
            break
        said.append(token)
        new = [token]
    return said


def _segments(
    said: list[int], rules: SpeechTokens, start: int, given: int
) -> tuple[list[Segment], int]:
    """Segments of a window, and how many frames on the next one begins."""
    first = rules.no_timestamps + 1
    before, second = start * HOP / RATE, HOP / RATE
    is_time = [token >= first for token in said]
    cuts = [i + 1 for i in range(len(said) - 1) if is_time[i] and is_time[i + 1]]
    if not cuts:
        times = [token - first for token in said if token > first]
        last = times[-1] * _TICK if times else given * second
        return [Segment(before, before + last, _text(said, rules))], given
    open_end = is_time[-2:] == [False, True]  # silence follows, up to the end of the window
    edges = [0, *cuts, len(said)] if open_end else [0, *cuts]
    made = []
    for a, b in pairwise(edges):
        begin, end = ((said[i] - first) * _TICK for i in (a, b - 1))
        made.append(Segment(before + begin, before + end, _text(said[a:b], rules)))
    if open_end:
        return made, given
    return made, (said[cuts[-1] - 1] - first) * round(_TICK / second)


def _text(said: Sequence[int], rules: SpeechTokens) -> tuple[int, ...]:
    return tuple(token for token in said if token < rules.end)
