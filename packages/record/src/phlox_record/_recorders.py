"""The recorders of this package: three forms, each plain or compressed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, final

from phlox_tensor import RecordError

from ._binary import COMPACT, NAMED
from ._content import Content, Form
from ._errors import Malformed, located, shown
from ._files import map_file
from ._gguf import MAGIC as GGUF_MAGIC
from ._gguf import header_values
from ._gguf import read as read_gguf
from ._gguf_writer import check_blocks
from ._gguf_writer import write as write_gguf
from ._json import JSON
from ._limits import Limits
from ._npz import NPZ
from ._precision import KeepPrecision, PrecisionSettings
from ._pytorch import PYTORCH
from ._recorder import PathLike, Recorder, by_extension, kinds
from ._safetensors import SAFETENSORS
from ._source import GZIP_MAGIC, BufferSource, GzipWriter, InflatingSource, Write

_HEAD: Final = 512  # what tells forms apart stands there


class _Plain(Recorder):
    """A form as it is."""

    form: ClassVar[Form]

    def write(self, content: Content, sink: Write) -> None:
        """Give the bytes of a file to ``sink``."""
        self.form.write(content, self.limits, sink)

    def read(self, data: memoryview) -> Content:
        """Return what the bytes hold, tensors unread."""
        return self.form.read(BufferSource(data), self.limits)

    @classmethod
    def recognizes(cls, data: memoryview) -> bool:
        """Whether bytes are a file of this recorder."""
        return cls.form.recognizes(bytes(data[:_HEAD]))


class _Zipped(Recorder):
    """A form behind gzip."""

    form: ClassVar[Form]

    def write(self, content: Content, sink: Write) -> None:
        """Give the bytes of a file to ``sink``."""
        zipped = GzipWriter(sink, self.form.cap(self.limits))
        self.form.write(content, self.limits, zipped.write)
        zipped.close()

    def read(self, data: memoryview) -> Content:
        """Return what the bytes hold, tensors unread."""
        return self.form.read(InflatingSource(data, self.form.cap(self.limits)), self.limits)

    @classmethod
    def recognizes(cls, data: memoryview) -> bool:
        """Whether bytes are a file of this recorder."""
        if bytes(data[: len(GZIP_MAGIC)]) != GZIP_MAGIC:
            return False
        try:
            return cls.form.recognizes(bytes(InflatingSource(data, 16).read(0, 12)))
        except Malformed as bad:
            if bad.what.startswith("written by a newer"):
                raise
            return False


@final
class NamedMsgpackRecorder(_Plain):
    """The default: names, scalars and tensor table in a msgpack header, then aligned data.

    Reading is lazy and survives added, removed and reordered fields.
    """

    extension = ".mpk"
    form = NAMED


@final
class NamedMsgpackGzRecorder(_Zipped):
    """`NamedMsgpackRecorder`, compressed. Reads in file order inflate it once."""

    extension = ".mpk.gz"
    form = NAMED


@final
class CompactMsgpackRecorder(_Plain):
    """Values by position, no names: smaller, and tied to the structure that wrote it."""

    extension = ".cmpk"
    form = COMPACT
    needs_like = True


@final
class CompactMsgpackGzRecorder(_Zipped):
    """`CompactMsgpackRecorder`, compressed."""

    extension = ".cmpk.gz"
    form = COMPACT
    needs_like = True


@final
class JsonRecorder(_Plain):
    """The tree as JSON, tensors as base64: to look at and to pass on; held in memory whole."""

    extension = ".json"
    form = JSON


@final
class JsonGzRecorder(_Zipped):
    """`JsonRecorder`, compressed."""

    extension = ".json.gz"
    form = JSON


@final
class NpzRecorder(_Plain):
    """NumPy's archive, which `numpy.load` reads: one array for each tensor, by dotted path.

    Archives of other programs are read too, except arrays of objects. bfloat16 is kept as its bits.
    """

    extension = ".npz"
    form = NPZ


@final
class PyTorchRecorder(_Plain):
    """Reads what ``torch.save`` wrote, without PyTorch and without running the pickle in it.

    Tensors, containers and plain values come back; a file that asks for anything else is refused.
    """

    extension = ".pt"
    aliases = (".pth", ".pth.tar", ".bin", ".ckpt")
    writes = False
    form = PYTORCH


@final
class SafetensorsRecorder(_Plain):
    """The format that other frameworks read: a JSON table of names, then the elements.

    What is no tensor goes into the metadata. Files of other programs are read too; their dotted
    names become a tree. The format has no checksums.
    """

    extension = ".safetensors"
    form = SAFETENSORS


@final
class GgufRecorder(Recorder):
    """The format of llama.cpp: a header of typed values, then tensors, some of them in blocks.

    Blocks share scales, and are widened to float32 when a tensor is read. Weights are in the layout
    of PyTorch; names are llama.cpp's, and dots make a tree of them. The format has no checksums.

    Attributes:
        blocks: patterns of names, and the form in which matrices that they fit are written.
        header: what else the header says.
    """

    extension = ".gguf"

    def __init__(
        self,
        precision: PrecisionSettings = KeepPrecision,
        *,
        limits: Limits | None = None,
        checksums: bool = True,
        blocks: Mapping[str, str] | None = None,
        header: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the settings.

        Args:
            precision: the element type of floats in the file; by default what each one has.
            limits: caps on what a file may ask for.
            checksums: nothing here; the format has none.
            blocks: patterns such as ``"blk.*.weight"``, in which ``*`` stands for anything, and one
                of Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1; the first that fits holds. Vectors stay as
                they are.
            header: bools, numbers, texts and lists of them by key, such as
                ``{"general.architecture": "llama"}``.

        Raises:
            RecordError: for a form that is not written.
        """
        super().__init__(precision, limits=limits, checksums=checksums)
        self.blocks: Final = dict(blocks or {})
        self.header: Final = dict(header or {})
        with located("recorder", type(self).__name__):
            check_blocks(self.blocks)

    def write(self, content: Content, sink: Write) -> None:
        """Give the bytes of a file to ``sink``."""
        write_gguf(content, self.limits, sink, self.blocks, self.header)

    def read(self, data: memoryview) -> Content:
        """Return what the bytes hold, tensors unread."""
        return read_gguf(BufferSource(data), self.limits)

    @classmethod
    def recognizes(cls, data: memoryview) -> bool:
        """Whether bytes are a file of this recorder."""
        return bytes(data[: len(GGUF_MAGIC)]) == GGUF_MAGIC


