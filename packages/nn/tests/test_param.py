"""Parameters: made when first needed, reproducible in any order, replaced and never changed."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Param, initializers
from phlox_tensor import (
    ArgumentError,
    Backend,
    GradientError,
    Numpy,
    UnknownNameError,
    WrongTypeError,
)


def numbers(param: Param) -> Any:
    return param.value.tolist()


def test_a_parameter_holds_a_tensor() -> None:
    value = pt.asarray([1.0, 2.0])
    param = Param(value)
    assert param.value is value
    assert (param.shape, param.dtype, param.device) == ((2,), pt.float32, Numpy())
    assert len(param.id) == 16
    assert param.id != Param(value).id
    assert Param(value, id="abc").id == "abc"
    assert repr(param) == "Param(float32[2])"
    assert repr(Param(value, trainable=False)) == "Param(float32[2], frozen)"
    assert repr(nn.State(value)) == "Param(float32[2], state)"
    assert [p.trainable for p in (param, nn.State(value))] == [True, False]


def test_a_lazy_parameter_is_made_once_and_when_needed() -> None:
    calls = []

    def make() -> Any:
        calls.append(1)
        return pt.ones(2, device="numpy")

    param = Param.lazy(make, (2,), pt.float32, Numpy())
    before = param.is_initialized, param.shape, len(calls)
    assert before == (False, (2,), 0)
    threads = [threading.Thread(target=lambda: param.value) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert param.is_initialized
    assert calls == [1]


def test_numbers_do_not_depend_on_the_order_of_use() -> None:
    pt.seed(3)
    first = [nn.Linear(4, 4), nn.Linear(4, 4)]
    pt.seed(3)
    second = [nn.Linear(4, 4), nn.Linear(4, 4)]
    forward = [numbers(m.weight) for m in first]
    backward = [numbers(m.weight) for m in reversed(second)][::-1]
    assert forward == backward
    assert forward[0] != forward[1]
    assert numbers(first[0].weight) != numbers(nn.Linear(4, 4).weight)


def test_making_a_parameter_late_leaves_other_draws_alone() -> None:
    pt.seed(4)
    layer = nn.Linear(8, 8)
    _ = layer.weight.value, layer.bias
    early = pt.random.normal(3).tolist()
    pt.seed(4)
    nn.Linear(8, 8)
    assert pt.random.normal(3).tolist() == early


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("initializer", [initializers.Normal(), initializers.Uniform(0.0, 1.0)])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_neighbours_share_no_random_words(
    dtype: str, initializer: initializers.Initializer, count: int
) -> None:
    """A parameter reserves as many blocks as it draws, whatever its size and type."""
    device = Numpy(float=dtype)
    before = pt.random.generator().state()[1]
    param = initializer.param((count,), device)
    after = pt.random.generator().state()[1]
    with pt.random.use_generator(pt.random.Generator(0, before)) as own:
        if isinstance(initializer, initializers.Normal):
            pt.random.normal((count,), device=device)
        else:
            pt.random.uniform((count,), device=device)
        assert own.state()[1] <= after
    assert param.value.shape == (count,)


def test_moving_a_lazy_parameter_keeps_it_lazy_and_equal() -> None:
    wide = Numpy(int="int32")
    layer = nn.Linear(3, 2)
    moved = layer.to_device(wide)
    assert not moved.weight.is_initialized
    assert moved.weight.device is wide
    assert numbers(moved.weight) == numbers(layer.weight)
    assert moved.weight.value.device is wide


def test_leaves_on_a_device_that_records(recording: Backend) -> None:
    assert Param(pt.ones(1, device=recording)).value.requires_grad
    assert not Param(pt.ones(1, device=recording), trainable=False).value.requires_grad
    whole = Param(pt.arange(3, device=recording), trainable=False)
    assert not whole.value.requires_grad
    tracked = pt.ones(1, device=recording).require_grad()
    assert Param(tracked).value.requires_grad
    with pytest.raises(GradientError, match=r"(?s)not trained: got a tracked.*x.detach()"):
        Param(tracked, trainable=False)


def test_new_values_keep_the_identity() -> None:
    param = Param(pt.zeros(2))
    other = param.with_value(pt.ones(2))
    assert other.id == param.id
    assert numbers(param) == [0, 0]
    for wrong in (pt.ones(3), pt.ones(2, dtype=pt.float64), pt.ones(2, device=Numpy(int="int32"))):
        with pytest.raises(ArgumentError, match=r"(?s)\[with_value\].*hint: nn.Param\(value, id="):
            param.with_value(wrong)
    assert param.with_trainable(True) is param
    state = nn.State(pt.zeros(2))
    assert state.with_trainable(True) is state
    assert param.to_device(Numpy()) is param


def test_values_from_inside_the_device_are_lifted(recording: Backend) -> None:
    param = Param(pt.zeros(2, device=recording)).with_value(pt.ones(2, device=Numpy()))
    assert param.device is recording
    assert param.value.requires_grad
    assert numbers(param) == [1, 1]


Name = str
ALL: dict[Name, Any] = {
    "Constant": initializers.Constant(2.5),
    "KaimingNormal": initializers.KaimingNormal(),
    "KaimingNormal-out": initializers.KaimingNormal(gain=2.0, fan_out_only=True),
    "KaimingUniform": initializers.KaimingUniform(),
    "KaimingUniform-out": initializers.KaimingUniform(gain=2.0, fan_out_only=True),
    "Normal": initializers.Normal(1.0, 3.0),
    "Ones": initializers.Ones(),
    "Orthogonal": initializers.Orthogonal(gain=2.0),
    "TruncatedNormal": initializers.TruncatedNormal(std=0.5, min=-1.0, max=1.0),
    "Uniform": initializers.Uniform(-1.0, 3.0),
    "XavierNormal": initializers.XavierNormal(gain=2.0),
    "XavierUniform": initializers.XavierUniform(),
    "Zeros": initializers.Zeros(),
}
FAN_IN, FAN_OUT = 300, 200
# Mean and standard deviation by the papers' formulas; uniform in ±b has b / √3.
MOMENTS: dict[Name, tuple[float, float]] = {
    "Constant": (2.5, 0.0),
    "KaimingNormal": (0.0, (2 / FAN_IN) ** 0.5),
    "KaimingNormal-out": (0.0, 2 / FAN_OUT**0.5),
    "KaimingUniform": (0.0, (2 / FAN_IN) ** 0.5),
    "KaimingUniform-out": (0.0, 2 / FAN_OUT**0.5),
    "Normal": (1.0, 3.0),
    "Ones": (1.0, 0.0),
    "Orthogonal": (0.0, 2 / FAN_IN**0.5),
    "TruncatedNormal": (0.0, 0.8796 / 2),  # what PyTorch's trunc_normal_ has, cut at two of 0.5
    "Uniform": (1.0, 4 / 12**0.5),
    "XavierNormal": (0.0, 2 * (2 / (FAN_IN + FAN_OUT)) ** 0.5),
    "XavierUniform": (0.0, (2 / (FAN_IN + FAN_OUT)) ** 0.5),
    "Zeros": (0.0, 0.0),
}
BOUNDS: dict[Name, float] = {
    "KaimingUniform": (6 / FAN_IN) ** 0.5,
    "KaimingUniform-out": 2 * (3 / FAN_OUT) ** 0.5,
    "TruncatedNormal": 1.0,
    "XavierUniform": (6 / (FAN_IN + FAN_OUT)) ** 0.5,
}


@pytest.mark.parametrize("name", sorted(ALL))
def test_initializers_have_their_moments(name: Name) -> None:
    values = ALL[name].param((FAN_IN, FAN_OUT)).value.numpy().astype(np.float64)
    mean, std = MOMENTS[name]
    assert abs(values.mean() - mean) <= 5 * std / values.size**0.5
    assert abs(values.std() - std) <= 0.02 * std
    if name in BOUNDS:
        assert abs(values).max() <= BOUNDS[name] * (1 + 1e-6)
        assert abs(values).max() > 0.99 * BOUNDS[name]


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (3, 2, 2, 2), (1, 3)])
def test_orthogonal_rows_or_columns_are_at_right_angles(shape: tuple[int, ...]) -> None:
    device = Numpy(float="float64")
    values = initializers.Orthogonal(gain=3.0).param(shape, device).value.numpy()
    flat = values.reshape(shape[0], -1)
    product = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
    assert np.allclose(product, 9 * np.eye(min(flat.shape)), atol=1e-12)
    assert numbers(initializers.Orthogonal().param((3,))) == [0, 0, 0]


def test_linear_and_convolution_layers_start_as_those_of_pytorch() -> None:
    layers: list[Any] = [nn.Linear(100, 40), nn.Conv2d(25, 40, (2, 2)), nn.Conv1d(50, 40, 2)]
    for layer in layers:
        assert layer.settings.initializer == initializers.KaimingUniform(1 / 3**0.5)
        for param in (layer.weight, layer.bias):
            assert 0.08 < abs(param.value.numpy()).max() <= 0.1


def test_a_truncated_normal_has_bounds_in_order() -> None:
    for wrong in ({"std": 0.0}, {"min": 2.0}):
        with pytest.raises(nn.ConfigError):
            initializers.TruncatedNormal(**wrong)


def test_every_initializer_is_tried() -> None:
    made = {type(value) for value in ALL.values()}
    known = {
        v
        for v in vars(initializers).values()
        if isinstance(v, type) and issubclass(v, initializers.Initializer)
    }
    assert known - made == {initializers.Initializer}


def test_fans_of_layers() -> None:
    linear = nn.Linear(100, 50)
    assert linear.bias is not None
    assert abs(linear.weight.value.numpy()).max() <= 0.1
    assert abs(linear.bias.value.numpy()).max() <= 0.1
    conv = nn.Conv2d(8, 6, kernel_size=(5, 5), groups=2)
    assert abs(conv.weight.value.numpy()).max() <= (4 * 25) ** -0.5
    assert nn.Linear(0, 3)(pt.zeros((2, 0))).shape == (2, 3)
    with pytest.raises(nn.ConfigError, match=r"d_input makes no sense: got -1"):
        nn.Linear(-1, 3)
    with pytest.raises(ArgumentError, match="negative size"):
        initializers.Zeros().param((-1, 3))


class Ramp(initializers.Initializer):
    """An initializer of a user."""

    step: float = 0.5

    def values(self, shape: tuple[int, ...], fans: initializers.Fans, device: Backend) -> Any:
        return pt.arange(0, np.prod(shape) * self.step, self.step, device=device).reshape(shape)


def test_an_initializer_of_a_user() -> None:
    layer = nn.Linear(2, 2, initializer=Ramp(2))
    with pytest.raises(ArgumentError, match=r"got int64\[2, 2\] .*expected float32\[2, 2\]"):
        _ = layer.weight.value
    assert nn.Linear(1, 2, initializer=Ramp()).weight.value.tolist() == [[0.0, 0.5]]
    half = nn.LinearConfig(1, 2, bias=False, initializer=Ramp())
    assert half.to_dict()["initializer"] == {"kind": "Ramp", "step": 0.5}
    assert nn.LinearConfig.from_dict(half.to_dict()) == half
    unknown = {**half.to_dict(), "initializer": {"kind": "Hill"}}
    with pytest.raises(nn.ConfigError, match=r"initializer.kind: got 'Hill', expected .*'Zeros'"):
        nn.LinearConfig.from_dict(unknown)


def test_the_base_initializer_says_what_is_missing() -> None:
    base: Any = initializers.Initializer
    with pytest.raises(TypeError, match=r"abstract.*values"):
        base()


ORDERED = ("ge", "gt", "le", "lt")
BITS = ("and_", "lshift", "or_", "rshift", "xor")
BINARY = ("add", "floordiv", "matmul", "mod", "mul", "pow", "sub", "truediv", *BITS, *ORDERED)
HOLDERS: dict[str, tuple[Callable[[], Any], str]] = {
    "module": (lambda: nn.Linear(2, 2), "model(x)"),
    "parameter": (lambda: Param(pt.ones(2)), "param.value"),
}


@pytest.mark.parametrize("other", [pt.ones(2), np.ones(2), np.float32(2), 2, 2.5, True], ids=repr)
@pytest.mark.parametrize(("make", "hint"), HOLDERS.values(), ids=HOLDERS)
def test_operators_say_what_to_type(make: Callable[[], Any], hint: str, other: Any) -> None:
    holder = make()
    for name in BINARY:
        apply = getattr(operator, name)
        for pair in ((holder, other), (other, holder), (holder, holder)):
            with pytest.raises(WrongTypeError, match="is no tensor") as error:
                apply(*pair)
            assert error.value.hint == hint
    for name in ("abs", "invert", "neg", "pos"):
        with pytest.raises(WrongTypeError, match="is no tensor"):
            getattr(operator, name)(holder)


@pytest.mark.parametrize(("make", "hint"), HOLDERS.values(), ids=HOLDERS)
def test_comparing_with_a_tensor_is_refused_and_with_others_is_not(
    make: Callable[[], Any], hint: str
) -> None:
    holder = make()
    for other in (pt.ones(2), np.ones(2)):
        for compare in (operator.eq, operator.ne):
            with pytest.raises(WrongTypeError, match="is no tensor") as error:
                compare(holder, other)
            assert error.value.hint == hint
    assert holder == holder  # noqa: PLR0124 - itself
    assert holder != make()
    assert holder != 1
    assert holder is not None
    assert {holder: 1}[holder] == 1


@pytest.mark.parametrize(
    "call",
    [
        pt.exp,
        pt.asarray,
        lambda p: pt.asarray([p, p]),
        lambda p: pt.concat([p, p]),
        lambda p: pt.full(2, p),
        pt.ones(2).at[0].set,
        lambda p: pt.where(pt.ones(2) > 0, p, 1.0),
        lambda p: p[0],
        list,
    ],
)
def test_functions_of_tensors_say_what_to_type(call: Callable[[Any], Any]) -> None:
    with pytest.raises(WrongTypeError, match=r"a Param is no tensor(.|\n)*hint: param.value"):
        call(Param(pt.ones(2)))


def test_members_of_tensors_say_what_to_type() -> None:
    param = Param(pt.ones(2))
    for name in ("sum", "exp", "reshape", "T", "numpy"):
        with pytest.raises(UnknownNameError, match="a Param holds a tensor, and is none") as error:
            getattr(param, name)
        assert error.value.hint == f"param.value.{name}"
    with pytest.raises(UnknownNameError) as error:
        param.data  # type: ignore[attr-defined]  # noqa: B018
    assert error.value.hint == "param.value.detach()"
    assert "sum" not in dir(param)
    assert "value" in dir(param)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = param.nothing  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'sum'"):
        _ = Param.sum  # type: ignore[attr-defined]


def test_another_type_may_say_what_it_means_beside_a_parameter() -> None:
    class Knows:
        def __radd__(self, other: object) -> str:
            return "mine"

    holder: Any = Param(pt.ones(2))
    assert holder + Knows() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = holder + "text"


# Which parameters are meant


def test_freezing_a_layer_itself_says_how_to_name_it() -> None:
    model: Any = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    for where in (model.layers[0], model.layers[0].weight):
        for call in (model.freeze, model.unfreeze):
            with pytest.raises(ArgumentError, match=r"not a path(.|\n)*hint: model.*, its path"):
                call(where)


def test_a_function_that_chooses_gives_a_bool() -> None:
    model: Any = nn.Linear(2, 2)
    with pytest.raises(WrongTypeError, match="neither True nor False: got builtin_function"):
        model.freeze(lambda path, param: path.endswith)
    assert not model.freeze(lambda path, param: path.endswith("bias")).bias.trainable


@pytest.mark.parametrize(
    "use",
    [np.asarray, np.mean, float, int, complex, round, lambda p: divmod(p, 2)],
    ids=["asarray", "mean", "float", "int", "complex", "round", "divmod"],
)
@pytest.mark.parametrize("make", [lambda: Param(pt.ones(1)), lambda: nn.Linear(1, 1)])
def test_numpy_and_numbers_take_no_parameter(
    use: Callable[[Any], Any], make: Callable[[], Any]
) -> None:
    with pytest.raises(TypeError, match="is no tensor"):
        use(make())


def test_a_parameter_is_neither_true_nor_false() -> None:
    with pytest.raises(WrongTypeError, match=r"neither true nor false(.|\n)*param is not None"):
        bool(Param(pt.ones(1)))


def test_a_value_is_not_assigned() -> None:
    param: Any = Param(pt.ones(1))
    with pytest.raises(AttributeError, match=r"got an assignment to 'value'(.|\n)*with_value"):
        param.value = pt.ones(1)


def test_a_lazy_parameter_has_sizes_that_are_ints() -> None:
    shape: Any = (2.5,)
    with pytest.raises(pt.ArgumentError, match=r"sizes are ints: got \(2\.5,\)"):
        nn.Param.lazy(lambda: pt.ones(2), shape, pt.float32, pt.Numpy())
