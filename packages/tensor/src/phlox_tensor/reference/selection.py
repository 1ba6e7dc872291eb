"""Marks, masks and bags, by NumPy and by loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import wide64

Array = np.ndarray[Any, Any]


def argwhere(x: Array) -> Array:
    return np.argwhere(x).astype(np.int64)


def one_hot(x: Array, classes: int) -> Array:
    return np.eye(classes, dtype=x.dtype)[x]


def embedding_bag(weight: Array, indices: Array, scale: Array | None, mode: str) -> Array:
    found = wide64(weight)[indices]
    if scale is not None:
        found = found * wide64(scale)[..., None]
    return np.asarray(getattr(found, mode)(axis=1)).astype(weight.dtype)


def _log_sum(terms: list[float]) -> float:
    return float(np.logaddexp.reduce(terms))


def ctc_loss(
    x: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int
) -> Array:
    """Graves et al., 2006, equations 5 to 8, one sequence after the other."""
    wide, batch = wide64(x), x.shape[1]
    times = np.full(batch, x.shape[0]) if input_lengths is None else input_lengths
    counts = np.full(batch, targets.shape[1]) if target_lengths is None else target_lengths
    out = np.zeros(batch)
    for n in range(batch):
        labels = [blank]
        for label in targets[n, : counts[n]]:
            labels += [int(label), blank]
        alpha = [float(wide[0, n, label]) for label in labels[:2]]
        alpha += [-np.inf] * (len(labels) - len(alpha))
        for t in range(1, int(times[n])):
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
    out = np.full(batch, np.inf)
    for n in range(batch):
        steps, labels = int(times[n]), int(counts[n])
        alpha = np.full((steps, labels + 1), -np.inf)
        for t in range(steps):
            for u in range(labels + 1):
                terms = [0.0] if t == u == 0 else []
                if t:
                    terms.append(alpha[t - 1, u] + float(wide[n, t - 1, u, blank]))
                if u:
                    label = int(targets[n, u - 1])
                    terms.append(alpha[t, u - 1] + float(wide[n, t, u - 1, label]))
                alpha[t, u] = _log_sum(terms)
        if steps:
            out[n] = -(alpha[-1, -1] + float(wide[n, steps - 1, labels, blank]))
    return out.astype(x.dtype)
