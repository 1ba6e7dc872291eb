"""Modules: typed fields, walks, devices, modes; nothing ever changes in place."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections import OrderedDict
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Module, Param
from phlox_tensor import ArgumentError, Backend, DeviceError, Numpy, Tensor

WIDE = Numpy(float="float64")


class Pair(NamedTuple):
    left: nn.Linear
    right: nn.Linear


class Block(Module):
    """A field of every sort."""

    first: nn.Linear
    rest: list[nn.Linear]
    named: dict[str, nn.Linear]
    pair: Pair
    scale: Param
    shift: Tensor
    labels: tuple[str, ...] = ("a", "b")
    rate: float = 0.5
    anything: object = None
    more: dict[str, int] = field(default_factory=dict)


def linear(device: Backend | None = None) -> nn.Linear:
    return nn.Linear(2, 3, device=device)


def block(device: Backend | None = None) -> Block:
    return Block(
        first=linear(device),
        rest=[linear(device), linear(device)],
        named=OrderedDict(up=linear(device)),
        pair=Pair(linear(device), linear(device)),
        scale=Param(pt.ones(4, device=device)),
        shift=pt.zeros(4, device=device),
    )


PATHS = [
    *(
        f"{place}.{name}"
        for place in ("first", "rest.0", "rest.1", "named.up", "pair.left", "pair.right")
        for name in ("weight", "bias")
    ),
    "scale",
]


def test_fields_make_the_constructor() -> None:
    made = block()
    assert made.field_names()[:2] == ["first", "rest"]
    assert made.labels == ("a", "b")
    assert made.more == {}
    wrong: Any = Block
    with pytest.raises(TypeError, match="missing 6 required"):
        wrong()
    with pytest.raises(TypeError, match=r"\[Block\] unknown argument: got nothing"):
        wrong(nothing=1)


def test_a_module_does_not_change() -> None:
    made: Any = block()
    with pytest.raises(AttributeError, match=r"hint: model = model.replace\(rate=...\)"):
        made.rate = 1.0
    with pytest.raises(AttributeError, match="does not change"):
        made.new = 1
    with pytest.raises(AttributeError, match="does not change"):
        del made.rate
    assert made.rate == 0.5


def test_replace() -> None:
    made = block()
    other = made.replace(rate=1.0)
    assert (made.rate, other.rate) == (0.5, 1.0)
    assert other.first is made.first
    with pytest.raises(AttributeError, match="no such field: got speed, expected first, rest"):
        made.replace(speed=1)


def test_calling_runs_forward() -> None:
    made = linear()
    x = pt.ones((4, 2))
    assert made(x).tolist() == made.forward(x).tolist()
    without: Any = block()
    with pytest.raises(TypeError, match="Block has no method 'forward'"):
        without(x)


def test_visit_sees_every_parameter_with_its_path() -> None:
    made = block()
    seen: list[tuple[str, Param]] = []
    made.visit(lambda path, param: seen.append((path, param)))
    assert [path for path, _ in seen] == PATHS
    assert made.params() == dict(seen)
    assert seen[0][1] is made.first.weight


def test_map_returns_a_module_of_the_same_form() -> None:
    made = block()
    paths = []

    def double(path: str, param: Param) -> Param:
        paths.append(path)
        return param.with_value(param.value * 2)

    other = made.map(double)
    assert paths == PATHS
    assert type(other) is Block
    assert type(other.rest) is list
    assert type(other.named) is OrderedDict
    assert type(other.pair) is Pair
    assert other.labels == made.labels
    for path, param in made.params().items():
        twin = other.params()[path]
        assert twin.id == param.id
        assert np.array_equal(twin.value.numpy(), 2 * param.value.numpy())


def test_shared_parameters_stay_shared_and_count_once() -> None:
    tied = linear()

    class Tied(Module):
        a: nn.Linear
        b: nn.Linear
        again: list[Param]

    made = Tied(tied, tied, [tied.weight])
    calls = []

    def add_one(path: str, param: Param) -> Param:
        calls.append(path)
        return param.with_value(param.value + 1)

    other = made.map(add_one)
    assert calls == ["a.weight", "a.bias"]
    assert other.a.weight is other.b.weight is other.again[0]
    assert made.num_params() == 2 * 3 + 3
    assert list(made.params()) == ["a.weight", "a.bias", "b.weight", "b.bias", "again.0"]


def test_copies_that_differ_in_value_stay_apart() -> None:
    """A slow copy of a network has the ids of the fast one, and numbers of its own."""
    fast = linear()

    class Both(Module):
        fast: nn.Linear
        slow: nn.Linear

    slow = fast.map(lambda _, p: p.with_value(p.value * 0))
    moved = Both(fast, slow).map(lambda _, p: p)
    assert moved.fast.weight.id == moved.slow.weight.id
    assert not moved.slow.weight.value.numpy().any()
    assert moved.fast.weight.value.numpy().any()


def test_constants_are_left_alone() -> None:
    class Odd(Module):
        function: Any
        array: Any
        words: set[str]
        nothing: None
        flag: bool

    made = Odd(len, np.ones(2), {"a"}, None, True)
    other = made.map(lambda _, p: p).to_device(WIDE)
    assert all(getattr(made, n) is getattr(other, n) for n in made.field_names())
    assert made.num_params() == 0
    assert made.devices == []
    assert made.into_record() == {}


def test_moving_between_devices() -> None:
    made = block()
    moved = made.to_device(WIDE)
    assert moved.devices == [WIDE]
    assert moved.shift.device is WIDE
    assert made.devices == [Numpy()]
    assert moved.params().keys() == made.params().keys()
    for path, param in moved.params().items():
        assert param.id == made.params()[path].id
        assert param.dtype is pt.float32
        assert np.array_equal(param.value.numpy(), made.params()[path].value.numpy())
    assert made.to_device(Numpy()).first.weight is made.first.weight
    assert made.to_device("numpy").devices == [Numpy()]


def test_fork_makes_leaves_of_its_own(recording: Backend) -> None:
    made = linear(recording)
    twin = made.fork(recording)
    assert twin.weight is not made.weight
    assert twin.weight.id != made.weight.id
    assert twin.weight.value.requires_grad
    assert np.array_equal(twin.weight.value.numpy(), made.weight.value.numpy())


class Net(Module):
    body: nn.Linear
    norm: nn.BatchNorm
    drops: list[nn.Dropout]
    constant: Tensor


def net(device: Backend, drop: nn.Dropout | None = None) -> Net:
    return Net(
        body=linear(device),
        norm=nn.BatchNorm(3, device=device),
        drops=[drop or nn.Dropout(0.5)],
        constant=pt.ones(1, device=device),
    )


def test_dropout_settles_when_it_joins_parameters(recording: Backend) -> None:
    assert nn.Dropout(0.5).training is None
    assert nn.Dropout(0.5, device=recording).training is True
    assert nn.Dropout(0.5, device=Numpy()).training is False
    assert net(recording).drops[0].training is True
    assert net(Numpy()).drops[0].training is False
    assert net(recording, nn.Dropout(0.5, device=Numpy())).drops[0].training is False

    class OnlyDrops(Module):
        drop: nn.Dropout

    alone = OnlyDrops(nn.Dropout(0.5))
    assert alone.drop.training is None

    class Outer(Module):
        inner: OnlyDrops
        head: nn.Linear

    outer = Outer(alone, linear(recording))
    assert outer.inner.drop.training is True
    assert outer.map(lambda _, p: p).inner.drop.training is True
    assert outer.replace(head=linear(recording)).inner.drop.training is True
    assert pt.tree.map(lambda x: x, outer).inner.drop.training is True


def test_valid_lowers_and_stops_training(recording: Backend) -> None:
    made = net(recording)
    valid = made.valid()
    assert valid.devices == [Numpy()]
    assert valid.constant.device is Numpy()
    assert [valid.norm.training, valid.drops[0].training] == [False, False]
    assert [made.norm.training, made.drops[0].training] == [True, True]
    assert valid.body.weight.value.primitive is made.body.weight.value.primitive.value
    again = valid.valid()
    assert again.devices == [Numpy()]
    assert again.body.weight is valid.body.weight


def test_a_move_to_a_recording_device_is_a_start_of_training(recording: Backend) -> None:
    def modes(model: Net) -> list[bool | None]:
        return [model.norm.training, model.drops[0].training]

    quiet = net(Numpy())
    assert modes(quiet) == [False, False]
    assert modes(quiet.to_device(recording)) == [True, True]
    assert modes(quiet.fork(recording)) == [True, True]
    assert modes(quiet.load_record(quiet.into_record(), recording)) == [True, True]
    still = quiet.to_device(recording).with_training(False)
    assert modes(still.to_device(recording)) == [False, False]
    assert modes(still.fork(recording)) == [False, False]
    assert modes(quiet.to_device(recording).to_device(Numpy())) == [True, True]


def test_train_and_with_training(recording: Backend) -> None:
    made = net(Numpy())
    trained = made.train(recording)
    assert trained.devices == [recording]
    assert [trained.norm.training, trained.drops[0].training] == [True, True]
    assert trained.body.weight.value.requires_grad
    assert not trained.norm.running_mean.value.requires_grad
    stopped = trained.with_training(False)
    assert stopped.devices == [recording]
    assert [stopped.norm.training, stopped.drops[0].training] == [False, False]
    assert stopped.body.weight is trained.body.weight
    with pytest.raises(DeviceError, match=r"hint: model.train\(Autodiff\(Numpy\(\)\)\)"):
        made.train(Numpy())


def test_no_grad(recording: Backend) -> None:
    made = linear(recording)
    assert made.weight.value.requires_grad
    frozen = made.no_grad()
    assert not frozen.weight.value.requires_grad
    assert not frozen.weight.trainable
    assert (frozen.num_params(), frozen.num_params(trainable=True)) == (9, 0)
    assert frozen.weight.id == made.weight.id
    lazy = linear(recording).no_grad()
    assert not lazy.weight.is_initialized
    assert not lazy.weight.value.requires_grad


def test_counting_leaves_state_out() -> None:
    assert nn.BatchNorm(7).num_params() == 14
    assert block().num_params() == 6 * 9 + 4
    assert nn.Embedding(5, 3).num_params() == 15
    assert nn.Activation("gelu").num_params() == 0


def test_the_printed_tree() -> None:
    class Small(Module):
        head: nn.Linear
        norms: list[nn.BatchNorm]
        tied: Param
        constant: Tensor
        drop: nn.Dropout
        labels: tuple[str, ...] = tuple("abcdefghijklmnopqrstuvwxyz")

    made = Small(linear(), [nn.BatchNorm(3)], Param(pt.ones(())), pt.zeros((2, 1)), nn.Dropout())
    assert (
        repr(made)
        == """Small {
  head: Linear(d_input=2, d_output=3) {
    weight: float32[2, 3]
    bias: float32[3]
  }  # 9 parameters
  norms: list [
    0: BatchNorm(num_features=3) {
      weight: float32[3]
      bias: float32[3]
      running_mean: float32[3], state
      running_var: float32[3], state
      num_batches_tracked: None
      training: False
    }  # 6 parameters
  ]
  tied: float32[]
  constant: Tensor float32[2, 1], constant
  drop: Dropout(prob=0.5) {
    training: False
  }
  labels: ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'…
}  # 16 parameters"""
    )
    assert not made.head.weight.is_initialized

    class Empty(Module):
        pass

    assert repr(Empty()) == "Empty {}"


