"""What NumPy and PyTorch call the arguments of our functions, and the errors made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .classes import UnknownArgumentError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Keywords of others -> ours, of which a function has one.
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "a": ("x",),
    "a_max": ("max",),
    "a_min": ("min",),
    "array": ("x",),
    "arrays": ("xs", "arrays"),
    "axes": ("axis", "axes"),
    "axis": ("axes",),
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

# What only functions of others can be told: by function and keyword, what to type instead; behind a
# keyword stands a value or its type. In the code ``value`` is its text, and ``v`` has its parts.
INSTEAD: Final[dict[str, dict[str, str]]] = {
    "any_op": {
        "inplace": "y = {op}(x)",
        "where": "{op}(x[mask])",
    },
    "argsort": {"kind": "px.argsort(x, stable=True)"},
    "attention": {
        "attn_mask": "mask=~attn_mask  # True hides here, and shows there; bias=... of floats",
        "attn_mask: None": "mask=None",
    },
    "bincount": {"weights": "px.zeros(int(x.max()) + 1).index_add(x, weights, axis=0)"},
    "broadcast_to": dict.fromkeys(("shape", "size", "sizes"), "x.broadcast_to({value})"),
    "cov": {
        "aweights": "(c * weights) @ c.T / weights.sum()  # where c = x - "
        "(x * weights).sum(axis=1, keepdims=True) / weights.sum()",
        "ddof": "correction={value}",
        "fweights": "px.cov(x.repeat(weights, axis=1))",
        "rowvar": "px.cov(x.T)",
    },
    "divide": {
        "rounding_mode": "x1 / x2",
        "rounding_mode: 'floor'": "x1 // x2",
        "rounding_mode: 'trunc'": "(x1 / x2).trunc()",
    },
    "embedding_bag": {"offsets": "px.embedding_bag(weight, indices)  # a row of indices a bag"},
    "gelu": {"approximate": "x.gelu_tanh()", "approximate: 'none'": "x.gelu()"},
    "histogram": {
        "density": "(h := px.histogram(x))[0].astype(x.dtype) / (x.size * (h[1][1] - h[1][0]))",
        "range": "min=..., max=...",
        "range: tuple": "min={v[0]}, max={v[1]}",
        "weights": "px.zeros(bins).index_add(places, weights, axis=0)  # where places = "
        "edges[1:-1].searchsorted(x, side='right')",
    },
    "interpolate": {
        "scale_factor": "px.interpolate(x, [2 * n for n in x.shape[2:]])",
        "scale_factor: float": "px.interpolate(x, [int({value} * n) for n in x.shape[2:]])",
        "scale_factor: int": "px.interpolate(x, [{value} * n for n in x.shape[2:]])",
    },
    "interpolate2d": {
        "scale_factor": "px.interpolate2d(x, [2 * n for n in x.shape[2:]])",
        "scale_factor: float": "px.interpolate2d(x, [int({value} * n) for n in x.shape[2:]])",
        "scale_factor: int": "px.interpolate2d(x, [{value} * n for n in x.shape[2:]])",
    },
    "log": {"base": "x.log() / math.log({value})"},
    "max_pool1d": {"return_indices": "px.max_pool1d_with_indices(x, 2)"},
    "max_pool2d": {"return_indices": "px.max_pool2d_with_indices(x, 2)"},
    "max_pool3d": {"return_indices": "px.max_pool3d_with_indices(x, 2)"},
    "mean": {"dtype": "px.mean(x.astype({value}))", "dtype: None": "px.mean(x)"},
    "nonzero": {"as_tuple": "px.nonzero(x)", "as_tuple: False": "px.argwhere(x)"},
    "pad": {"mode": "px.pad_border(x, padding, mode={value})"},
    "permute_dims": dict.fromkeys(("axes", "dims"), "x.permute_dims({value})"),
    "reshape": dict.fromkeys(("new_shape", "newshape", "shape"), "x.reshape({value})"),
    "round": {"decimals": "(x * 10**{value}).round() / 10**{value}"},
    "searchsorted": {"right": 'side="right"', "right: False": 'side="left"'},
    "softmax": {"dtype": "px.softmax(x.astype({value}))", "dtype: None": "px.softmax(x)"},
    "softplus": {"beta": "({value} * x).softplus() / {value}"},
    "sort": {"kind": "px.sort(x, stable=True)"},
    "split": {
        "indices_or_sections: list": "px.split(x, [b - a for a, b in itertools.pairwise"
        "([0, *{value}, len(x)])])",
        "split_size_or_sections: int": "[x[i : i + {value}] for i in range(0, len(x), {value})]",
    },
    "std": {"unbiased": "correction={v:d}"},
    "var": {"unbiased": "correction={v:d}"},
    "var_mean": {"unbiased": "correction={v:d}"},
    "vector_norm": dict.fromkeys(("ord", "p"), "px.linalg.vector_norm(x, ord={value})"),
}

# What others do with fewer arguments.
SHORTER: Final = {"where": "px.nonzero(mask), or px.where(condition, x1, x2)"}

_LONGEST: Final = 40


def refused_keyword(
    op: str, name: str, value: object, known: Sequence[str], first: str = ""
) -> UnknownArgumentError:
    """Return the error for an argument that ``op`` does not have.

    Args:
        op: what was called.
        name: the keyword.
        value: what it was to be.
        known: the arguments that may be given by name.
        first: the one that is given by its place alone.
    """
    text = " ".join(repr(value).split())
    short = text if len(text) <= _LONGEST else "…"
    instead = _instead(op, name, value, short)
    words = KEYWORDS.get(name, ())
    ours = next((each for each in words if each in known), None)
    if first and (name == first or (ours is None and first in words)):
        hint: str | None = f"px.{op}({', '.join([first, *known[:1]])})"
        what = f"{first} is given by its place"
        return UnknownArgumentError(op, what, got=name, expected=", ".join(known), hint=hint)
    if instead is None and ours is None and name in INSTEAD["any_op"]:
        instead = INSTEAD["any_op"][name].format(op=f"px.{op}")
    if instead is not None:
        hint = instead
    else:
        ours = ours or nearest(name, known, 0.6)
        hint = None if ours is None else f"{ours}={short}"
    what, expected = "unknown argument", ", ".join(known) or None
    return UnknownArgumentError(op, what, got=name, expected=expected, hint=hint)


def _instead(op: str, name: str, value: object, text: str) -> str | None:
    """The row of a keyword, of a value of its type or of any; None where there is none."""
    rows = INSTEAD.get(op, {})
    keys = (f"{name}: {text}", f"{name}: {type(value).__name__}", name)
    code = next((rows[key] for key in keys if key in rows), None)
    try:
        return code and code.format(op=f"px.{op}", value=text, v=value)
    except (IndexError, TypeError, ValueError):  # a value without such parts
        return None


# Operands of another kind, for which a cast says something else than what was meant.
OF_OTHER_KINDS: Final = {
    ("attention", "mask"): "mask == 0, where 1 stands for what is seen; mask != 0, where for what "
    "is hidden; bias=mask for floats that are added",
}


def advice_for(op: str, given: Mapping[str, object]) -> dict[str, str]:
    """What to type in the place of keywords that a function does not have."""
    found = {name: _instead(op, name, value, repr(value)) for name, value in given.items()}
    return {name: code for name, code in found.items() if code is not None}


def missing_argument(op: str, name: str, known: Sequence[str]) -> UnknownArgumentError:
    """Return the error for a call without an argument that it has to have."""
    hint = SHORTER.get(op, f"px.{op}({', '.join(known[: known.index(name) + 1])})")
    return UnknownArgumentError(op, "missing argument", expected=name, hint=hint)
