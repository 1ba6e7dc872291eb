"""What NumPy, PyTorch and Burn call the functions of this package, and the errors made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from inspect import CO_VARARGS, unwrap
from typing import Any, Final, NamedTuple, Never

import numpy as np

from .._errors.classes import UnknownNameError, nearest
from .._op.declaration import REGISTRY
from .processes import PROCESSES
from .spelling_codes import IDIOMS, OTHERS
from .spelling_rows import NETWORK_ROWS


class Spelling(NamedTuple):
    """A function in four libraries: ``"="`` where the name is ours, ``""`` where there is none."""

    ours: str
    numpy: str
    torch: str
    burn: str
    code: str = ""


# Sorted by our name; the code is what to type for one of the other names.
_MATH: Final = tuple(
    Spelling(*row)
    for row in (
        ("acos", "arccos", "=", "=", "x.acos()"),
        ("acosh", "arccosh", "=", "=", "x.acosh()"),
        ("allclose", "=", "=", "all_close", "{ns}.allclose(x, y)"),
        ("asarray", "array", "tensor", "from_data", "{ns}.asarray([1.0, 2.0])"),
        ("asin", "arcsin", "=", "=", "x.asin()"),
        ("asinh", "arcsinh", "=", "=", "x.asinh()"),
        ("astype", "=", "to", "cast", "x.astype({ns}.float32)"),
        ("atan", "arctan", "=", "=", "x.atan()"),
        ("atan2", "arctan2", "=", "=", "y.atan2(x)"),
        ("atanh", "arctanh", "=", "=", "x.atanh()"),
        (
            "attention",
            "",
            "scaled_dot_product_attention",
            "=",
            "{ns}.attention(query, key, value, mask=~seen)",
        ),
        ("avg_pool2d", "", "=", "=", "{ns}.avg_pool2d(x, 2)"),
        ("batch_norm", "", "=", "", "nn.BatchNorm(channels)"),
        ("bitwise_invert", "invert", "bitwise_not", "bitwise_not", "~x"),
        ("bitwise_left_shift", "left_shift", "=", "=", "x << 1"),
        ("bitwise_right_shift", "right_shift", "=", "=", "x >> 1"),
        ("broadcast_arrays", "=", "broadcast_tensors", "", "{ns}.broadcast_arrays(x, y)"),
        ("broadcast_to", "=", "expand", "expand", "x.broadcast_to(2, 3)"),
        ("chunk", "", "=", "=", "{ns}.chunk(x, 3, axis=0)"),
        ("clip", "=", "clamp", "clamp", "x.clip(0.0, 1.0)"),
        ("concat", "concatenate", "cat", "cat", "{ns}.concat([x, y], axis=0)"),
        ("contiguous", "ascontiguousarray", "=", "", "x.contiguous()"),
        ("conv2d", "", "=", "=", "{ns}.conv2d(x, weight, bias)"),
        ("conv_transpose2d", "", "=", "=", "{ns}.conv_transpose2d(x, weight, bias)"),
        ("cross_entropy", "", "=", "", "{ns}.cross_entropy(logits, targets)"),
        ("cumulative_prod", "cumprod", "cumprod", "cumprod", "{ns}.cumulative_prod(x, axis=0)"),
        ("divide", "=", "div", "div", "x / y"),
        ("equal", "=", "eq", "=", "x == y"),
        ("expand_dims", "=", "unsqueeze", "unsqueeze_dim", "{ns}.expand_dims(x, 0)"),
        ("eye", "identity", "=", "", "{ns}.eye(3)"),
        ("flatten", "ravel", "=", "=", "x.flatten()"),
        ("floor_divide", "=", "=", "", "x // y"),
        ("from_numpy", "asarray", "=", "", "{ns}.from_numpy(array)"),
        ("gelu_tanh", "", "", "gelu_approximate", "x.gelu_tanh()"),
        ("greater", "=", "gt", "=", "x > y"),
        ("greater_equal", "=", "ge", "=", "x >= y"),
        ("index_add", "", "=", "select_assign", "x.index_add(indices, update, axis=0)"),
        ("interpolate2d", "", "interpolate", "interpolate", "{ns}.interpolate2d(x, (64, 64))"),
        ("isfinite", "=", "=", "is_finite", "x.isfinite()"),
        ("isinf", "=", "=", "is_inf", "x.isinf()"),
        ("isnan", "=", "=", "is_nan", "x.isnan()"),
        ("less", "=", "lt", "lower", "x < y"),
        ("less_equal", "=", "le", "lower_equal", "x <= y"),
        ("log_sigmoid", "", "logsigmoid", "=", "x.log_sigmoid()"),
        ("logical_and", "=", "=", "bool_and", "x & y"),
        ("logical_not", "=", "=", "bool_not", "~x"),
        ("logical_or", "=", "=", "bool_or", "x | y"),
        ("logical_xor", "=", "=", "bool_xor", "x ^ y"),
        ("masked_select", "extract", "=", "mask_select", "x[mask]"),
        ("matmul", "=", "mm", "=", "x @ y"),
        ("matmul_integer", "", "_int_mm", "", "{ns}.matmul_integer(x, y)"),
        ("matrix_transpose", "=", "adjoint", "transpose", "x.mT"),
        ("max", "amax", "amax", "max_dim", "x.max(axis=1)"),
        ("max_pool2d", "", "=", "=", "{ns}.max_pool2d(x, 2)"),
        ("maximum", "=", "=", "max_pair", "x.maximum(y)"),
        ("min", "amin", "amin", "min_dim", "x.min(axis=1)"),
        ("minimum", "=", "=", "min_pair", "x.minimum(y)"),
        ("moveaxis", "=", "movedim", "movedim", "{ns}.moveaxis(x, 0, -1)"),
        ("multiply", "=", "mul", "mul", "x * y"),
        ("negative", "=", "neg", "neg", "-x"),
        ("not_equal", "=", "ne", "=", "x != y"),
        ("outer", "=", "ger", "", "{ns}.outer(x, y)"),
        ("permute_dims", "transpose", "permute", "permute", "x.permute_dims(1, 0)"),
        ("pow", "power", "=", "powf", "x ** 2"),
        ("random.bernoulli", "", "bernoulli", "", "{ns}.random.bernoulli(3)"),
        ("random.normal", "random.normal", "randn", "", "{ns}.random.normal((2, 3))"),
        (
            "random.permutation",
            "random.permutation",
            "randperm",
            "",
            "{ns}.random.permutation(10)",
        ),
        ("random.randint", "random.integers", "randint", "", "{ns}.random.randint((3,), 0, 10)"),
        ("random.uniform", "random.random", "rand", "random", "{ns}.random.uniform((2, 3))"),
        ("reciprocal", "=", "=", "recip", "1 / x"),
        ("repeat", "=", "repeat_interleave", "", "x.repeat(2)  # flat; axis=0 for dim=0"),
        ("reshape", "=", "view", "=", "x.reshape(2, 3)"),
        ("round", "around", "=", "=", "x.round()"),
        ("scatter", "put_along_axis", "=", "", "x.scatter(indices, update, axis=0)"),
        ("seed", "random.seed", "manual_seed", "=", "{ns}.seed(0)"),
        ("slice_scatter", "", "=", "slice_assign", "x.at[1:3].set(y)"),
        ("split", "=", "=", "split_with_sizes", "{ns}.split(x, [2, 3])"),
        ("squeeze", "=", "=", "squeeze_dims", "x.squeeze(0)"),
        ("subtract", "=", "sub", "sub", "x - y"),
        ("swapaxes", "=", "swapdims", "swap_dims", "x.swapaxes(0, 1)"),
        ("take", "=", "index_select", "select", "x.take(indices, axis=0)"),
        ("take_along_axis", "=", "gather", "gather", "x.take_along_axis(indices, axis=0)"),
        ("tile", "=", "=", "repeat", "{ns}.tile(x, (2, 1))"),
        ("topk", "", "=", "topk_with_indices", "x.topk(3)"),
        ("unstack", "=", "unbind", "iter_dim", "{ns}.unstack(x, axis=0)"),
        ("use_device", "", "set_default_device", "", "with {ns}.use_device(device): ..."),
        ("vecdot", "=", "=", "dot", "{ns}.vecdot(x, y)"),
        (
            "vector_norm",
            "linalg.norm",
            "norm",
            "vector_norm",
            "{ns}.vector_norm(x)  # of a matrix by ord {ns}.linalg.matrix_norm(x, ord=2)",
        ),
        ("where", "=", "=", "mask_where", "{ns}.where(condition, x, y)"),
    )
)
SPELLINGS: Final = tuple(sorted((*_MATH, *(Spelling(*row) for row in NETWORK_ROWS))))

# What only the namespaces of others have.
NAMES: Final = {
    **PROCESSES,
    "FloatTensor": "{ns}.asarray([1.0, 2.0])",
    "Function": "@px.custom_gradient above a def",
    "IntTensor": '{ns}.asarray([1, 2], dtype="int32")',
    "LongTensor": "{ns}.asarray([1, 2])",
    "Module": "nn.Module, by from phlox import nn",
    "Sequential": "nn.Sequential, by from phlox import nn",
    "Size": "x.shape  # a tuple",
    "amp": 'px.Autodiff(px.Mixed(px.Cpu(), "bfloat16"))  # the device of a model',
    "autocast": 'px.Autodiff(px.Mixed(px.Cpu(), "bfloat16"))  # the device of a model',
    "autograd": "px.grad(loss_of)(model), or loss.backward(); @px.custom_gradient for Function",
    "backends": "px.devices()",
    "cond": "px.where(condition, x, y); px.linalg.svdvals(x) for the number of linalg.cond",
    "custom_vjp": "@px.custom_gradient above a def",
    "data": "rows = px.random.permutation(len(x)), then batches x[rows[:32]], x[rows[32:64]], …",
    "detect_anomaly": "with px.detect_nan(): ...",
    "device": '{ns}.as_device("cpu")',
    "device_put": 'x.to_device("wgpu")',
    "distributed": "one device runs a call: Cpu() uses every core",
    "double": "{ns}.float64",
    "enable_grad": "with px.no_grad(): ... around what is not to be recorded, and only there",
    "float": "{ns}.float32",
    "fori_loop": "a loop of Python, inside of px.compile too",
    "func": "px.grad, px.jacobian, px.vmap",
    "functional": "px.relu(x): functions of tensors are in px itself",
    "functional_call": "px.grad(lambda model: loss_of(model(x)))(model): models are arguments",
    "get_default_dtype": "px.default_device().default_float",
    "get_default_device": "px.default_device()",
    "half": "{ns}.float16",
    "inference_mode": "with px.no_grad(): ..., or model.valid()",
    "int": "{ns}.int32",
    "is_grad_enabled": "x.requires_grad",
    "jacfwd": 'px.jacobian(f, mode="columns")(x)',
    "jacrev": 'px.jacobian(f, mode="rows")(x)',
    "jit": "px.compile(f)",
    "lax": "px.where, px.vmap, and loops of Python inside of px.compile",
    "linearize": "y, tangent = px.jvp(f, (x,), (v,))",
    "hub": 'nn.models.load("folder")  # of a model that is on this machine',
    "load": "model = model.load_file(path), px.record.load(path) for all that a file holds",
    "long": "{ns}.int64",
    "metrics": "px.train.Accuracy(), and what else phlox metrics lists",
    "ndarray": "{ns}.Tensor",
    "pmap": "px.distributed.init()  # phlox launch starts a process for each device",
    "remat": "px.checkpoint(f)",
    "save": "model.save_file(path)",
    "scan": "a loop of Python, inside of px.compile too; x.cumsum(axis=0) and its like",
    "set_default_dtype": 'with {ns}.use_device(px.Cpu(float="float64")): ...',
    "set_grad_enabled": "with px.no_grad(): ...",
    "set_num_threads": "PHLOX_NUM_THREADS=4 in the environment",
    "special": "px.erf(x): functions of tensors are in px itself",
    "summary": "nn.summary(model, px.Spec((32, 3), px.float32))",
    "synchronize": "x.numpy()  # waits for what computes x, and nothing else has to",
    "tree_map": "px.tree.map(f, tree)",
    "utils": "px.data.DataLoader; px.checkpoint(f) for utils.checkpoint; nn has nn.weight_norm",
    "while_loop": "a loop of Python, inside of px.compile too",
}

# What is of complex numbers in the array API.
COMPLEX: Final = {
    "angle": "{ns}.fft.fft(x).angle()",
    "complex128": "{ns}.fft.Spectrum(real, imag)",
    "complex64": "{ns}.fft.Spectrum(real, imag)",
    "eig": "{ns}.linalg.eigh(x)  # of symmetric matrices; numpy.linalg.eig(x.numpy()) of others",
    "eigvals": "{ns}.linalg.eigvalsh(x)  # of symmetric matrices; numpy.linalg.eigvals(x.numpy())",
    "imag": "{ns}.fft.fft(x).imag",
    "is_complex": "isinstance(x, {ns}.fft.Spectrum)",
    "isreal": "isinstance(x, {ns}.Tensor)",
    "polar": "{ns}.fft.Spectrum(x * angle.cos(), x * angle.sin())",
    "view_as_complex": "{ns}.fft.Spectrum(x[..., 0], x[..., 1])",
    "view_as_real": "{ns}.stack(spectrum, axis=-1)",
}

_NONE: Final = ("", "=")
_DIGIT: Final = re.compile(r"\d")
_SHORTEST: Final = 4
_X: Final = re.compile(r"\bx\b")


def _codes() -> dict[str, tuple[str, str]]:
    """By a name of another library: our name, and what to type."""
    found: dict[str, tuple[str, str]] = {}
    for row in SPELLINGS:
        for name in (row.numpy, row.torch, row.burn):
            if name not in _NONE:
                found.setdefault(name.rpartition(".")[2], (row.ours, row.code))
    return found | {name: ("", code) for name, code in IDIOMS.items()}


FOREIGN: Final = _codes()
# What other packages of phlox have, and a user of only this one may look for.
_BESIDE: Final = frozenset(
    ("Autodiff", "Cpu", "Wgpu", "compile", "grad", "nn", "onnx", "optim", "value_and_grad", "vmap")
)


def unknown_name(name: str, owner: str, ns: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that ``owner`` lacks: what it is called here, or what is near."""
    if name in COMPLEX:
        what = "complex numbers: tensors are real, pairs are px.fft.Spectrum"
        return UnknownNameError(name, what, hint=COMPLEX[name].format(ns=ns))
    if owner == "phlox_tensor" and name in _BESIDE:
        what = "a name of phlox, which is more than phlox_tensor"
        return UnknownNameError(
            name, what, hint=f"pip install phlox; import phlox as px; px.{name}"
        )
    inside = FOREIGN.get(f"{owner.rpartition('.')[2]}.{name}")  # where a namespace means more
    ours, code = inside or FOREIGN.get(name, ("", ""))
    # A class of tensors lists nothing; only other libraries have namespaces inside of the package.
    code = NAMES.get(name, code) if known and "." not in owner else code
    if code:
        what = f"phlox calls this {ours}" if ours else "phlox writes this otherwise"
        return UnknownNameError(name, what, hint=code.format(ns=ns))
    if name in REGISTRY and owner != "phlox_tensor.ops":
        op, root = REGISTRY[name], ns.partition(".")[0]
        hint = f"{root}.ops.{name}" if op.internal else f"{root}.{name}"
        return UnknownNameError(name, f"an op, but no name of {owner}", hint=hint)
    if code := _in_place(name, ns):
        return UnknownNameError(name, "tensors never change", hint=code)
    # A slip leaves the first letter and the digits; of fewer letters anything may be meant.
    alike = [n for n in known if n[0] == name[:1] and _DIGIT.findall(n) == _DIGIT.findall(name)]
    near = None if len(name) < _SHORTEST or _others(name) else nearest(name, alike, 0.8)
    return UnknownNameError(name, f"no such name in {owner}", hint=near and f"{ns}.{near}")


