"""Programs that go on with the elements of a row behind its folds: one kernel, the bits of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import Tensor
from phlox_tensor.capture import Instr, Program, interpreted
from phlox_wgpu import Wgpu
from phlox_wgpu._kernel import source
from phlox_wgpu._program_stages import staged
from phlox_wgpu.wgsl.stages import Rows, stages_source


def _program(
    *instrs: str, inputs: Sequence[str], outputs: Sequence[str], rows: tuple[int, ...] = ()
) -> Program:
    """Instructions as ``name: type = op a b``, of named inputs and numbers (``n...``)."""
    names = {name.split(":")[0]: at for at, name in enumerate(inputs)}
    types = [name.split(":")[1] for name in inputs]
    made = []
    for text in instrs:
        name, _, does = text.partition(" = ")
        op, *args = does.split()
        called, _, dtype = name.partition(":")
        made.append(Instr(op, tuple(names[arg] for arg in args), dtype or "float32"))
        names[called] = len(names)
    arrays = [kind for name, kind in zip(inputs, types, strict=True) if not name.startswith("n")]
    return Program(
        tuple(arrays),
        tuple(types[len(arrays) :]),
        tuple(made),
        tuple(names[output] for output in outputs),
        inner=1,
        rows=rows,
    )


SOFTMAX = _program(
    "top = max x",
    "low = subtract x top",
    "e = exp low",
    "all = sum e",
    "y = divide e all",
    inputs=["x:float32"],
    outputs=["y"],
)
LAYER_NORM = _program(
    "middle = mean x",
    "c = subtract x middle",
    "square = square c",
    "variance = mean square",
    "safe = add variance n",
    "scale = rsqrt safe",
    "normal = multiply c scale",
    "scaled = multiply normal w",
    "y = add scaled b",
    inputs=["x:float32", "w:float32", "b:float32", "n:float32"],
    outputs=["y", "scale", "middle"],
)
# All ops that fold, a mask, half precision in, bools out, a value for each row that is given.
MANY = _program(
    "wide = cast half",
    "given = where mask wide head",
    "low = min given",
    "high = max given",
    "small = multiply given n",
    "near = add small one",
    "product = prod near",
    "range = subtract high low",
    "shifted = subtract given low",
    "part = divide shifted range",
    "all = sum part",
    "over:bool = greater given small",
    "rows:bool = less all head",
    inputs=["half:float16", "mask:bool", "head:float32", "one:float32", "n:float32"],
    outputs=["over", "rows", "part", "all", "product"],
    rows=(2,),
)

SHAPES = [
    (1, 2),
    (3, 5),
    (70, 8),
    (33, 100),
    (9, 1000),
    (6, 4096),
    (3, 4100),
    (2, 5001),
    (1, 40000),
]


def _close(found: Sequence[Any], wanted: Sequence[Any], gpu: Wgpu, rtol: float = 3e-5) -> None:
    for mine, own in zip(found, wanted, strict=True):
        assert gpu.shape_of(mine) == own.shape
        got = gpu.read(mine)
        assert np.allclose(got, own, rtol=rtol, atol=3e-6, equal_nan=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keepdims", [True, False])
def test_rows_of_any_length_give_what_the_reference_gives(
    gpu: Wgpu, rng: np.random.Generator, shape: tuple[int, int], keepdims: bool
) -> None:
    x = rng.standard_normal(shape).astype("f4")
    w, b = (rng.standard_normal(shape[1]).astype("f4") for _ in range(2))
    half, mask = x.astype("f2"), rng.random(shape) < 0.9
    head = rng.standard_normal((shape[0], 1)).astype("f4")
    one = np.ones((1, 1), "f4")
    cases: list[tuple[Program, list[Any], list[float]]] = [
        (SOFTMAX, [x], []),
        (LAYER_NORM, [x, w, b], [1e-5]),
    ]
    if pt.float16 in gpu.dtypes and keepdims:
        cases.append((MANY, [half, mask, head, one], [1e-4]))
    for program, arrays, numbers in cases:
        shown = program._replace(keepdims=keepdims)
        run = gpu.kernel(shown)
        assert run is not None
        given = [pt.asarray(array, device=gpu).primitive for array in arrays]
        wanted = interpreted(shown)(*arrays, *numbers)
        for _ in range(2):  # planned, and from the plan
            _close(run(*given, *numbers), wanted, gpu, 1e-3)  # a product of 5000 numbers


def test_operands_lie_in_any_way_and_several_axes_are_a_row(
    gpu: Wgpu, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((2, 6, 4, 12)).astype("f4")
    tensor = pt.asarray(x, device=gpu)
    cases: list[tuple[Tensor, Any]] = [
        (tensor.permute_dims((1, 0, 3, 2)), x.transpose(1, 0, 3, 2)),
        (tensor[:, ::2], x[:, ::2]),
        (tensor[..., 1:11], x[..., 1:11]),
        (tensor.flip(3), x[..., ::-1]),
        (tensor[:, :1], x[:, :1]),
    ]
    for inner in (1, 2, 4):
        program = SOFTMAX._replace(inner=inner)
        run = gpu.kernel(program)
        assert run is not None
        for mine, own in cases:
            _close(run(mine.primitive), interpreted(program)(own), gpu)


def _softmax(x: Tensor) -> list[Tensor]:
    e = (x - x.max(axis=-1, keepdims=True)).exp()
    return [e / e.sum(axis=-1, keepdims=True)]


@pytest.mark.parametrize("shape", [(5, 7), (40, 64), (9, 300), (3, 1024), (2, 5000), (2, 5001)])
def test_the_bits_are_those_of_the_ops(
    gpu: Wgpu, rng: np.random.Generator, shape: tuple[int, int]
) -> None:
    x = pt.asarray(rng.standard_normal(shape).astype("f4"), device=gpu)
    run = gpu.kernel(SOFTMAX)
    assert run is not None
    (found,) = run(x.primitive)
    assert gpu.read(found).tobytes() == _softmax(x)[0].numpy().tobytes()


def test_special_values_are_those_of_the_ops(gpu: Wgpu) -> None:
    rows = [[np.nan, 1, 2, 3], [np.inf, 0, 0, 1], [-np.inf] * 4, [0, -0.0, 0, 0]]
    x = pt.asarray(np.array(rows, "f4"), device=gpu)
    run = gpu.kernel(SOFTMAX)
    assert run is not None
    (found,) = run(x.primitive)
    assert np.array_equal(gpu.read(found), _softmax(x)[0].numpy(), equal_nan=True)


@pytest.mark.parametrize(("shape", "made"), [((64, 256), [(64, 256)]), ((2, 40000), None)])
def test_short_rows_are_one_kernel(
    gpu: Wgpu,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int],
    made: list[tuple[int, ...]] | None,
) -> None:
    x = pt.asarray(np.ones(shape, np.float32), device=gpu)
    run = gpu.kernel(SOFTMAX)
    assert run is not None
    run(x.primitive)
    found: list[tuple[int, ...]] = []
    recorded = 0
    empty, record = gpu.device.empty, gpu.device.record

    def noting(shape: Any, *rest: Any) -> Any:
        found.append(tuple(shape))
        return empty(shape, *rest)

    def counting(*args: Any) -> None:
        nonlocal recorded
        recorded += 1
        record(*args)

    monkeypatch.setattr(gpu.device, "empty", noting)
    monkeypatch.setattr(gpu.device, "record", counting)
    run(x.primitive)
    if made is None:  # threads from all over the GPU take part: no array of that size in between
        assert recorded == 5
        assert shape not in found
    else:
        assert (recorded, found) == (1, made)


def test_shapes_without_rows_are_rejected(gpu: Wgpu) -> None:
    run = gpu.kernel(LAYER_NORM)
    assert run is not None
    for shape in ((), (0, 3), (3, 0)):
        arrays = [pt.asarray(np.zeros(shape, np.float32), device=gpu).primitive for _ in range(3)]
        with pytest.raises(pt.Rejected):
            run(*arrays, 1e-5)


def test_what_has_no_row_or_draws_is_left_to_the_ops(gpu: Wgpu) -> None:
    wide = _program(
        "e = exp x", "all = sum e", "y = divide e all", inputs=["x:float64"], outputs=["y"]
    )
    assert gpu.kernel(wide) is None
    ints = _program(
        "y:int32 = pow x x",
        "z = cast y",
        "all = sum z",
        "out = divide z all",
        inputs=["x:int32"],
        outputs=["out"],
    )
    assert gpu.kernel(ints) is None  # a power of integers may report an error


def test_the_text_of_a_softmax_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    rows = Rows("v", 1, lanes=4, vector=True, slots=2)
    golden("softmax_rows", source(stages_source(staged(SOFTMAX, keeps=True), rows)))
