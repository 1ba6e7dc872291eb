"""What NumPy and PyTorch call the arguments of our functions, and the errors made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from .classes import UnknownArgumentError, nearest

# Keywords of others -> ours, of which a function has one.
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "a": ("x",),
    "a_max": ("max",),
    "a_min": ("min",),
    "array": ("x",),
    "arrays": ("xs", "arrays"),
    "axes": ("axis", "axes"),
    "axis": ("axes",),
    "axisa": (),
    "axisb": (),
    "axisc": (),
    "boundaries": ("x1",),
    "constant_values": ("value",),
    "ddof": ("correction",),
    "diagonal": ("k", "offset"),
    "dim": ("axis", "axes"),
    "dim0": ("axis1",),
    "dim1": ("axis2",),
    "dims": ("axis", "axes", "repetitions"),
    "downscale_factor": ("factor",),
    "end": ("stop",),
    "end_dim": ("end_axis",),
    "eps": ("epsilon",),
    "index": ("indices",),
    "indices_or_sections": ("sections",),
    "input": ("x",),
    "k": ("offset",),
    "keepdim": ("keepdims",),
    "kernel_size": ("kernel",),
    "lam": ("rate",),
    "lambd": ("threshold",),
    "loc": ("mean",),
    "log_probs": ("x",),
    "max_val": ("max",),
    "maxval": ("high",),
    "method": ("interpolation",),
    "min_val": ("min",),
    "minval": ("low",),
    "n": ("repeats", "k", "classes"),
    "negative_slope": ("slope",),
    "new_shape": ("shape",),
    "newshape": ("shape",),
    "num_classes": ("classes",),
    "num_samples": ("count",),
    "obj": ("indices",),
    "offset": ("k",),
    "ord": ("p",),
    "other": ("x2",),
    "output_size": ("size",),
    "p": ("ord", "weights", "probability"),
    "pad": ("padding",),
    "pad_width": ("padding",),
    "probs": ("weights",),
    "rcond": ("rtol",),
    "replace": ("replacement",),
    "reps": ("repetitions",),
    "reverse": ("descending",),
    "scale": ("std",),
    "shape": ("size",),
    "shifts": ("shift",),
    "size": ("shape", "sizes"),
    "source": ("values",),
    "split_size_or_sections": ("sections",),
    "src": ("values",),
    "start_dim": ("start_axis",),
    "steps": ("num",),
    "tau": ("temperature",),
    "tensor": ("x", "xs"),
    "tensors": ("x", "xs", "arrays"),
    "unbiased": ("correction",),
    "upscale_factor": ("factor",),
    "v": ("x2",),
    "weights": ("scale",),
}

# PyTorch's words for one value.
MODES: Final = {"bicubic": "cubic", "bilinear": "linear", "trilinear": "linear"}
# What only functions of others can be told: by function and keyword, what to type instead; behind a
# keyword stands a value or its type. The code may name what ``_parts`` has.
_NEAREST: Final = {
    "nearest": '"nearest", "asymmetric", rounding="floor"',
    "nearest_exact": '"nearest", rounding="round_prefer_ceil"',
}
_MIDDLE: Final = (
    "px.sort(x, axis={axis}).take((x.shape[{axis}] - 1) // 2, axis={axis})"
    "  # the lower of two in the middle; axis={axis} is the mean of both"
)
_TURNED: Final = "px.diagonal(px.moveaxis(x, ({first}, {second}), (-2, -1)){kept})"
INSTEAD: Final[dict[str, dict[str, str]]] = {
    "add": {"alpha": "x1 + {value} * x2"},
    "all_reduce": {
        "op": "px.all_reduce(x)  # a sum",
        **dict.fromkeys(("op: 'avg'", "op: 'mean'"), "px.all_reduce(x) / group.size"),
    },
    "any_op": {
        "inplace": "y = {op}(x{kept})",
        "where": "{op}(x[mask]{flat}{kept})",
    },
    "argsort": {"kind": "px.argsort(x, stable=True{kept})"},
    "attention": {
        "attn_mask": "mask=~attn_mask  # True hides here, and shows there; bias=... of floats",
        "attn_mask: None": "mask=None",
        "dropout_p": "px.attention(query, key, value{kept})  # none is dropped here",
    },
    "batch_norm": {
        "training": "nn.BatchNorm(channels), in training",
        "training: False": "px.batch_norm(x, weight, bias, mean=mean, var=var{kept})",
        "weight": "px.batch_norm(x, weight, bias, mean=mean, var=var)  # PyTorch's have mean first",
    },
    "bincount": {
        "weights": "px.zeros(max({minlength}, int(x.max()) + 1)).index_add(x, weights, axis=0)"
    },
    "broadcast_to": dict.fromkeys(("shape", "size", "sizes"), "x.broadcast_to({value})"),
    "corrcoef": {"rowvar": "px.corrcoef(x.T)"},
    "cov": {
        "aweights": "(c * weights) @ c.T / weights.sum()  # where c = x - "
        "(x * weights).sum(axis=1, keepdims=True) / weights.sum()",
        "bias": "correction=0",
        "bias: False": "correction=1",
        "ddof": "correction={value}",
        "fweights": "px.cov(x.repeat(weights, axis=1){kept})",
        "rowvar": "px.cov(x.T{kept})",
    },
    "cross_entropy": {
        "ignore_index": "{loss}(x, target)",
        "label_smoothing": "{loss}(x, target)",
        "reduction": "px.cross_entropy(x, target)  # of each row",
        "reduction: 'mean'": "px.cross_entropy(x, target).mean()",
        "reduction: 'sum'": "px.cross_entropy(x, target).sum()",
        "weight": "{loss}(x, target)",
    },
    "diagonal": dict.fromkeys(("axis1", "axis2", "dim1", "dim2"), _TURNED),
    "divide": {
        "rounding_mode": "x1 / x2",
        "rounding_mode: 'floor'": "x1 // x2",
        "rounding_mode: 'trunc'": "(x1 / x2).trunc()",
    },
    "eigh": {
        "UPLO": "px.linalg.eigh(px.tril(x) + px.tril(x, k=-1).mT)",  # ours is of the mean of both
        "UPLO: 'U'": "px.linalg.eigh(px.triu(x) + px.triu(x, k=1).mT)",
    },
    "embedding_bag": {"offsets": "px.embedding_bag(weight, indices)  # a row of indices a bag"},
    "gelu": {
        "approximate": "x.gelu_tanh()",
        "approximate: 'none'": "x.gelu()",
        "approximate: False": "x.gelu()",
    },
    "histogram": {
        "density": "(h := px.histogram(x{kept}))[0].astype(x.dtype) / "
        "(x.size * (h[1][1] - h[1][0]))",
        "range": "min=..., max=...",
        "range: tuple": "min={v[0]}, max={v[1]}",
        "weights": "px.zeros(bins).index_add(places, weights, axis=0)  # where places = "
        "edges[1:-1].searchsorted(x, side='right')",
    },
    "index_add": {"alpha": "px.index_add(x, indices, {value} * values{kept})"},
    **{op: {"scale_factor": "{resized}"} for op in ("interpolate", "interpolate2d")},
    "log": {"base": "x.log() / math.log({value})"},
    **{f"lp_pool{n}d": {"kernel_size": "kernel={value}, p={kernel}"} for n in (1, 2, 3)},
    "matrix_rank": dict.fromkeys(("atol", "tol"), "(px.linalg.svdvals(x) > {value}).sum(axis=-1)"),
    "max": {"dim": "px.max_with_indices(x, axis={v:d}{kept})  # axis={value} for values alone"},
    "max_pool1d": {"return_indices": "px.max_pool1d_with_indices(x{kept})"},
    "max_pool2d": {"return_indices": "px.max_pool2d_with_indices(x{kept})"},
    "max_pool3d": {"return_indices": "px.max_pool3d_with_indices(x{kept})"},
    "mean": {"dtype": "px.mean(x.astype({value}){kept})", "dtype: None": "px.mean(x{kept})"},
    "median": {"dim": _MIDDLE},
    "min": {"dim": "px.min_with_indices(x, axis={v:d}{kept})  # axis={value} for values alone"},
    "nonzero": {"as_tuple": "px.nonzero(x)", "as_tuple: False": "px.argwhere(x)"},
    "pad": {"mode": "px.pad_border(x, mode={value}{kept})"},
    "pinv": {"atol": "px.linalg.pinv(x, rtol={value} / float(px.linalg.svdvals(x).max()))"},
    "permute_dims": dict.fromkeys(("axes", "dims"), "x.permute_dims({value})"),
    "reshape": dict.fromkeys(("new_shape", "newshape", "shape"), "x.reshape({value})"),
    "round": {"decimals": "(x * 10**{value}).round() / 10**{value}"},
    "scatter": {"reduce": 'update="add"', "reduce: 'multiply'": 'update="mul"'},
    "searchsorted": {"right": 'side="right"', "right: False": 'side="left"'},
    "log_softmax": {"dtype": "px.log_softmax(x.astype({value}){kept})"},
    "softmax": {
        "dtype": "px.softmax(x.astype({value}){kept})",
        "dtype: None": "px.softmax(x{kept})",
    },
    "solve": {
        "left: False": "px.linalg.solve(x1.mT, x2.mT).mT",
        "left: True": "px.linalg.solve(x1, x2)",
    },
    "solve_triangular": {
        "lower: False": "upper=True",
        "lower: True": "upper=False",
        "unitriangular": "unit_diagonal={value}",
    },
    "softplus": {"beta": "({value} * x).softplus() / {value}"},
    "sort": {
        "dim": "px.sort(x, axis={value}{kept}), px.argsort(x, axis={value}{kept})",
        "kind": "px.sort(x, stable=True{kept})",
    },
    "split": {
        "dim": "[x[{before}i : i + {sections:d}{after}] for i in range(0, x.shape[{axis}], "
        "{sections})]",
        "indices_or_sections: list": "sections=[b - a for a, b in itertools.pairwise"
        "([0, *{value}, x.shape[{axis}]])]",
        "split_size_or_sections: int": "[x[{before}i : i + {value}{after}] for i in "
        "range(0, x.shape[{axis}], {value})]",
    },
    "std": {"unbiased": "correction={v:d}"},
    "topk": {"sorted": "px.topk(x{kept})  # which sorts"},
    "svd": {
        "compute_uv: False": "px.linalg.svdvals(x)",
        "some: False": "full_matrices=True",
        "some: True": "full_matrices=False",
    },
    "subtract": {"alpha": "x1 - {value} * x2"},
    "var": {"unbiased": "correction={v:d}"},
    "var_mean": {"unbiased": "correction={v:d}"},
    "vector_norm": dict.fromkeys(("ord", "p"), "px.linalg.vector_norm(x, ord={value}{kept})"),
}
# What PyTorch's words for axes mean beside them, where it is not so by default here.
_MEANT_BY_DIM: Final = dict.fromkeys(("std", "var", "var_mean"), "correction=1")

# What others have at the places behind ours.
PLACES: Final[dict[str, tuple[str, ...]]] = {
    "batch_norm": ("weight",),
    **{f"conv_transpose{n}d": ("groups", "dilation") for n in (1, 2, 3)},
    "cross_entropy": ("weight",),
    "diagonal": ("dim1", "dim2"),
    "diff": ("n", "dim", "prepend", "append"),
    "fold": ("dilation", "padding", "stride"),
    "gelu": ("approximate",),
    **{f"lp_pool{n}d": ("kernel_size", "stride", "ceil_mode") for n in (1, 2, 3)},
    "linspace": ("endpoint",),
    "log_softmax": ("dtype",),
    "matrix_norm": ("ord",),
    "pad": ("value",),
    "relu": ("inplace",),
    "round": ("decimals",),
    "softmax": ("dtype",),
    "softplus": ("beta", "threshold"),
    "topk": ("sorted",),
    "unfold": ("dilation", "padding", "stride"),
    "vector_norm": ("ord", "axis", "keepdims"),
}

# What others do with fewer arguments.
SHORTER: Final = {"where": "px.nonzero(mask), or px.where(condition, x1, x2)"}

_LONGEST: Final = 40


def refused_keyword(
    op: str,
    wrong: Mapping[str, object],
    known: Sequence[str],
    first: str = "",
    given: Mapping[str, Any] | None = None,
) -> UnknownArgumentError:
    """Return the error for arguments that ``op`` does not have.

    Args:
        op: what was called.
        wrong: the arguments, by their keywords.
        known: the arguments that may be given by name.
        first: the one that is given only by its place.
        given: the settings of the call; ``said`` has the texts of those that are no defaults.
    """
    given = given or {}
    name, words = next(iter(wrong)), KEYWORDS.get(next(iter(wrong)), ())
    if first and (name == first or (first in words and not any(w in known for w in words))):
        rest = {each: value for each, value in wrong.items() if each != name}
        other = instead_of(op, rest, known, given) if rest else None
        texts = [*given.get("said", ()), *([other] if other and _SETTING.match(other) else [])]
        hint: str | None = f"px.{op}({', '.join([first, *(texts or known[:1])])})"
        what = f"{first} is given by its place"
        return UnknownArgumentError(op, what, got=name, expected=", ".join(known), hint=hint)
    hint = instead_of(op, wrong, known, given)
    what, expected = "unknown argument", ", ".join(known) or None
    return UnknownArgumentError(op, what, got=", ".join(wrong), expected=expected, hint=hint)


def instead_of(
    op: str, wrong: Mapping[str, object], known: Sequence[str], given: Mapping[str, Any]
) -> str | None:
    """What to type for arguments that ``op`` does not have: other settings, or another call.

    A call has the settings that were given; an argument that nothing stands for is named.
    """
    settings: dict[str, str] = {}
    calls: list[tuple[str, str]] = []
    for name, value in wrong.items():
        row = _instead(op, name, value, {**given, **wrong})
        own = _setting(name, value, known)
        if row and _SETTING.match(row):
            settings[name] = row
        elif row:
            calls.append((op, name))
        elif own:
            settings[name] = own
        elif _instead("any_op", name, value, {**given, "op": f"px.{op}"}):
            calls.append(("any_op", name))
    if calls:
        return _call(op, *calls[0], wrong, settings, given)
    biased = type(given.get("correction", 0.0)) is float  # the default, not what somebody gave
    found = [*dict.fromkeys(settings.values())]
    if biased and not any("correction" in each for each in found) and wrong.keys() & _DIM:
        found += [_MEANT_BY_DIM[op]] if op in _MEANT_BY_DIM else []
    text = ", ".join(sorted(found, key=lambda each: "  # " in each))
    lost = [name for name in wrong if name not in settings]
    return _noted(text, [], lost) if text else None


def _call(
    op: str,
    table: str,
    name: str,
    wrong: Mapping[str, object],
    settings: Mapping[str, str],
    given: Mapping[str, Any],
) -> str:
    """The call that a row has for one of the arguments, with all others and all settings."""
    parts = {**given, **wrong, "op": f"px.{op}"}

    def made(texts: Sequence[str], without: str = "") -> str:
        kept = "".join(f", {text}" for text in texts)
        less = {each: value for each, value in parts.items() if each != without or each == name}
        return _instead(table, name, wrong[name], {**less, "kept": kept}) or ""

    plain = made(())
    read = {each for each in parts if made((), each) != plain}  # what the code is made of
    said = [(text.partition("=")[0], text) for text in given.get("said", ())]
    said += [(text.partition("=")[0], text) for each, text in settings.items() if each not in read]
    texts = [text for own, text in said if own not in read and not _has(plain, own)]
    code = made(texts)
    lost = [each for each in wrong if each not in {name, *settings, *read}]
    return _noted(code, [text for text in texts if text not in code], lost)


def _has(code: str, name: str) -> bool:
    return bool(re.search(rf"\b{name}\b", code.partition("  # ")[0]))


def _noted(code: str, left: Sequence[str], lost: Sequence[str]) -> str:
    """Code with a note of settings that it cannot have, and of arguments without a counterpart."""
    notes = [f"{', '.join(left)} is left out"] if left else []
    notes += [f"nothing stands for {', '.join(lost)}"] if lost else []
    return "; ".join([code if "  # " in code or not notes else f"{code}  # {notes.pop(0)}", *notes])


_SETTING: Final = re.compile(r"\w+=(?!=)")
_DIM: Final = frozenset(("dim", "keepdim"))


def _setting(name: str, value: object, known: Sequence[str]) -> str | None:
    """The setting here for one of others, or for a slip of the pen; None where there is none."""
    own = next((each for each in (name, *KEYWORDS.get(name, ())) if each in known), None)
    own = own or (None if name in KEYWORDS else nearest(name, known))
    return own and f"{own}={_short(value, name)}"


def _short(value: object, name: str) -> str:
    """The text of a value; of a long one what others call it, which is code too."""
    text = " ".join(repr(getattr(value, "name", value)).split())  # of an element type its name
    return text if len(text) <= _LONGEST else name


def _instead(op: str, name: str, value: object, given: Mapping[str, Any]) -> str | None:
    """The row of a keyword, of a value of its type or of any; None where there is none."""
    rows, text = INSTEAD.get(op, {}), _short(value, name)
    for key in (f"{name}: {text}", f"{name}: {type(value).__name__}", name):
        if key in rows:
            with suppress(IndexError, KeyError, TypeError, ValueError):  # other parts than these
                return rows[key].format(**{**_parts(given), "value": text, "v": value})
    return None


def _parts(given: Mapping[str, Any]) -> dict[str, Any]:
    """What code of rows may name beside ``value``, the text of a value, and ``v``, with parts."""
    axis = given.get("dim", given.get("axis", 0))
    front = isinstance(axis, int) and axis >= 0
    return {
        "kept": "",
        **({"flat": ""} if given.get("axis") is None else {}),  # what is selected is a vector
        **given,
        "after": "" if front or not isinstance(axis, int) else ", :" * (-axis - 1),
        "axis": axis,
        "before": ":, " * axis if front else "..., ",
        "loss": _loss(**given),
        "first": given.get("dim1", given.get("axis1", 0)),
        "second": given.get("dim2", given.get("axis2", 1)),
        **({"resized": _resized(**given)} if "scale_factor" in given else {}),
    }


def _loss(
    weight: Any = None,
    label_smoothing: Any = None,
    ignore_index: Any = None,
    reduction: Any = None,
    **_: Any,
) -> str:
    """The layer of a cross entropy with PyTorch's settings."""
    found = [] if weight is None else ["weights=tuple(weight.tolist())"]
    found += [] if label_smoothing is None else [f"smoothing={label_smoothing!r}"]
    found += [] if ignore_index is None else [f"pad_tokens=({ignore_index!r},)"]
    found += [] if reduction is None else [f"reduction={reduction!r}"]
    return f"nn.CrossEntropyLoss({', '.join(found)})"


