"""What is called for each row of the names table: by a line in ours and other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Final

Line = tuple[str, str, str] | tuple[str]

# Of elementwise functions by the kinds of their operands, unless a row says more.
BY_KINDS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("Any", "Any"): ("f(s, t)", "f(n, m)"),
    ("Bits",): ("f(n)", "f(p)"),
    ("Bits", "Bits"): ("f(n, m)", "f(p, q)"),
    ("Bool",): ("f(p)",),
    ("Bool", "Bool"): ("f(p, q)",),
    ("Float",): ("f(s)", "f(x)"),
    ("Float", "Float"): ("f(s, t)", "f(x, y)"),
    ("Num",): ("f(s)", "f(n)"),
    ("Num", "Num"): ("f(s, t)", "f(n, m)"),
}


def _read(name: str) -> dict[str, list[Line]]:
    """The lines of a table by their rows: ours, NumPy's, PyTorch's, or one of all."""
    found: dict[str, list[Line]] = {}
    for text in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if not text.startswith("#"):
            row, ours, *others = (part.strip() for part in text.split(" ; "))
            numpy, torch = ("" if o == "-" else o for o in others) if others else (None, None)
            line = (ours,) if numpy is None or torch is None else (ours, numpy, torch)
            found.setdefault(row, []).append(line)
    return found


SAME: Final = _read("same.txt")
OTHER: Final = _read("other.txt")

_DRAWN: Final = "drawn from a generator of its own: idioms.py compares distributions"
_LAYERS: Final = "weights in another order: tests/layers compares the layers"
_VISION: Final = (
    "of torchvision, which is no part of the peers; tests/backends compares it with NumPy"
)
# Rows of which nothing is called, and why.
APART: Final = {
    "deform_conv2d": _VISION,
    "gru": _LAYERS,
    "lstm": _LAYERS,
    "nms": _VISION,
    "random.bernoulli": _DRAWN,
    "random.beta": _DRAWN,
    "random.categorical": _DRAWN,
    "random.choice": _DRAWN,
    "random.exponential": _DRAWN,
    "random.gamma": _DRAWN,
    "random.gumbel_softmax": _DRAWN,
    "random.multinomial": _DRAWN,
    "random.normal": _DRAWN,
    "random.permutation": _DRAWN,
    "random.poisson": _DRAWN,
    "random.randint": _DRAWN,
    "random.truncated_normal": _DRAWN,
    "random.uniform": _DRAWN,
    "rnn": _LAYERS,
    "roi_align": _VISION,
    "seed": _DRAWN,
    "use_device": "devices are named otherwise there",
}
