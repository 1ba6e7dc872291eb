"""Configs: typed, checked, saved as JSON that names no code."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Config, ConfigError, initializers
from phlox_tensor import Numpy, PhloxError


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class InnerConfig(Config):
    size: int = 3
    name: str | None = None


class Other(Config):
    rate: float


class OuterConfig(Config):
    """A field of every form that annotations take."""

    count: int
    rate: float = 0.5
    flag: bool = False
    word: str = "a"
    mode: Literal["fast", "slow"] = "fast"
    color: Color = Color.RED
    inner: InnerConfig = InnerConfig()
    either: InnerConfig | Other | None = None
    items: list[InnerConfig] = field(default_factory=list)
    pair: tuple[int, float] = (1, 2.0)
    many: tuple[int, ...] = ()
    nested: int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]] = 1
    named: dict[str, float] = field(default_factory=dict)
    numbered: dict[int, InnerConfig] = field(default_factory=dict)
    anything: Any = None


FULL = OuterConfig(
    count=2,
    rate=1,
    flag=True,
    word="ü",
    mode="slow",
    color=Color.BLUE,
    inner=InnerConfig(4, "x"),
    either=Other(0.1),
    items=[InnerConfig(1), InnerConfig(2)],
    pair=(3, 4),
    many=(1, 2, 3),
    nested=((1, 2), (3, 4)),
    named={"a": 1.0},
    numbered={7: InnerConfig(7)},
    anything=[1, "b", None],
)


@pytest.mark.parametrize("config", [OuterConfig(1), FULL], ids=["defaults", "full"])
def test_json_round_trip(config: OuterConfig, tmp_path: Path) -> None:
    path = config.save(tmp_path / "config.json")
    assert OuterConfig.load(path) == config
    assert OuterConfig.from_dict(config.to_dict()) == config
    text = path.read_text()
    assert text.endswith("}\n")
    assert "phlox" not in text
    assert json.loads(text)["kind"] == "Outer"


def of_required(cls: Any) -> Any:
    """A config whose required fields are 4, or made of such."""
    required = [f for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    made = {f.name: a_value(get_type_hints(cls)[f.name]) for f in required}
    return cls(**made, **({"size": 4} if cls is nn.InterpolateConfig else {}))  # or a factor


def a_value(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Config):
        return of_required(hint)
    first, *more = get_args(hint) or (hint,)
    if get_origin(hint) is tuple:
        return tuple(a_value(each) for each in (first, *more) if each is not Ellipsis)
    return first(4) if first in (int, float) else a_value(first) if get_args(hint) else first


@pytest.mark.parametrize(
    "name",
    sorted(n for n in dir(nn) if n.endswith("Config") and hasattr(getattr(nn, n), "_layer")),
)
def test_configs_of_layers_go_round(name: str) -> None:
    cls = getattr(nn, name)
    config = of_required(cls)
    assert cls.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert isinstance(config.init(), nn.Module)


class LimitsConfig(Config):
    """Numbers that JSON does not have, in every place where a number may stand."""

    low: float = -math.inf
    high: float | None = math.inf
    steps: tuple[float, ...] = (0.0, math.inf)
    by_name: dict[str, float] = field(default_factory=lambda: {"$float": math.inf, "a": 1.0})
    by_size: dict[float, int] = field(default_factory=lambda: {math.inf: 1})
    word: dict[str, str] = field(default_factory=lambda: {"$float": "inf"})


def test_infinities_are_written_as_json_has_it(tmp_path: Path) -> None:
    config = LimitsConfig()
    path = config.save(tmp_path / "limits.json")

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    said = json.loads(path.read_text(), parse_constant=refuse)
    assert said["low"] == {"$float": "-inf"}
    assert LimitsConfig.load(path) == config
    assert math.isnan(LimitsConfig.from_dict(LimitsConfig(low=math.nan).to_dict()).low)
    path.write_text('{"low": -Infinity, "high": Infinity}')  # as files were before
    assert LimitsConfig.load(path) == config
    wrong: Any
    for wrong in ({"$float": "big"}, {"$float": [1]}, {"$float": 1.0}):
        with pytest.raises(ConfigError, match="low"):
            LimitsConfig.from_dict({"low": wrong})


def test_unions_of_configs_are_told_apart_by_kind() -> None:
    for initializer in (initializers.Zeros(), initializers.Normal(std=0.1)):
        config = nn.LinearConfig(1, 2, initializer=initializer)
        plain = json.loads(json.dumps(config.to_dict()))
        assert plain["initializer"]["kind"] == type(initializer).__name__
        assert nn.LinearConfig.from_dict(plain) == config
    assert OuterConfig.from_dict({"count": 1, "either": {"kind": "Other", "rate": 2}}).either == (
        Other(2)
    )


def test_configs_are_values() -> None:
    config = nn.LinearConfig(2, 3)
    assert config == nn.LinearConfig(2, 3)
    assert hash(config) == hash(nn.LinearConfig(2, 3))
    assert repr(config).startswith("LinearConfig(d_input=2, d_output=3, bias=True")
    wrong: Any = config
    with pytest.raises(AttributeError):
        wrong.d_input = 5
    other = config.replace(bias=False)
    assert (config.bias, other.bias) == (True, False)
    with pytest.raises(ConfigError, match=r"no such field: got depth, expected \['d_input'"):
        config.replace(depth=1)
    with pytest.raises(ConfigError, match=r"LinearConfig.bias: got 1, expected bool"):
        config.replace(bias=1)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"count": "1"}, "OuterConfig.count: got '1', expected int"),
        ({"count": 1.0}, "OuterConfig.count: got 1.0, expected int"),
        ({"count": True}, "OuterConfig.count: got True, expected int"),
        ({"count": 1, "rate": "x"}, "OuterConfig.rate"),
        ({"count": 1, "rate": True}, "OuterConfig.rate"),
        ({"count": 1, "flag": 1}, "OuterConfig.flag"),
        ({"count": 1, "mode": "other"}, "OuterConfig.mode"),
        ({"count": 1, "inner": 3}, "OuterConfig.inner"),
        ({"count": 1, "items": [3]}, "OuterConfig.items"),
        ({"count": 1, "pair": (1,)}, "OuterConfig.pair"),
        ({"count": 1, "many": ("a",)}, "OuterConfig.many"),
        ({"count": 1, "nested": (1, 2, 3)}, "OuterConfig.nested"),
        ({"count": 1, "named": {"a": "b"}}, "OuterConfig.named"),
        ({"count": 1, "numbered": {"7": InnerConfig()}}, "OuterConfig.numbered"),
        ({"count": 1, "color": "red"}, "OuterConfig.color"),
    ],
)
def test_values_are_checked_when_made(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        OuterConfig(**values)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, r"OuterConfig lacks a field: got \[\], expected count"),
        ({"count": 1, "size": 2}, r"OuterConfig has no such field: got size, expected \['count'"),
        ({"count": "a"}, "OuterConfig.count: got 'a', expected int"),
        ({"count": 1, "kind": "Inner"}, "OuterConfig.kind: got 'Inner', expected 'Outer'"),
        ({"count": 1, "inner": {"size": "a"}}, "OuterConfig.inner.size"),
        ({"count": 1, "inner": 5}, "OuterConfig.inner: got int, expected an object"),
        ({"count": 1, "items": [{}, {"size": None}]}, r"OuterConfig.items\[1\].size"),
        ({"count": 1, "pair": [1, 2, 3]}, "OuterConfig.pair: got 3 values, expected 2"),
        (
            {"count": 1, "color": "green"},
            r"OuterConfig.color: got 'green', expected \['red', 'blue'",
        ),
        ({"count": 1, "either": {"kind": "Nope"}}, r"either.kind: got 'Nope', expected \['Inner'"),
        ({"count": 1, "either": {"size": 1}}, r"either.kind: got None, expected"),
        ({"count": 1, "nested": "a"}, r"nested: got 'a', expected int or tuple\[int, int\] or"),
        ({"count": 1, "numbered": {"x": {}}}, "numbered: got the key 'x', expected int"),
    ],
)
def test_values_are_checked_when_read(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        OuterConfig.from_dict(values)
    assert isinstance(caught.value, PhloxError)
    assert isinstance(caught.value, ValueError)


def test_two_classes_of_one_kind_are_told_apart_or_refused() -> None:
    class BaseConfig(nn.Config):
        size: int = 0

    def made_anew() -> type[BaseConfig]:  # as by a module that is loaded twice
        class Twin(BaseConfig):
            pass

        return Twin

    first, _second = made_anew(), made_anew()
    assert BaseConfig.from_dict({"size": 1}) == BaseConfig(1)
    with pytest.raises(ConfigError, match="'Twin', of 2 classes"):
        BaseConfig.from_dict(first(1).to_dict())


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"\xff\xfe", b'{"count": 1', b"[" * 100_000, b"1e999", b"null"]
)
def test_files_that_are_no_config(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"\[load\] .*config.json"):
        OuterConfig.load(path)
    with pytest.raises(FileNotFoundError):
        OuterConfig.load(tmp_path / "nothing.json")


def test_a_field_may_not_be_called_kind() -> None:
    with pytest.raises(TypeError, match="may not be called 'kind'"):

        class Bad(Config):
            kind: str  # type: ignore[misc]


def test_types_that_are_not_found() -> None:
    class Hidden(Config):
        size: int = 1

    class Local(Config):
        inner: Hidden = Hidden()

    with pytest.raises(TypeError, match=r"(?s)annotations of Local are not found.*hint: define"):
        Local()


def test_a_config_without_a_module() -> None:
    with pytest.raises(TypeError, match="InnerConfig describes no module"):
        InnerConfig().init()


class TwoConfig(Config):
    """A user's config with configs inside."""

    hidden: int = 4
    head: nn.LinearConfig = nn.LinearConfig(4, 2)

    def init(self, device: pt.Backend | str | None = None) -> Two:
        return Two(body=nn.LinearConfig(3, self.hidden).init(device), head=self.head.init(device))


