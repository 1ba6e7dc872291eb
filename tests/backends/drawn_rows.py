"""Rows of ``test_drawn``: an op's name, and what draws arrays for it and for PyTorch's function."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

import phlox

# PyTorch is not installed everywhere; what is drawn is passed on as it is.
torch: Any = import_module("torch")
px: Any = phlox
F: Final = torch.nn.functional
Rng = np.random.Generator


class Drawn(NamedTuple):
    """Arrays, and what both sides make of them."""

    arrays: tuple[Any, ...]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


def _whole(rng: Rng, low: int, high: int, count: int | None = None) -> Any:
    drawn = rng.integers(low, high + 1, count)
    return int(drawn) if count is None else tuple(int(n) for n in drawn)


def _shape(rng: Rng, least: int = 1, most: int = 4, high: int = 6) -> tuple[int, ...]:
    shape: tuple[int, ...] = _whole(rng, 1, high, _whole(rng, least, most))
    return shape


def _conv(axes: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        groups, kernel = _whole(rng, 1, 3), _whole(rng, 1, 3, axes)
        stride, dilation = (_whole(rng, 1, 3, axes) for _ in range(2))
        padding = _whole(rng, 0, 2, axes)
        span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        size = [_whole(rng, s, s + 6) for s in span]
        x = rng.standard_normal((_whole(rng, 1, 2), 2 * groups, *size))
        weight = rng.standard_normal((groups * _whole(rng, 1, 3), 2, *kernel))
        bias = rng.standard_normal(weight.shape[0])
        words = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        name = f"conv{axes}d"
        return Drawn(
            (x, weight, bias),
            lambda *a: getattr(px, name)(*a, **_single(words)),
            lambda *a: getattr(F, name)(*a, **words),
        )

    return draw


def _single(words: dict[str, Any]) -> dict[str, Any]:
    """What one axis takes: a number, since a pair of paddings are the sides of it."""
    return {k: v[0] if isinstance(v, tuple) and len(v) == 1 else v for k, v in words.items()}


def _conv_transpose(axes: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        groups, kernel = _whole(rng, 1, 2), _whole(rng, 1, 3, axes)
        stride, dilation = (_whole(rng, 1, 3, axes) for _ in range(2))
        padding = _whole(rng, 0, 1, axes)
        extra = tuple(_whole(rng, 0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True))
        x = rng.standard_normal((2, 2 * groups, *_whole(rng, 3, 5, axes)))
        weight = rng.standard_normal((2 * groups, _whole(rng, 1, 2), *kernel))
        bias = rng.standard_normal(weight.shape[1] * groups)
        words = {
            "stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation,
            "groups": groups,
        }  # fmt: skip
        name = f"conv_transpose{axes}d"
        return Drawn(
            (x, weight, bias),
            lambda *a: getattr(px, name)(*a, **_single(words)),
            lambda *a: getattr(F, name)(*a, **words),
        )

    return draw


def _pool(kind: str, axes: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        kernel, stride = _whole(rng, 1, 4, axes), _whole(rng, 1, 3, axes)
        words: dict[str, Any] = {"stride": stride}
        # Windows cut off by the edge are scaled up there: a mean of what is left, times all.
        if kind != "lp":
            words["ceil_mode"] = bool(rng.integers(2))
            words["padding"] = tuple(_whole(rng, 0, k // 2) for k in kernel)
        if kind == "max":
            words["dilation"] = _whole(rng, 1, 2, axes)
        if kind == "avg":
            words["count_include_pad"] = bool(rng.integers(2))
        size = [_whole(rng, 2 * k, 2 * k + 6) for k in kernel]
        x = rng.standard_normal((2, 2, *size))
        name, p = f"{kind}_pool{axes}d", float(rng.choice([1.0, 2.0, 3.0]))
        power = (p,) if kind == "lp" else ()
        if kind == "lp":
            x = np.abs(x) + 0.1
        return Drawn(
            (x,),
            lambda a: getattr(px, name)(
                a, *_single({"k": kernel}).values(), *power, **_single(words)
            ),
            (lambda a: getattr(F, name)(a, p, kernel if axes > 1 else kernel[0], **words))
            if power
            else (lambda a: getattr(F, name)(a, kernel, **words)),
        )

    return draw


def _adaptive(kind: str, axes: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        size = _whole(rng, 1, 5, axes)
        x = rng.standard_normal((2, 2, *_whole(rng, 1, 9, axes)))
        name = f"adaptive_{kind}_pool{axes}d"
        ours = size[0] if axes == 1 else size
        return Drawn(
            (x,), lambda a: getattr(px, name)(a, ours), lambda a: getattr(F, name)(a, size)
        )

    return draw


def _interpolated(rng: Rng) -> Drawn:
    axes = _whole(rng, 1, 3)
    mode = str(
        rng.choice(["nearest", "nearest_exact", "linear", *(["cubic"] if axes == 2 else [])])
    )
    # A result of one column is wrong there with antialias: <g, A x> is not <A* g, x>.
    x = rng.standard_normal((2, 3, *_whole(rng, 1, 12, axes)))
    size = _whole(rng, 2, 16, axes)
    weighted = mode in ("linear", "cubic")
    corners = weighted and bool(rng.integers(2))
    smooth = weighted and axes == 2 and not corners and bool(rng.integers(2))
    names = {"cubic": "bicubic", "nearest_exact": "nearest-exact"}
    names["linear"] = ("linear", "bilinear", "trilinear")[axes - 1]
    words: dict[str, Any] = {"mode": names.get(mode, mode)}
    if weighted:
        words |= {"align_corners": corners, "antialias": smooth}
    return Drawn(
        (x,),
        lambda a: px.interpolate(a, size, mode, corners, smooth),
        lambda a: F.interpolate(a, size, **words),
    )


def _sampled(rng: Rng) -> Drawn:
    axes = int(rng.integers(2, 4))
    mode = str(rng.choice(["bilinear", "nearest", "bicubic"][: 5 - axes]))
    edge = str(rng.choice(["zeros", "border", "reflection"]))
    corners = bool(rng.integers(2))
    x = rng.standard_normal((2, 2, *_whole(rng, 1, 6, axes)))
    grid = rng.uniform(-1.6, 1.6, (2, *_whole(rng, 1, 5, axes), axes))
    return Drawn(
        (x, grid),
        lambda a, b: px.grid_sample(a, b, mode, edge, corners),
        lambda a, b: F.grid_sample(a, b, mode, edge, corners),
    )


def _unfolded(rng: Rng) -> Drawn:
    kernel, stride, padding, dilation = (_whole(rng, low, 2, 2) for low in (1, 1, 0, 1))
    size = tuple(d * (k - 1) + 1 + _whole(rng, 0, 4) for k, d in zip(kernel, dilation, strict=True))
    x = rng.standard_normal((2, 3, *size))
    how: dict[str, Any] = {"dilation": dilation, "padding": padding, "stride": stride}
    theirs = {"kernel_size": kernel, **how}
    return Drawn(
        (x,),
        lambda a: px.fold(px.unfold(a, kernel, **how), size, kernel, **how),
        lambda a: F.fold(F.unfold(a, **theirs), size, **theirs),
    )


def _ctc(rng: Rng) -> Drawn:
    """Targets without the blank: what they mean with it is not defined."""
    time, batch, classes, longest = _whole(rng, 3, 12), _whole(rng, 1, 4), _whole(rng, 2, 6), 4
    blank = _whole(rng, 0, classes - 1)
    labels = [c for c in range(classes) if c != blank]
    targets = rng.choice(labels, (batch, longest))
    counts, times = rng.integers(0, longest + 1, batch), rng.integers(1, time + 1, batch)
    x = rng.standard_normal((time, batch, classes))
    ints = [targets, times, counts]
    # Without an alignment the gradient is nan there.
    feasible = [
        times[n] >= counts[n] + sum(targets[n, i] == targets[n, i - 1] for i in range(1, counts[n]))
        for n in range(batch)
    ]
    keep = np.flatnonzero(feasible)
    if not keep.size:
        return _ctc(rng)
    x, ints = x[:, keep], [a[keep] for a in ints]
    return Drawn(
        (x,),
        lambda a: px.ctc_loss(
            a.log_softmax(axis=-1), *(px.asarray(i, device=a.device) for i in ints), blank
        ),
        # Their gradient is that of logits, and right behind log_softmax alone.
        lambda a: F.ctc_loss(a.log_softmax(-1), *(torch.tensor(i) for i in ints), blank, "none"),
    )


def _bag(rng: Rng) -> Drawn:
    mode = str(rng.choice(["sum", "mean", "max"]))
    weight = rng.standard_normal((_whole(rng, 2, 8), _whole(rng, 1, 5)))
    indices = rng.integers(0, len(weight), _whole(rng, 1, 5, 2))
    return Drawn(
        (weight,),
        lambda w: px.embedding_bag(w, px.asarray(indices, device=w.device), None, mode),
        lambda w: F.embedding_bag(torch.tensor(indices), w, mode=mode),
    )


EQUATIONS: Final = (
    "ij,jk->ik", "bij,bjk->bik", "ii->i", "ij->", "i,j->ij", "abc,cd,de->abe", "...ij,...jk->...ik",
    "bhid,bhjd->bhij", "ijk,jk", "aab->b",
)  # fmt: skip


def _einsum(rng: Rng) -> Drawn:
    equation = str(rng.choice(EQUATIONS))
    sizes = {c: _whole(rng, 1, 4) for c in "abcdehijk"}
    terms = equation.split("->", maxsplit=1)[0].split(",")
    arrays = tuple(
        rng.standard_normal(((2, 1) if "." in t else ()) + tuple(sizes[c] for c in t.strip(".")))
        for t in terms
    )
    return Drawn(arrays, lambda *a: px.einsum(equation, *a), lambda *a: torch.einsum(equation, *a))


def _reduced(ours: str, theirs: str = "", **words: Any) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        x = rng.standard_normal(_shape(rng))
        axis, keep = _whole(rng, -x.ndim, x.ndim - 1), bool(rng.integers(2))
        twin = getattr(torch, theirs or ours)
        return Drawn(
            (x,),
            lambda a: getattr(px, ours)(a, axis=axis, keepdims=keep, **words),
            lambda a: twin(a, dim=axis, keepdim=keep, **words),
        )

    return draw


def _line(ours: str, theirs: Any) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        x = rng.standard_normal(_shape(rng))
        axis = _whole(rng, -x.ndim, x.ndim - 1)
        return Drawn((x,), lambda a: getattr(px, ours)(a, axis=axis), lambda a: theirs(a, axis))

    return draw


def _quantile(rng: Rng) -> Drawn:
    x = rng.standard_normal(_shape(rng))
    axis, q = _whole(rng, -x.ndim, x.ndim - 1), float(rng.uniform())
    how = str(rng.choice(["linear", "lower", "higher", "midpoint", "nearest"]))
    return Drawn(
        (x,),
        lambda a: px.quantile(a, q, axis=axis, interpolation=how),
        lambda a: torch.quantile(a, q, dim=axis, interpolation=how),
    )


def _cdist(rng: Rng) -> Drawn:
    p = float(rng.choice([1.0, 1.5, 2.0, 3.0, np.inf]))
    m, n, k = _whole(rng, 1, 6, 3)
    a, b = rng.standard_normal((2, m, k)), rng.standard_normal((2, n, k))
    return Drawn((a, b), lambda x, y: px.cdist(x, y, p), lambda x, y: torch.cdist(x, y, p))


def _vector_norm(rng: Rng) -> Drawn:
    order = float(rng.choice([0.5, 1.0, 2.0, 3.0, np.inf, -np.inf]))
    x = rng.standard_normal(_shape(rng))
    axis = _whole(rng, -x.ndim, x.ndim - 1)
    return Drawn(
        (x,),
        lambda a: px.linalg.vector_norm(a, axis=axis, ord=order),
        lambda a: torch.linalg.vector_norm(a, order, dim=axis),
    )


def _matrix_norm(rng: Rng) -> Drawn:
    order: Any = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf][_whole(rng, 0, 7)]
    x = rng.standard_normal((2, *_whole(rng, 1, 5, 2)))
    return Drawn(
        (x,),
        lambda a: px.linalg.matrix_norm(a, ord=order),
        lambda a: torch.linalg.matrix_norm(a, order),
    )


def _square(rng: Rng) -> Any:
    n = _whole(rng, 1, 6)
    return rng.standard_normal((_whole(rng, 1, 3), n, n)) + 3 * np.eye(n)


def _factor(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[[Rng], Drawn]:
    return lambda rng: Drawn((_square(rng),), ours, theirs)


def _rectangle(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[[Rng], Drawn]:
    return lambda rng: Drawn((rng.standard_normal((2, *_whole(rng, 1, 6, 2))),), ours, theirs)


def _solved(rng: Rng) -> Drawn:
    a = _square(rng)
    b = rng.standard_normal((*a.shape[:2], _whole(rng, 1, 3)))
    return Drawn((a, b), px.linalg.solve, torch.linalg.solve)


def _spd(a: Any) -> Any:
    return a @ a.mT + 0.5 * px.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def _spd_there(a: Any) -> Any:
    return a @ a.mT + 0.5 * torch.eye(a.shape[-1], dtype=a.dtype)


def _definite(name: str) -> Callable[[Rng], Drawn]:
    """A factorisation of ``a aᵀ + 0.5``."""
    return _factor(
        lambda a: getattr(px.linalg, name)(_spd(a)),
        lambda a: getattr(torch.linalg, name)(_spd_there(a)),
    )


def _transform(name: str, ours: Any, theirs: Any) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        x = rng.standard_normal(_shape(rng, high=9))
        n, axis = _whole(rng, 1, 12), _whole(rng, -x.ndim, x.ndim - 1)
        norm = str(rng.choice(["backward", "ortho", "forward"]))
        words = {"n": n, "norm": norm}
        return Drawn(
            (x,),
            lambda a: ours(getattr(px.fft, name)(a, axis=axis, **words)),
            lambda a: theirs(getattr(torch.fft, name)(a, dim=axis, **words).resolve_conj()),
        )

    return draw


def _stft(rng: Rng) -> Drawn:
    n = _whole(rng, 4, 16)
    hop, length = _whole(rng, 1, n), _whole(rng, 2 * n, 5 * n)
    x = rng.standard_normal((2, length))
    return Drawn(
        (x,),
        lambda a: px.stack(
            _parts(
                px.fft.stft(
                    a,
                    n,
                    hop_length=hop,
                    window=px.fft.window("hann", n, dtype=a.dtype, device=a.device),
                )
            ),
            axis=-1,
        ),
        lambda a: torch.view_as_real(
            torch.stft(a, n, hop, window=torch.hann_window(n, dtype=a.dtype), return_complex=True)
        ),
    )


def _parts(spectrum: Any) -> list[Any]:
    return [spectrum.real, spectrum.imag]


def _stacked(spectrum: Any) -> Any:
    return px.stack(_parts(spectrum), axis=-1)


def _bordered(rng: Rng) -> Drawn:
    mode = str(rng.choice(["reflect", "edge", "circular"]))
    x = rng.standard_normal((2, 2, *_whole(rng, 3, 6, 2)))
    sides = [(_whole(rng, 0, 2), _whole(rng, 0, 2)) for _ in range(2)]
    names = {"edge": "replicate"}
    flat = [*sides[1], *sides[0]]
    return Drawn(
        (x,),
        lambda a: px.pad_border(a, sides, mode),
        lambda a: F.pad(a, flat, mode=names.get(mode, mode)),
    )


def _unpooled(rng: Rng) -> Drawn:
    axes = _whole(rng, 1, 3)
    kernel = _whole(rng, 1, 3)
    size = tuple(kernel * n for n in _whole(rng, 1, 4, axes))
    x = rng.standard_normal((2, 2, *size))
    pool, back = f"max_pool{axes}d_with_indices", f"max_unpool{axes}d"
    return Drawn(
        (x,),
        lambda a: px.max_unpool(*getattr(px, pool)(a, kernel), size),
        lambda a: getattr(F, back)(*getattr(F, pool)(a, kernel), kernel),
    )


def _attended(rng: Rng) -> Drawn:
    batch, heads, queries, keys, width = _whole(rng, 1, 5, 5)
    q = rng.standard_normal((batch, heads, queries, width))
    k, v = (rng.standard_normal((batch, heads, keys, width)) for _ in range(2))
    causal = bool(rng.integers(2)) and queries == keys
    return Drawn(
        (q, k, v),
        lambda *a: px.attention(*a, is_causal=causal),
        lambda *a: F.scaled_dot_product_attention(*a, is_causal=causal),
    )


def _recurrent(name: str, gates: int) -> Callable[[Rng], Drawn]:
    def draw(rng: Rng) -> Drawn:
        batch, time, inputs, hidden = _whole(rng, 1, 5, 4)
        x = rng.standard_normal((batch, time, inputs))
        wi, wh = (rng.standard_normal((n, gates * hidden)) for n in (inputs, hidden))

        def theirs(a: Any, b: Any, c: Any) -> Any:
            net = getattr(torch.nn, name.upper())(inputs, hidden, batch_first=True, bias=False)
            named = {"weight_ih_l0": b.mT, "weight_hh_l0": c.mT}
            return torch.func.functional_call(net.double(), named, (a,))[0]

        return Drawn((x, wi, wh), lambda a, b, c: getattr(px, name)(a, b, c)[0], theirs)

    return draw


ROWS: Final[dict[str, Callable[[Rng], Drawn]]] = {
    **{f"adaptive_{k}_pool{n}d": _adaptive(k, n) for k in ("avg", "max") for n in (1, 2, 3)},
    **{f"conv{n}d": _conv(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _conv_transpose(n) for n in (1, 2, 3)},
    **{f"{k}_pool{n}d": _pool(k, n) for k in ("avg", "lp", "max") for n in (1, 2, 3)},
    "attention": _attended,
    "cdist": _cdist,
    "cholesky": _definite("cholesky"),
    "ctc_loss": _ctc,
    "cummax": _line("cummax", torch.cummax),
    "cumulative_prod": _line("cumulative_prod", torch.cumprod),
    "det": _factor(px.linalg.det, torch.linalg.det),
    "eigvalsh": _definite("eigvalsh"),
    "einsum": _einsum,
    "embedding_bag": _bag,
    "fft": _transform("fft", _stacked, torch.view_as_real),
    "grid_sample": _sampled,
    "gru": _recurrent("gru", 3),
    "ifft": _transform("ifft", _stacked, torch.view_as_real),
    "interpolate": _interpolated,
    "inv": _factor(px.linalg.inv, torch.linalg.inv),
    "log_softmax": _line("log_softmax", torch.log_softmax),
    "logcumsumexp": _line("logcumsumexp", torch.logcumsumexp),
    "lstm": _recurrent("lstm", 4),
    "matrix_exp": _factor(px.linalg.matrix_exp, torch.matrix_exp),
    "matrix_norm": _matrix_norm,
    "max_unpool": _unpooled,
    "mean": _reduced("mean"),
    "pad_border": _bordered,
    "pinv": _rectangle(px.linalg.pinv, torch.linalg.pinv),
    "prod": _reduced("prod"),
    "quantile": _quantile,
    "rfft": _transform("rfft", _stacked, torch.view_as_real),
    "rnn": _recurrent("rnn", 1),
    "slogdet": _factor(lambda a: px.linalg.slogdet(a)[1], lambda a: torch.linalg.slogdet(a)[1]),
    "softmax": _line("softmax", torch.softmax),
    "solve": _solved,
    "sort": _line("sort", lambda a, axis: torch.sort(a, dim=axis)[0]),
    "std": _reduced("std", correction=1.0),
    "stft": _stft,
    "sum": _reduced("sum"),
    "svdvals": _rectangle(px.linalg.svdvals, torch.linalg.svdvals),
    "unfold and fold": _unfolded,
    "var": _reduced("var", correction=1.0),
    "vector_norm": _vector_norm,
}  # fmt: skip