def test_layers_are_made_from_their_config() -> None:
    made = nn.Linear(2, 3, bias=False, device=WIDE)
    assert made.bias is None
    assert made.devices == [WIDE]
    assert nn.Conv2d(1, 2, kernel_size=3, padding="same").settings.padding == "same"
    assert nn.CrossEntropyLoss(smoothing=0.1).settings.smoothing == 0.1
    assert nn.Activation().settings.name == "relu"
    wrong: Any = nn.Linear
    with pytest.raises(nn.ConfigError, match=r"LinearConfig.d_input: got 'x', expected int"):
        wrong("x", 3)
    with pytest.raises(TypeError, match="d_output"):
        wrong(784)
    with pytest.raises(TypeError, match="depth"):
        wrong(2, 3, depth=1)


def test_signatures_say_what_is_taken() -> None:
    names = list(inspect.signature(nn.Linear).parameters)
    assert names == ["d_input", "d_output", "bias", "initializer", "device"]
    assert list(inspect.signature(Pool).parameters) == ["kernel", "config"]
    assert list(inspect.signature(Scaled).parameters) == ["settings", "weight", "bias", "scale"]


class Pool(Module):
    kernel: int
    config: str


class Scaled(nn.Linear):
    scale: float


def test_a_field_may_be_called_config() -> None:
    assert Pool(kernel=2, config="any").config == "any"
    assert Pool(2, "any").map(lambda _, p: p).kernel == 2


