"""Marks, masks and bags, by NumPy and by loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import wide64
from .indexing import checked, within

Array = np.ndarray[Any, Any]


def argwhere(x: Array) -> Array:
    return np.argwhere(x).astype(np.int64)


def one_hot(x: Array, classes: int) -> Array:
    return np.eye(classes, dtype=x.dtype)[checked("one_hot", x, classes)]


def embedding_bag(weight: Array, indices: Array, scale: Array | None, mode: str) -> Array:
    found = wide64(weight)[checked("embedding_bag", indices, len(weight))]
    if scale is not None:
        found = found * wide64(scale)[..., None]
    return np.asarray(getattr(found, mode)(axis=1)).astype(weight.dtype)


def _log_sum(terms: list[float]) -> float:
    return float(np.logaddexp.reduce(terms))


def _labels(op: str, targets: Array, counts: Array, classes: int) -> list[list[int]]:
    """The labels of each sequence, without what stands after them."""
    counts = within(op, counts, targets.shape[1] + 1, "target_lengths")
    pairs = zip(targets, counts, strict=True)
    return [within(op, line[:count], classes, "targets").tolist() for line, count in pairs]


def ctc_loss(
    x: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int
) -> Array:
    """Graves et al., 2006, equations 5 to 8, one sequence after the other."""
    wide, batch = wide64(x), x.shape[1]
    times = np.full(batch, x.shape[0]) if input_lengths is None else input_lengths
    counts = np.full(batch, targets.shape[1]) if target_lengths is None else target_lengths
    within("ctc_loss", times, x.shape[0] + 1, "input_lengths")
    out = np.zeros(batch)
    for n, line in enumerate(_labels("ctc_loss", targets, counts, x.shape[2])):
        labels = [blank]
        for label in line:
            labels += [label, blank]
        alpha = [0.0] + [-np.inf] * (len(labels) - 1)  # a blank in front of the first step
        for t in range(int(times[n])):
            old = alpha
            alpha = []
            for s, label in enumerate(labels):
                terms = old[max(s - 1, 0) : s + 1]
                if s > 1 and label not in (blank, labels[s - 2]):
                    terms = [old[s - 2], *terms]
                alpha.append(_log_sum(terms) + float(wide[t, n, label]))
        out[n] = -_log_sum(alpha[-2:])
    return out.astype(x.dtype)


def rnnt_loss(
    x: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int
) -> Array:
    """Graves, 2012, equation 16, one place after the other."""
    wide, batch = wide64(x), x.shape[0]
    times = np.full(batch, x.shape[1]) if input_lengths is None else input_lengths
    counts = np.full(batch, targets.shape[1]) if target_lengths is None else target_lengths
    within("rnnt_loss", times, x.shape[1] + 1, "input_lengths")
    out = np.full(batch, np.inf)
    for n, line in enumerate(_labels("rnnt_loss", targets, counts, x.shape[3])):
        steps, labels = int(times[n]), len(line)
        alpha = np.full((steps, labels + 1), -np.inf)
        for t in range(steps):
            for u in range(labels + 1):
                terms = [0.0] if t == u == 0 else []
                if t:
                    terms.append(alpha[t - 1, u] + float(wide[n, t - 1, u, blank]))
                if u:
                    terms.append(alpha[t, u - 1] + float(wide[n, t, u - 1, line[u - 1]]))
                alpha[t, u] = _log_sum(terms)
        if steps:
            out[n] = -(alpha[-1, -1] + float(wide[n, steps - 1, labels, blank]))
    return out.astype(x.dtype)
