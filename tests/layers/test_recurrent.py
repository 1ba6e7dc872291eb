"""Recurrent layers: states given, sequences of several lengths, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Numpy, nn
from phlox_tensor.capture import watch
from tests.layers.more import recurrent

DOUBLE = Numpy(float="float64")
KINDS: dict[str, Any] = {"GRU": nn.GruConfig, "LSTM": nn.LstmConfig, "RNN": nn.RnnConfig}
X = np.random.default_rng(0).normal(size=(3, 5, 4))
LENGTHS = [2, 5, 3]


def layer(name: str) -> Any:
    return KINDS[name](4, 3, 2, bidirectional=True).init(DOUBLE)


def whole(y: Any, state: Any) -> Any:
    ends = state if isinstance(state, tuple) else (state,)
    return np.concatenate([part.numpy().ravel() for part in (y, *ends)])


@pytest.mark.parametrize("name", sorted(KINDS))
def test_padded_sequences_give_what_packed_ones_give(name: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    model = layer(name)
    w = {path: torch.tensor(p.value.numpy()) for path, p in model.params().items()}
    settings = {"num_layers": 2, "bidirectional": True}
    x, lengths = px.asarray(X, device=DOUBLE), px.asarray(LENGTHS, device=DOUBLE)
    got = whole(*model(x, lengths=lengths))
    want = recurrent(w, name, torch.tensor(X), lengths=LENGTHS, **settings)
    assert np.allclose(got, want.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_padded_sequence_gives_what_it_gives_alone(name: str) -> None:
    model, x = layer(name), px.asarray(X, device=DOUBLE)
    y, state = model(x, lengths=px.asarray(LENGTHS, device=DOUBLE))
    for i, length in enumerate(LENGTHS):
        alone, end = model(x[i, :length])
        assert np.allclose(y.numpy()[i, :length], alone.numpy(), atol=1e-13)
        assert not y.numpy()[i, length:].any()
        parts = zip(*((s if isinstance(s, tuple) else (s,)) for s in (state, end)), strict=True)
        for both, one in parts:
            assert np.allclose(both.numpy()[:, i], one.numpy(), atol=1e-13)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_sequence_goes_on_from_a_state(name: str) -> None:
    model, x = KINDS[name](4, 3, 2).init(DOUBLE), px.asarray(X, device=DOUBLE)
    want, _ = model(x)
    first, state = model(x[:, :2])
    rest, _ = model(x[:, 2:], state)
    got = np.concatenate([first.numpy(), rest.numpy()], axis=1)
    assert np.allclose(got, want.numpy(), atol=1e-13)


def test_what_does_not_fit_is_refused() -> None:
    model, x = nn.Gru(4, 3, device=DOUBLE), px.asarray(X, device=DOUBLE)
    with pytest.raises(ValueError, match="no sequence of such rows: got"):
        model(x[..., :2])
    with pytest.raises(ValueError, match="the state does not fit: got"):
        model(x, px.zeros((2, 3, 3), device=DOUBLE))
    with pytest.raises(ValueError, match="lengths do not fit: got"):
        model(x, lengths=px.asarray([1, 2], device=DOUBLE))


def test_channels_are_dropped_whole_and_noise_has_its_width() -> None:
    px.seed(0)
    ones = px.ones((200, 5, 4, 4), device=DOUBLE)
    dropped = nn.ChannelDropout(0.25).with_training(True)(ones).numpy()
    assert set(np.unique(dropped)) == {0.0, 1 / 0.75}
    assert np.array_equal(dropped, np.broadcast_to(dropped[..., :1, :1], dropped.shape))
    assert dropped.mean() == pytest.approx(1.0, abs=0.05)
    noise = nn.GaussianNoise(0.5).with_training(True)(ones).numpy() - 1
    assert noise.std() == pytest.approx(0.5, rel=0.03)


def test_ctc_of_labels_that_do_not_fit_is_infinite_or_zero() -> None:
    logits = px.zeros((1, 2, 3), device=DOUBLE)
    labels, two, three = (px.asarray(a, device=DOUBLE) for a in ([[1, 1, 2]], [2], [3]))
    assert nn.CtcLoss(reduction="sum")(logits, labels, two, three).item() == float("inf")
    assert nn.CtcLoss(reduction="sum", zero_infinity=True)(logits, labels, two, three).item() == 0


@pytest.mark.parametrize("name", sorted(KINDS))
def test_steps_of_a_cell_are_a_sequence(name: str) -> None:
    cell = getattr(nn, f"{name.title()}Cell")(4, 3, device=DOUBLE)
    whole_line = KINDS[name](4, 3).init(DOUBLE).replace(layers=(cell.recurrence,))
    x = px.asarray(X, device=DOUBLE)
    want, _ = whole_line(x)
    state = None
    for step in range(X.shape[1]):
        state = cell(x[:, step], state)
        hidden = state[0] if isinstance(state, tuple) else state
        assert np.allclose(hidden.numpy(), want.numpy()[:, step], atol=1e-13)
    names = {f"{kind}_{end}" for kind in ("weight", "bias") for end in ("ih", "hh")}
    record = cell.into_record(layout="pytorch")
    assert set(record) == names
    assert record["weight_ih"].tensor.shape[1] == 4
    back = type(cell)(4, 3, device=DOUBLE).load_record(record, layout="pytorch")
    again, first = back(x[:, 0]), cell(x[:, 0])
    if isinstance(first, tuple):
        again, first = again[0], first[0]
    assert np.array_equal(again.numpy(), first.numpy())


def test_a_cell_refuses_what_does_not_fit() -> None:
    cell = nn.LstmCell(4, 3, device=DOUBLE)
    with pytest.raises(
        ValueError, match=r"the input does not fit: got \(2, 3\), expected \(…, 4\)"
    ):
        cell(px.zeros((2, 3), device=DOUBLE))
    wrong = nn.LstmState(*(px.zeros((1, 2, 3), device=DOUBLE) for _ in range(2)))
    with pytest.raises(ValueError, match="the state does not fit"):
        cell(px.zeros((2, 4), device=DOUBLE), wrong)


@pytest.mark.parametrize("device", [Numpy(), px.Cpu()], ids=repr)
@pytest.mark.parametrize("kind", [nn.Gru, nn.Lstm, nn.Rnn], ids=["gru", "lstm", "rnn"])
def test_gradients_that_vanish_over_many_steps_become_zero_before_they_are_denormal(
    kind: Any, device: px.Backend
) -> None:
    px.seed(0)
    layer = kind(3, 8, device=px.Autodiff(device))
    layer = layer.map(lambda _, p: p.with_value(p.value.detach() * 0.2))
    x = px.random.normal((2, 200, 3), device=px.Autodiff(device)).require_grad()
    loss = layer(x)[0][:, -1].sum()
    slopes = np.abs(loss.backward()[x].numpy())
    assert (slopes[:, :40] == 0).all()
    assert (slopes[:, -20:] > 0).all()
    assert not ((slopes > 0) & (slopes < 2.0**-126)).any()


def test_gradients_that_are_no_numbers_are_not_taken_for_vanished() -> None:
    device = px.Autodiff(Numpy())
    x = px.ones((1, 5, 3), device=device).require_grad()
    out = nn.Rnn(3, 4, device=device)(x)[0]
    slopes = out.backward(px.full((1, 5, 4), px.nan, device=device.inner))[x].numpy()
    assert np.isnan(slopes).all()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_settings_of_a_loop_know_lengths_states_and_both_directions(name: str) -> None:
    """A clip that never acts leaves what the op gives."""
    usual = KINDS[name](4, 3, 2, bidirectional=True).init(DOUBLE)
    other = usual.replace(settings=usual.settings.replace(clip=50.0))
    x, lengths = px.asarray(X, device=DOUBLE), px.asarray(LENGTHS, device=DOUBLE)
    _, state = usual(x)
    want, got = (whole(*each(x, state, lengths=lengths)) for each in (usual, other))
    assert np.allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_layer_from_the_end_is_one_of_the_two_directions(name: str) -> None:
    both = KINDS[name](4, 3, bidirectional=True).init(DOUBLE)
    back = KINDS[name](4, 3, reverse=True).init(DOUBLE).replace(layers=both.layers[1:])
    x, lengths = px.asarray(X, device=DOUBLE), px.asarray(LENGTHS, device=DOUBLE)
    want = both(x, lengths=lengths)[0][..., 3:]
    assert np.array_equal(back(x, lengths=lengths)[0].numpy(), want.numpy())


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"clip": 0.0}, "clip"), ({"reverse": True, "bidirectional": True}, "reverse")],
)
@pytest.mark.parametrize("name", sorted(KINDS))
def test_settings_that_exclude_each_other(name: str, settings: Any, field: str) -> None:
    with pytest.raises(nn.ConfigError, match=field):
        KINDS[name](4, 3, **settings)


class Names:
    """Lists the ops that base devices run."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def entry(self, device: px.Backend, op: px.Op, entry: Any, /) -> Any:
        def run(*args: Any) -> Any:
            self.found.append(op.name)
            return entry(*args)

        return run

    def methods(self, device: px.Backend, /) -> dict[str, Any]:
        return {}