def test_a_subclass_of_a_layer_is_made_from_its_fields() -> None:
    base = linear()
    make: Any = Scaled
    made = make(settings=base.settings, weight=base.weight, bias=base.bias, scale=2.0)
    assert type(made) is Scaled
    assert made.scale == 2.0
    assert type(made.map(lambda _, p: p)) is Scaled


def test_copies_have_ids_of_their_own_and_the_same_numbers() -> None:
    class Tied(Module):
        a: nn.Linear
        b: nn.Linear

    one = linear()
    for twin in (copy.deepcopy(Tied(one, one)), Tied(one, one).fork(Numpy())):
        assert twin.a.weight is twin.b.weight
        assert twin.a.weight.id != one.weight.id
        assert twin.a.weight.value.tolist() == one.weight.value.tolist()
        assert Tied(one, twin.a).param_list()[0] is one.weight
    assert copy.copy(one) is one


def test_the_same_seed_gives_the_same_ids() -> None:
    ids = []
    for _ in range(2):
        pt.seed(5)
        made = block()
        ids.append([p.id for p in made.param_list()] + [p.id for p in made.fork(WIDE).param_list()])
        assert len(set(ids[-1])) == len(ids[-1])
    assert ids[0] == ids[1]


def test_two_parameters_of_one_id_are_refused() -> None:
    class Both(Module):
        online: nn.Linear
        target: nn.Linear

    a = linear()
    both = Both(a, a.map(lambda _, p: p.with_value(p.value * 0)))
    for use in (both.param_list, both.into_record, lambda: both.with_params({})):
        with pytest.raises(ArgumentError, match=r"one id: got online.weight and target.weight"):
            use()
    assert len(Both(a, a).param_list()) == 4