def _in_place(name: str, ns: str) -> str:
    """Return what to type for a name of PyTorch that changes a tensor, such as ``sqrt_``."""
    base = name[:-1]
    if not name.endswith("_") or _others(name):
        return ""
    if base in FOREIGN:
        return f"x = {FOREIGN[base][1].format(ns=ns)}"
    return f"x = {ns}.{base}(x)" if base in REGISTRY and not REGISTRY[base].internal else ""


def _others(name: str) -> bool:
    """Whether other libraries have a name: it is no slip of the pen, and what is alike differs."""
    return name in OTHERS or any(hasattr(room, name) for room in (np, np.fft, np.linalg))


def unknown_member(name: str, module: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that ``px.linalg``, ``px.fft`` or the like lacks."""
    if name.startswith("_"):  # what copying, pickling and the import system ask for
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    owner = f"px.{module.rpartition('.')[2]}"
    is_ours = name in COMPLEX or name in FOREIGN
    public = [each for each in known if not each.startswith("_")]
    return unknown_name(name, owner, "px" if is_ours else owner, public)


def _takes(function: Any) -> bool:
    """Whether a function may be called with a tensor."""
    code = getattr(unwrap(function), "__code__", None)
    return code is not None and bool(code.co_argcount or code.co_flags & CO_VARARGS)


class Hint:
    """Stands on a class for a name that it lacks: reading it raises the error that says more.

    A class with ``__getattr__`` would do, but there every attribute takes twice as long.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Say which name."""
        self.name = name

    def __get__(self, instance: object, owner: type) -> Never:
        if self.name not in FOREIGN and not self.name.endswith("_"):
            what = f"a function, no method of {owner.__name__}"
            raise UnknownNameError(self.name, what, hint=f"px.{self.name}(x)")
        raise unknown_name(self.name, owner.__name__, "px", ())


def install(cls: type, space: Mapping[str, Any]) -> None:
    """Put a hint on a class of tensors for each name of others, and function of ours, it lacks.

    Args:
        cls: the class.
        space: the functions, by name.
    """
    names = {n for n, (_, code) in FOREIGN.items() if _X.search(code)}
    names |= {n for n, f in space.items() if n[0] != "_" and n not in FOREIGN and _takes(f)}
    names |= {f"{n}_" for n in (*names, *REGISTRY) if hasattr(cls, n) or n in FOREIGN}
    names -= {n for n in names if hasattr(cls, n)}
    for name in names:
        setattr(cls, name, Hint(name))

    def listed(self: object) -> list[str]:
        return sorted(name for name in object.__dir__(self) if name not in names)

    setattr(cls, "__dir__", listed)  # noqa: B010 - checkers know only the one of object