def ops_of(run: Callable[[], Any]) -> list[str]:
    names = Names()
    watch(names, on=True)
    try:
        run()
    finally:
        watch(names, on=False)
    return names.found


@pytest.mark.parametrize("name", sorted(KINDS))
def test_one_kernel_call_for_each_layer_and_direction(name: str) -> None:
    device = px.Autodiff(px.Cpu())
    model = KINDS[name](4, 3, 2, bidirectional=True).init(device)
    x, lengths = px.ones((3, 5, 4), device=device), px.asarray(LENGTHS, device=device)
    model(x, lengths=lengths)[0].sum().backward()  # the weights are drawn now
    found = ops_of(lambda: model(x, lengths=lengths)[0].sum().backward())
    kind = name.lower()
    assert [found.count(f"{kind}_steps{end}") for end in ("", "_backward")] == [4, 4]
    longer = px.ones((3, 40, 4), device=device)
    assert len(ops_of(lambda: model(longer, lengths=lengths)[0].sum().backward())) == len(found)


@pytest.mark.parametrize("device", [DOUBLE, px.Cpu(float="float64")], ids=repr)
@pytest.mark.parametrize("name", sorted(KINDS))
def test_second_derivatives_where_the_first_are_zero(name: str, device: px.Backend) -> None:
    """Of a perfect fit: cotangents are 0, but change where the weights do. 2 · Jᵀ · J."""
    px.seed(0)
    model = KINDS[name](4, 3, reverse=name == "RNN").init(device)
    x, moved = px.asarray(X, device=device), px.asarray(X[::-1].copy(), device=device)
    fit = model(x)[0]

    def outcome(x: Any) -> Any:
        return model(x)[0]

    _, change = px.jvp(outcome, (x,), (moved,))
    (want,) = px.vjp(outcome, x)[1](2.0 * change)
    (got,) = px.hvp(lambda x: (outcome(x) - fit).square().sum(), (x,), (moved,))
    assert np.abs(want.numpy()).min() > 0
    assert np.allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_lanes_of_sequences_are_one_call(name: str) -> None:
    device = px.Cpu(float="float64")
    model = KINDS[name](4, 3).init(device)
    x = px.asarray(np.stack([X, X[::-1], X + 1.0]), device=device)
    lengths = px.asarray(LENGTHS, device=device)

    def slope(x: Any) -> Any:
        return px.grad(lambda x: model(x, lengths=lengths)[0].square().sum())(x)

    want = np.stack([slope(each).numpy() for each in x])
    assert np.allclose(px.vmap(slope)(x).numpy(), want, rtol=1e-12, atol=1e-14)
    found = ops_of(lambda: px.vmap(slope)(x))
    kind = name.lower()
    assert [found.count(f"{kind}_steps{end}") for end in ("", "_backward")] == [1, 1]