@pytest.mark.parametrize("device", [Numpy(), WIDE])
def test_modules_pickle(device: Backend) -> None:
    made = net(device)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is Net
    assert again.devices == [device]
    assert repr(again) == repr(made)
    for path, param in made.params().items():
        twin = again.params()[path]
        assert (twin.id, twin.role, twin.frozen) == (param.id, param.role, param.frozen)
        assert np.array_equal(twin.value.numpy(), param.value.numpy())
    with pytest.raises(AttributeError, match="does not change"):
        setattr(again, "body", None)  # noqa: B010 - types forbid the statement


def test_exchanged_parameters_leave_the_rest_shared() -> None:
    class Net(nn.Module):
        parts: list[nn.Linear]
        named: dict[str, nn.Linear]
        other: nn.Linear

    a, b, c = (nn.Linear(2, 2) for _ in range(3))
    net = Net([a], {"b": b}, c)
    new = a.weight.with_value(pt.ones((2, 2)))
    out = net.with_params({a.weight.id: new})
    assert type(out) is Net
    assert out.parts[0].weight is new
    assert out.parts[0].bias is a.bias
    assert out.named["b"].weight is b.weight
    assert out.other.bias is c.bias
    assert net.with_params({}) is net
    with pytest.raises(AttributeError, match="does not change"):
        setattr(out, "other", a)  # noqa: B010 - types forbid the statement
    assert [p.id for p in net.param_list()] == [p.id for p in net.params().values()]