def gguf_metadata(path: PathLike, *, limits: Limits | None = None) -> dict[str, Any]:
    """Return what the header of a GGUF file says: bools, numbers, texts and lists of them by key.

    Raises:
        FileNotFoundError: there is no such file.
        RecordError: no GGUF file, or a damaged one.

    >>> import tempfile
    >>> from phlox_record import GgufRecorder, gguf_metadata
    >>> recorder = GgufRecorder(header={"general.name": "small", "small.block_count": 2})
    >>> gguf_metadata(recorder.record({}, tempfile.mkdtemp() + "/a"))
    {'general.name': 'small', 'small.block_count': 2}
    """
    place = Path(path)
    with located("gguf_metadata", place.name):
        source = BufferSource(map_file(place))
        return header_values(source, Limits() if limits is None else limits)


DEFAULT: Final = NamedMsgpackRecorder


def recorder_for(path: PathLike) -> Recorder:
    """Return the recorder that the extension of a path names, which keeps element types.

    A name without any extension is for `NamedMsgpackRecorder`, which adds its own.

    Raises:
        RecordError: the extension is that of no recorder.

    >>> from phlox_record import recorder_for
    >>> recorder_for("model.json"), recorder_for("model")
    (JsonRecorder(KeepPrecision), NamedMsgpackRecorder(KeepPrecision))
    """
    place = Path(path)
    kind = by_extension(place.name)
    if kind is None and place.suffix:
        raise RecordError(
            "recorder_for",
            "the extension names no recorder",
            got=shown(place.name),
            expected=", ".join(sorted(e for k in kinds() for e in k.extensions())),
            hint=f"{shown(place.name + DEFAULT.extension)!r}, or a recorder beside the path",
        )
    return (kind or DEFAULT)()