@pytest.mark.parametrize("name", sorted(KINDS))
def test_gradients_of_each_example_are_those_of_a_loop(name: str) -> None:
    """Weights are the same in all lanes going forth and back, but what they get is not."""
    device = px.Cpu(float="float64")
    model = KINDS[name](4, 3).init(device)

    def slopes(x: Any) -> Any:
        grads = px.grad(lambda model: model(x[None])[0].square().sum())(model)
        return {path: param.value for path, param in grads.params().items()}

    x = px.asarray(X, device=device)
    alone = [slopes(each) for each in x]
    for path, found in px.vmap(slopes)(x).items():
        want = np.stack([each[path].numpy() for each in alone])
        assert np.allclose(found.numpy(), want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("length", [-1, 6])
@pytest.mark.parametrize("clip", [None, 10.0], ids=["op", "steps"])
@pytest.mark.parametrize("layer", [nn.Rnn, nn.Gru, nn.Lstm])
def test_lengths_out_of_range_are_refused_with_any_settings(
    layer: Any, clip: float | None, length: int
) -> None:
    model = layer(2, 3, bidirectional=True, clip=clip, device=DOUBLE)
    x = px.ones((2, 5, 2), device=DOUBLE)
    lengths = px.asarray([length, 5], device=DOUBLE)
    with pytest.raises(px.IndexOutOfRangeError, match=rf"lengths out of range: got {length}, "):
        model(x, lengths=lengths)