def _resized(scale_factor: Any, mode: str = "nearest", **given: Any) -> str:
    """The call that resizes by factors as PyTorch does, with its other settings."""
    own = "nearest_exact" if mode == "nearest-exact" else MODES.get(mode, mode)
    mode, whole = own, type(scale_factor) is int
    size, scale = f"{scale_factor} * n", f"[{scale_factor}] * (x.ndim - 2)"
    sizes = f"[{size if whole else f'int({size})'} for n in x.shape[2:]]"
    if isinstance(scale_factor, list | tuple):
        scale = str([*scale_factor])
        sizes = f"[int(s * n) for s, n in zip({scale}, x.shape[2:])]"
    corners = bool(given.get("align_corners")) and mode not in _NEAREST
    smooth = bool(given.get("antialias"))
    if whole or corners or smooth or given.get("recompute_scale_factor"):  # sizes say it all
        said = f", mode={mode!r}" if mode != "nearest" else ""
        said += ", align_corners=True" * corners + ", antialias=True" * smooth
        other = "" if whole or not smooth else "  # as recompute_scale_factor=True has it"
        return f"px.interpolate(x, {sizes}{said}){other}"
    return f"px.resize(x, {sizes}, {_NEAREST.get(mode, repr(mode))}, scale={scale})"


