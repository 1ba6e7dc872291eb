"""What a module refuses: fields that no walk would see, settings that would do nothing."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Module, Param, models
from phlox_tensor import (
    ArgumentError,
    Backend,
    DTypeError,
    GradientError,
    IndexOutOfRangeError,
    TreeError,
    tree,
)


def linear() -> nn.Linear:
    return nn.Linear(2, 2)


class Holder(Module):
    held: Any


class Twice(Module):
    first: nn.Linear
    second: nn.Linear


# Classes


def test_a_module_with_slots_is_refused() -> None:
    with pytest.raises(TypeError, match=r"keeps attributes in slots.*got w"):

        @dataclasses.dataclass(slots=True)
        class Slotted(Module):
            w: Param

    with pytest.raises(TypeError, match=r"got one, two"):
        type("Own", (Module,), {"__slots__": ("one", "two")})
    assert type("Empty", (Module,), {"__slots__": ()})().num_params() == 0


@pytest.mark.parametrize(
    "made",
    [linear, lambda: Param(pt.ones(2)), lambda: [linear()], lambda: {"a": nn.Dropout()}],
    ids=["module", "parameter", "list", "dict"],
)
def test_a_module_in_a_class_body_that_is_no_field_is_refused(made: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"Loose.part is of the class, not a field"):
        type("Loose", (Module,), {"part": made()})


def test_a_tracked_tensor_in_a_class_body_is_refused(recording: Backend) -> None:
    w = pt.ones(2, device=recording).require_grad()
    with pytest.raises(TypeError, match=r"hint: w: nn.Param in the class, or self.w"):
        type("Loose", (Module,), {"w": w})


def test_constants_and_class_variables_stay_where_they_are() -> None:
    class Fine(Module):
        shared: ClassVar[Module] = nn.Activation("relu")
        table = pt.zeros(3)
        names = ("a", "b")

        def forward(self, x: Any) -> Any:
            return self.shared(x)

    assert Fine().num_params() == 0


@pytest.mark.parametrize(
    "default",
    [lambda: Param(pt.ones(2)), linear, lambda: field(default=linear())],
    ids=["parameter", "module", "field"],
)
def test_a_default_that_all_modules_would_share_is_refused(default: Callable[[], Any]) -> None:
    body = {"__annotations__": {"w": Any}, "w": default()}
    with pytest.raises(TypeError, match=r"all modules of Tied would share the default of w"):
        type("Tied", (Module,), body)


def test_a_default_made_for_each_module_and_one_without_parameters_are_fine() -> None:
    class Own(Module):
        w: Param = field(default_factory=lambda: Param(pt.ones(2)))
        act: Module = nn.Activation("relu")

    assert Own().w is not Own().w


# Fields


@dataclasses.dataclass
class Notes:
    name: str = ""


class Names(dict[str, int]):
    pass


class Row(list[int]):
    pass


class Slotted:
    __slots__ = ("__inside",)

    def __init__(self, inside: object) -> None:
        self.__inside = inside


def beside(container: Any, part: object) -> Any:
    container.extra = part
    return container


class Plain:
    def __init__(self, inside: object) -> None:
        self.inside = inside


def of_class(part: object) -> Any:
    return type("Keeper", (Plain,), {"kept": [part]})(1)


def objects(part: object) -> Any:
    found = np.empty(1, dtype=object)
    found[0] = part
    return found


HIDING: dict[str, Callable[[Any], Any]] = {
    "array": objects,
    "array in a list": lambda part: [1, objects(part)],
    "attribute of a class": of_class,
    "bound method": lambda part: part.to_device,
    "class": lambda part: type("Keeper", (), {"kept": part}),
    "dataclass": lambda part: beside(Notes(), part),
    "defaultdict": lambda part: defaultdict(lambda: part),
    "dict": lambda part: beside(Names(), part),
    "dict key": lambda part: {part: 1},
    "list": lambda part: beside(Row(), part),
    "list's class": lambda part: type("Keeper", (Row,), {"kept": part})(),
    "objects in objects": lambda part: Plain(Plain(partial(id, part))),
    "partial": lambda part: partial(id, part),
    "partial keyword": lambda part: partial(dict, part=[part]),
    "partial of a method": lambda part: partial(part.to_device, "numpy"),
    "partial of a partial": lambda part: {"a": partial(map, partial(id, part))},
    "slots": Slotted,
}


@pytest.mark.parametrize("part", [linear, lambda: Param(pt.ones(2))], ids=["module", "parameter"])
@pytest.mark.parametrize("hide", HIDING.values(), ids=HIDING)
def test_a_field_that_hides_a_parameter_is_refused(
    hide: Callable[[Any], Any], part: Callable[[], Any]
) -> None:
    where = r"held[.\w]* of Holder(: \w+ of a \w+)? hides a (Linear|Param)(.|\n)*hint"
    with pytest.raises(TreeError, match=where):
        Holder(hide(part()))


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, None], dtype=object),
        np.zeros(3),
        np.zeros(2, dtype=[("a", "f4")]),
        partial(int, base=2),
        "text".upper,
        Notes("a"),
        Slotted(3),
        Plain(Plain(print)),
        beside(Row(), 1),
        {(1, 2): 3},
        print,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_hides_nothing_is_a_constant(value: Any) -> None:
    assert Holder(value).held is value
    assert Holder(value).num_params() == 0


def test_objects_deep_in_others_are_looked_into() -> None:
    with pytest.raises(TreeError, match="held of Holder: a container of an unknown type holds"):
        Holder(Plain(Plain({"deep": Plain(linear())})))


def test_what_flatten_gives_beside_the_parts_trains_nothing() -> None:
    class Half:
        def __init__(self, seen: Any, unseen: Any) -> None:
            self.seen, self.unseen = seen, unseen

    tree.register(Half, lambda x: ([x.seen], x.unseen), lambda parts, rest: Half(parts[0], rest))
    with pytest.raises(TreeError, match="held of Holder hides a Linear: got a Half"):
        Holder(Half(linear(), linear()))
    with pytest.raises(TreeError, match="held of Holder hides a Tensor: got a Half"):
        Holder(Half(linear(), [pt.ones(2)]))
    assert Holder(Half(linear(), 3)).num_params() == 6


def test_a_class_variable_is_a_constant_of_plain_objects_too() -> None:
    class Known(Plain):
        shared: ClassVar[Module] = nn.Activation("relu")
        table = pt.zeros(3)

    assert Holder(Known(1)).num_params() == 0


# Parameters


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (lambda: [1.0], "nn.Param(px.asarray(values))"),
        (lambda: np.ones(2), "nn.Param(px.asarray(values))"),
        (lambda: Param(pt.ones(1)), "nn.Param(param.value.detach())"),
    ],
)
def test_a_parameter_of_no_tensor_is_refused(value: Callable[[], Any], hint: str) -> None:
    with pytest.raises(ArgumentError, match="the value is no tensor") as error:
        Param(value())
    assert error.value.hint == hint


def test_integers_are_no_trained_weight() -> None:
    with pytest.raises(DTypeError, match="a weight that is trained is no Float: got int64"):
        Param(pt.arange(3))
    with pytest.raises(DTypeError):
        Param.lazy(lambda: pt.arange(3), (3,), pt.int64, pt.Numpy())
    kept = Holder(Param(pt.arange(3), trainable=False)).unfreeze()
    assert not kept.held.trainable
    assert nn.State(pt.arange(3)).dtype is pt.int64


def test_state_of_a_tracked_value_says_how_to_make_it(recording: Backend) -> None:
    w = pt.ones(2, device=recording).require_grad()
    with pytest.raises(GradientError, match=r"hint: nn.State\(x.detach\(\)\)"):
        nn.State(w)


def test_exchanging_parameters_asks_for_ids_and_parameters_of_the_shape() -> None:
    model = linear()
    weight = model.weight
    with pytest.raises(ArgumentError, match="got the path 'weight'") as error:
        model.with_params({"weight": weight})
    assert error.value.hint == "model.with_params({model.params()['weight'].id: param})"
    with pytest.raises(ArgumentError, match="no id of a parameter"):
        model.with_params({"abc": weight})
    wrong: Any = pt.ones((2, 2))
    with pytest.raises(ArgumentError, match="weight cannot become this: got Tensor"):
        model.with_params({weight.id: wrong})
    with pytest.raises(
        ArgumentError, match=r"got Param.*\[3\].*expected a Param of shape \(2, 2\)"
    ):
        model.with_params({weight.id: Param(pt.ones(3))})


def test_two_parameters_of_one_id_are_said_when_they_are_counted() -> None:
    one = linear()
    for other in (one.freeze("weight"), one.to_device(pt.Numpy(float="float64"))):
        both = Twice(one, other)
        for use in (both.params, both.num_params):
            with pytest.raises(ArgumentError, match="two parameters have one id"):
                use()
    assert Twice(one, one).num_params() == one.num_params()


# Words


def test_an_unknown_layout_is_refused() -> None:
    model, word = linear(), "torch"
    layout: Any = word
    record = model.into_record()
    for use in (
        lambda: model.load_record(record, layout=layout),
        lambda: model.into_record(layout=layout),
        lambda: model.load_report(record, layout=layout),
    ):
        with pytest.raises(ArgumentError, match="no such layout: got 'torch'") as error:
            use()
        assert "'phlox' or 'pytorch'" in str(error.value)


def test_a_value_that_state_cannot_take_says_the_shape() -> None:
    x, state = pt.ones(1), nn.State(pt.zeros(2))
    with pytest.raises(ArgumentError, match=r"hint: nn.State\(px.zeros\(\(1,\)\)\)"):
        nn.propose(x, state, x)


def test_a_negative_class_is_named() -> None:
    logits, loss = pt.zeros((2, 3)), nn.CrossEntropyLoss()
    with pytest.raises(
        IndexOutOfRangeError, match="a target is out of range: got -1, expected 0 to 2"
    ):
        loss(logits, pt.asarray([0, -1]))
    with pytest.raises(IndexOutOfRangeError, match="got -2"):
        nn.CrossEntropyLoss(pad_tokens=(-1,))(logits, pt.asarray([-1, -2]))
    with pytest.raises(IndexOutOfRangeError, match="3"):
        loss(logits, pt.asarray([0, 3]))


def test_a_path_is_text() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    for path in (0, None, ()):
        with pytest.raises(ArgumentError, match="not a path"):
            model.path(path)  # type: ignore[arg-type]


def test_settings_of_an_activation_are_named() -> None:
    with pytest.raises(nn.ConfigError, match=r"expected slope$"):
        nn.Activation("leaky_relu", {"negative_slope": 0.1})


def test_dropout_between_layers_needs_two() -> None:
    for layer in (nn.Rnn, nn.Gru, nn.Lstm):
        with pytest.raises(nn.ConfigError, match="it acts between layers"):
            layer(2, 2, dropout=0.5)
        assert layer(2, 2, 2, dropout=0.5).dropout.settings.prob == 0.5


def test_adapters_keep_their_scale() -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    record: dict[str, Any] = nn.lora_record(nn.apply_lora(model, 2, alpha=16.0))
    assert record["layers.0"]["scale"] == 8.0
    assert nn.load_lora_record(nn.apply_lora(model, 2, alpha=16.0), record).num_params() == 36
    with pytest.raises(pt.RecordError, match="trained at another scale") as error:
        nn.load_lora_record(nn.apply_lora(model, 2), record)
    assert "nn.apply_lora(model, 2, alpha=16)" in str(error.value)
    down = record["layers.0"]["down"]
    for wrong in ({"down": down}, 3, {"down": down, "up": 3}):
        with pytest.raises(pt.RecordError):
            nn.load_lora_record(nn.apply_lora(model, 2, alpha=16.0), {"layers.0": wrong})


def test_a_text_goes_on_from_a_token() -> None:
    writer = nn.models.GptConfig(words=5, positions=8, d_model=4, n_layers=1, n_heads=1).init()
    for tokens, count in (
        (pt.asarray([1]), 2),
        (pt.asarray([[1]]), -1),
        (pt.asarray([[1]])[:, :0], 1),
    ):
        with pytest.raises(ArgumentError, match="nothing to go on from"):
            writer.generate(tokens, count)


def test_no_queries_find_nothing() -> None:
    assert nn.MultiHeadAttention(4, 2)(pt.ones((2, 0, 4)), pt.ones((2, 3, 4))).shape == (2, 0, 4)


def test_a_cache_hides_no_layer() -> None:
    inner = linear()

    class Cached(Module):
        def __init__(self) -> None:
            self.found = lru_cache(lambda _: inner)

    with pytest.raises(TreeError, match="found of Cached hides a Linear"):
        Cached().num_params()


@pytest.mark.parametrize("change", [nn.dequantize_weights, nn.merge_lora])
def test_what_there_is_none_of_is_not_taken_back(change: Callable[[Any], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"no adapters|no weight is quantized"):
        change(linear().freeze())


def test_a_type_that_is_registered_as_a_leaf_is_not_looked_into() -> None:
    class Open:
        def __init__(self) -> None:
            self.part = nn.Param(pt.ones(2))

    class Closed(Open):
        pass

    class Holder(nn.Module):
        held: Any

    tree.register_leaf(Closed)
    assert not Holder(Closed()).params()
    with pytest.raises(TreeError, match="unknown type holds a tensor"):
        Holder(Open())


@pytest.mark.parametrize("count", [0, -1])
def test_stacks_have_a_layer(count: int) -> None:
    encoder = nn.TransformerEncoderLayerConfig(8, 2)
    decoder = nn.TransformerDecoderLayerConfig(8, 2)
    makers: list[Callable[[], Any]] = [
        lambda: nn.TransformerEncoder(encoder, count),
        lambda: nn.TransformerDecoder(decoder, count),
        lambda: nn.MultiHeadAttention(count, 2),
        lambda: models.BertConfig(n_layers=count),
        lambda: models.GptConfig(n_layers=count),
        lambda: models.ViTConfig(n_layers=count),
    ]
    for make in makers:
        with pytest.raises(nn.ConfigError, match="at least 1"):
            make()


def test_sizes_below_0_are_refused_by_the_name_of_the_setting() -> None:
    makers: list[Callable[[], Any]] = [
        lambda: nn.Linear(-1, 2),
        lambda: nn.InstanceNorm(-1),
        lambda: nn.TransformerEncoderLayerConfig(8, 2, d_ff=-1),
        lambda: models.ViTConfig(classes=-1),
    ]
    for make in makers:
        with pytest.raises(nn.ConfigError, match=r"Config\.\w+ makes no sense: got -1"):
            make()


def test_divergences_by_batch_need_one() -> None:
    loss = nn.KlDivLoss(reduction="batch_mean")
    assert math.isnan(float(loss(pt.ones((0, 3)), pt.ones((0, 3)))))
    with pytest.raises(pt.ShapeError, match="no batch"):
        loss(pt.asarray(1.0), pt.asarray(1.0))


def test_a_class_is_no_predicate() -> None:
    model: Any = nn.Sequential(linear())
    with pytest.raises(ArgumentError, match=r"not a path, and not a function"):
        model.freeze(nn.Linear)