class Two(nn.Module):
    body: nn.Linear
    head: nn.Linear


def test_init_with_never_initializes(monkeypatch: pytest.MonkeyPatch) -> None:
    record = TwoConfig().init().into_record()
    saved = TwoConfig().init()
    for param in saved.params().values():
        _ = param.value
    record = saved.into_record()
    drawn = []

    def values(self: Any, *_: Any) -> Any:
        drawn.append(self)
        raise AssertionError("a parameter was initialized")

    monkeypatch.setattr(initializers.KaimingUniform, "values", values)
    made = TwoConfig().init_with(record)
    x = pt.ones((1, 3))
    assert made.head(made.body(x)).shape == (1, 2)
    assert not drawn
    assert {p: q.id for p, q in made.params().items()} == {
        p: q.id for p, q in saved.params().items()
    }
    wide = TwoConfig().init_with(record, device=Numpy(int="int32"))
    assert wide.devices == [Numpy(int="int32")]
    assert TwoConfig().init(Numpy(int="int32")).devices == [Numpy(int="int32")]


class Sized(Config):
    """A config with settings by keyword, and one that is worked out."""

    size: int
    scale: float = field(default=1.0, kw_only=True)
    area: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "area", self.size**2)


def test_settings_by_keyword_and_those_worked_out_follow() -> None:
    config = Sized(3, scale=2.0)
    for made in (copy.deepcopy(config), pickle.loads(pickle.dumps(config)), config.replace()):
        assert (made, made.area) == (config, 9)
    assert config.replace(size=4) == Sized(4, scale=2.0)
    assert config.replace(size=4).area == 16
    with pytest.raises(ConfigError, match="no such field: got area"):
        config.replace(area=1)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Conv2d(3, 4, 0), "Conv2dConfig.kernel_size"),
        (lambda: nn.Conv1d(3, 4, 3, groups=0), "Conv1dConfig.groups"),
        (lambda: nn.Conv3d(3, 4, 3, dilation=(1, 0, 1)), "Conv3dConfig.dilation"),
        (lambda: nn.MaxPool2d(2, 0), "MaxPool2dConfig.stride"),
        (lambda: nn.AvgPool2d((2, -1)), "AvgPool2dConfig.kernel_size"),
        (lambda: nn.AdaptiveAvgPool2d(0), "AdaptiveAvgPool2dConfig.output_size"),
        (lambda: nn.PixelShuffle(0), "PixelShuffleConfig.factor"),
        (lambda: nn.LayerNorm(3, -1.0), "LayerNormConfig.epsilon"),
        (lambda: nn.GroupNorm(1, 3, math.nan), "GroupNormConfig.epsilon"),
        (lambda: nn.BatchNorm(3, momentum=5.0), "BatchNormConfig.momentum"),
        (lambda: nn.LpPool1d(0.5, 2), "LpPool1dConfig.p"),
    ],
)
def test_settings_that_no_layer_could_have_are_refused(
    make: Callable[[], object], name: str
) -> None:
    with pytest.raises(ConfigError, match=rf"{name} makes no sense: got .*, expected"):
        make()


@pytest.mark.parametrize(
    "word", ["he_normal", "glorot_uniform", "kaiming_uniform_", "lecun_normal", "trunc_normal_"]
)
def test_a_word_for_an_initializer_says_what_to_type(word: str) -> None:
    wrong: Any = word
    with pytest.raises(nn.ConfigError) as error:
        nn.LinearConfig(3, 2, initializer=wrong)
    name, _, code = str(error.value.hint).partition("=")
    assert isinstance(eval(code, {"nn": nn}), initializers.Initializer)
    assert name == "initializer"