# Operands of another kind, for which a cast says something else than what was meant.
OF_OTHER_KINDS: Final = {
    ("attention", "mask"): "mask == 0, where 1 stands for what is seen; mask != 0, where for what "
    "is hidden; bias=mask for floats that are added",
    ("embedding_bag", "scale"): "px.embedding_bag(weight, indices)  # a row of indices a bag; no "
    "offsets",
}

# Sizes or words in the place of a tensor, and tensors in the place of an axis.
OF_OTHER_TYPES: Final = {
    (
        "layer_norm",
        "weight",
    ): "px.layer_norm(x)  # over the last axis; of all of {value} nn.LayerNorm({value})",
    ("max", "axis"): "px.maximum(x, y)",
    ("min", "axis"): "px.minimum(x, y)",
    ("rms_norm", "weight"): "px.rms_norm(x, epsilon=px.finfo(x.dtype).eps)  # over the last axis",
}
# What words for a padding say.
PADDINGS: Final = {
    "same": "padding=[((n - 1) // 2, n // 2) for n in kernel]  # the sizes of the window, such as "
    "weight.shape[2:]; of a stride of 1",
    "valid": "padding=0",
}


def advice_for(op: str, given: Mapping[str, object]) -> dict[str, str]:
    """What to type in the place of keywords that a function does not have."""
    found = {name: _instead(op, name, value, given) for name, value in given.items()}
    return {name: code for name, code in found.items() if code is not None}


def missing_argument(op: str, name: str, known: Sequence[str]) -> UnknownArgumentError:
    """Return the error for a call without an argument that it has to have.

    Args:
        op: what was called.
        name: the argument.
        known: all that a call has to have.
    """
    hint = SHORTER.get(op, f"px.{op}({', '.join(known)})")
    return UnknownArgumentError(op, "missing argument", expected=name, hint=hint)
