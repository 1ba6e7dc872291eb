"""vmap: axes, nesting over and under derivatives, random numbers, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Tensor, tree

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Tensor[Any]:
    return pt.asarray(RANDOM.standard_normal(shape))


def loop(function: Callable[..., Any], *xs: Tensor[Any]) -> np.ndarray[Any, Any]:
    """What the function gives for each row of its arguments."""
    rows = zip(*([x[i] for i in range(x.shape[0])] for x in xs), strict=True)
    return np.stack([function(*row).numpy() for row in rows])


def close(got: Tensor[Any], wanted: Any) -> None:
    wanted = wanted.numpy() if isinstance(wanted, Tensor) else np.asarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-12)


def score(w: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    """One number out of a matrix and a vector."""
    return ((w @ x).tanh() * x[:2]).sum() + (x / w[0]).softmax(axis=0)[1]


# Axes


def test_in_axes_and_out_axes_move_the_lanes() -> None:
    x, y = normal(3, 5, 2), normal(2, 3, 5)
    got = ad.vmap(lambda a, b: a + b.mT, in_axes=(1, -1), out_axes=-1)(x, y)
    lanes = [x[:, i].numpy() + y[:, :, i].numpy().T for i in range(5)]
    close(got, np.stack(lanes, axis=-1))


def test_axes_may_be_trees_and_none_is_shared() -> None:
    data = {"a": normal(4, 3), "b": [normal(3), normal(3, 4)]}
    axes = {"a": 0, "b": [None, 1]}

    def function(d: Any) -> Any:
        return {"sum": d["a"] + d["b"][0] * d["b"][1], "shared": d["b"][0]}

    out = ad.vmap(function, (axes,), {"sum": 1, "shared": None})(data)
    a, b, c = (t.numpy() for t in tree.leaves(data))
    close(out["sum"], (a + b * c.T).T)
    close(out["shared"], b)


def test_what_does_not_differ_is_repeated() -> None:
    out = ad.vmap(lambda x: (x, pt.ones((2,), device=x.device)))(normal(3))
    assert out[1].tolist() == [[1.0, 1.0]] * 3


def test_keywords_are_mapped_and_numbers_are_shared() -> None:
    x, y = normal(3, 2), normal(3, 2)
    got = ad.vmap(lambda x, n, *, y, flag: (x * n + y) if flag else x)(x, 2.0, y=y, flag=True)
    close(got, x.numpy() * 2 + y.numpy())


def test_a_tensor_of_a_lane_prints_what_it_is() -> None:
    seen: list[str] = []

    def look(x: Tensor[Any]) -> Tensor[Any]:
        seen.append(repr(x))
        return x

    ad.vmap(look)(normal(2, 3))
    assert seen == ["Tensor(shape=(3,), dtype=float64, device=Batched(Numpy(float='float64')))"]


def test_no_lanes_at_all_give_no_results() -> None:
    assert ad.vmap(lambda x: x.sum())(pt.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 100])
def test_chunks_give_what_all_lanes_give(chunk_size: int) -> None:
    w, xs = normal(2, 3), normal(7, 3)
    function = ad.grad(score)
    whole = ad.vmap(function, (None, 0), 1)(w, xs)
    close(ad.vmap(function, (None, 0), 1, chunk_size=chunk_size)(w, xs), whole)


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (ad.vmap(lambda a: a, (0, 0)), pt.ArgumentError, "2 axes for 1 arguments"),
        (ad.vmap(lambda a: a, 2), pt.ArgumentError, r"has no axis 2 .* \(3, 2\)"),
        (ad.vmap(lambda a: a, None), pt.ArgumentError, "nothing is mapped"),
        (ad.vmap(lambda a: a, ({"a": 0},)), pt.ArgumentError, "does not fit"),
        (ad.vmap(lambda a: a, 0, None), pt.ArgumentError, "differs from lane to lane"),
        (ad.vmap(lambda a: a, 0, 5), pt.ArgumentError, "no place for an axis 5"),
        (ad.vmap(lambda a: 3.0), pt.ArgumentError, "value is not a tensor"),
        (lambda x: ad.vmap(lambda a, b: a)(x, x.mT), pt.ShapeError, "3 in argument 0, 2 in arg"),
        (ad.vmap(lambda a: float(a.sum())), pt.BatchingError, "lane to lane"),
        (ad.vmap(lambda a: a if a[0] > 0 else -a), pt.BatchingError, "px.where"),
        (ad.vmap(lambda a: a.inner()), pt.BatchingError, "a tensor of a lane"),
        (ad.vmap(lambda a: a[a > 0]), pt.BatchingError, r"\[nonzero\]"),
    ],
)
def test_what_does_not_fit_is_refused(run: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        run(normal(3, 2))


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(pt.ArgumentError, match="randomness"):
        ad.vmap(score, randomness="no")
    with pytest.raises(pt.ArgumentError, match="chunk_size"):
        ad.vmap(score, chunk_size=0)


# Nesting


def test_lanes_of_lanes() -> None:
    a, b = normal(3, 2), normal(4, 2)
    got = ad.vmap(ad.vmap(lambda x, y: (x * y).sum(), (None, 0)), (0, None))(a, b)
    close(got, a.numpy() @ b.numpy().T)


def test_a_gradient_for_each_example() -> None:
    w, xs = normal(2, 3), normal(6, 3)
    slopes = ad.vmap(ad.grad(score), (None, 0))(w, xs)
    close(slopes, loop(lambda x: ad.grad(score)(w, x), xs))
    total = ad.grad(lambda w: ad.vmap(score, (None, 0))(w, xs).sum())(w)
    close(total, slopes.numpy().sum(axis=0))


def test_derivatives_of_every_kind_under_vmap() -> None:
    w, xs, vs = normal(2, 3), normal(4, 3), normal(4, 3)

    def of(x: Tensor[Any]) -> Tensor[Any]:
        return score(w, x)

    close(ad.vmap(ad.hessian(of))(xs), loop(ad.hessian(of), xs))
    close(ad.vmap(ad.jacobian(ad.grad(of), mode="columns"))(xs), loop(ad.hessian(of), xs))
    close(
        ad.vmap(lambda x, v: ad.jvp(of, (x,), (v,))[1])(xs, vs),
        (ad.vmap(ad.grad(of))(xs) * vs).sum(axis=1),
    )
    close(
        ad.vmap(lambda x, v: ad.hvp(of, (x,), (v,))[0])(xs, vs),
        loop(lambda x, v: ad.hvp(of, (x,), (v,))[0], xs, vs),
    )
    close(ad.vmap(lambda x: ad.vjp(of, x)[1](pt.asarray(1.0))[0])(xs), ad.vmap(ad.grad(of))(xs))


def test_vmap_under_every_derivative() -> None:
    w, xs = normal(2, 3), normal(4, 3)

    def rows(x: Tensor[Any]) -> Tensor[Any]:
        return ad.vmap(score, (None, 0))(w, x)

    blocks = ad.jacobian(rows)(xs)
    close(ad.jacobian(rows, mode="columns")(xs), blocks)
    diagonal = np.stack([blocks.numpy()[i, i] for i in range(4)])
    close(ad.vmap(ad.grad(score, 1), (None, 0))(w, xs), diagonal)
    _, moved = ad.jvp(rows, (xs,), (xs,))
    close(moved, (diagonal * xs.numpy()).sum(axis=1))


def test_a_gradient_penalty_for_each_example() -> None:
    """A derivative of a derivative, with lanes between the two."""
    w, xs = normal(2, 3), normal(4, 3)

    def penalty(w: Tensor[Any]) -> Tensor[Any]:
        slopes = ad.vmap(ad.grad(score, 1), (None, 0))(w, xs)
        return slopes.square().sum()

    close(
        ad.grad(penalty)(w),
        sum(
            ad.grad(lambda w, x=xs[i]: ad.grad(score, 1)(w, x).square().sum())(w).numpy()
            for i in range(4)
        ),
    )


def test_leaves_outside_get_their_gradient() -> None:
    device = ad.Autodiff(pt.default_device())
    w = pt.asarray(RANDOM.standard_normal((2, 3)), device=device).require_grad()
    xs = normal(4, 3).to_device(device)
    out = ad.vmap(lambda x: score(w, x))(xs)
    gradient = w.grad(out.sum().backward())
    assert gradient is not None
    close(gradient, ad.grad(lambda w: ad.vmap(score, (None, 0))(w, xs.inner()).sum())(w.inner()))


def test_nothing_is_recorded_in_lanes_inside_no_grad() -> None:
    w = pt.asarray([1.0, 2.0], device=ad.Autodiff(pt.default_device())).require_grad()
    with ad.no_grad():
        assert not ad.vmap(lambda x: x * 2.0)(w).requires_grad
    assert ad.vmap(lambda x: x * 2.0)(w).requires_grad


def test_backward_inside_is_refused() -> None:
    xs = pt.asarray([1.0, 2.0], device=ad.Autodiff(pt.default_device())).require_grad()
    with pytest.raises(pt.BatchingError, match="would mix the lanes") as error:
        ad.vmap(lambda x: (x * x).backward().get(x))(xs)
    assert "px.vmap(px.grad(f))(xs)" in str(error.value)


def test_checkpoint_runs_again_with_its_lanes() -> None:
    xs = normal(4, 3)
    calls: list[int] = []

    @ad.checkpoint
    def block(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return (x.exp() * x.sin()).tanh()

    wanted = ad.grad(lambda x: (x.exp() * x.sin()).tanh().sum())(xs)
    close(ad.grad(lambda x: ad.vmap(block)(x).sum())(xs), wanted)
    assert len(calls) == 2
    close(ad.vmap(ad.grad(lambda x: block(x).sum()))(xs), wanted)
    assert len(calls) == 4


def test_detect_nan_sees_all_lanes() -> None:
    xs = pt.asarray([1.0, -1.0], device=ad.Autodiff(pt.default_device())).require_grad()
    with ad.detect_nan(), pytest.raises(pt.GradientError, match=r"\[log\] the result holds nan"):
        ad.vmap(lambda x: x.log())(xs)
    with ad.detect_nan(), pytest.raises(pt.GradientError, match=r"\[log\] the result holds nan"):
        ad.vmap(ad.grad(lambda x: x.log()))(xs.inner())


def test_a_proposed_statistic_is_the_mean_over_the_lanes() -> None:
    device = ad.Autodiff(pt.default_device())
    old = pt.asarray([0.0], device=device)
    xs = pt.asarray([[1.0], [3.0]], device=device).require_grad()

    def layer(x: Tensor[Any]) -> Tensor[Any]:
        target = old.to_device(x.device)
        return Tensor(x.device.propose((x * 1.0).primitive, target, x), x.device)

    found = ad.vmap(layer)(xs).sum().backward().proposed(old)
    assert found is not None
    assert found.tolist() == [2.0]


# Custom derivatives


@ad.custom_gradient
def steep(x: Tensor[Any], w: Tensor[Any]) -> Any:
    return (x * w).sum(), lambda g: (g * w * 10.0, g * x * 20.0)


@ad.custom_jvp
def steep_forwards(x: Tensor[Any], w: Tensor[Any]) -> Any:
    return (x * w).sum(), lambda s, t: (s * w * 10.0 + t * x * 20.0).sum()


@pytest.mark.parametrize("function", [steep, steep_forwards])
def test_custom_derivatives_hold_over_and_under_lanes(function: Any) -> None:
    xs, w = normal(4, 3), normal(3)
    slopes = ad.grad(lambda x: ad.vmap(function, (0, None))(x, w).sum())(xs)
    close(slopes, np.broadcast_to(w.numpy() * 10, (4, 3)))
    shared = ad.grad(lambda w: ad.vmap(function, (0, None))(xs, w).sum())(w)
    close(shared, xs.numpy().sum(axis=0) * 20)
    close(ad.vmap(ad.grad(function, 1), (0, None))(xs, w), xs.numpy() * 20)
    close(ad.jacobian(lambda x: ad.vmap(function, (0, None))(x, w))(xs)[1, 1], w.numpy() * 10)


def test_custom_forward_derivatives_hold_under_lanes() -> None:
    xs, w = normal(4, 3), normal(3)
    _, moved = ad.jvp(lambda x: ad.vmap(steep_forwards, (0, None))(x, w), (xs,), (xs,))
    close(moved, (xs.numpy() * w.numpy()).sum(axis=1) * 10)
    inside = ad.vmap(lambda x: ad.jvp(lambda x: steep_forwards(x, w), (x,), (x,))[1])(xs)
    close(inside, moved)


# Random numbers


def test_each_lane_draws_its_own_numbers_as_a_loop_does() -> None:
    xs = pt.zeros((3, 5))

    def noise(x: Tensor[Any]) -> Tensor[Any]:
        return x + pt.random.normal((5,), device=x.device)

    pt.seed(7)
    got = ad.vmap(noise)(xs)
    state = pt.random.generator().state()
    pt.seed(7)
    close(got, loop(noise, xs))
    assert pt.random.generator().state() == state
    for draw in (
        lambda x: pt.random.uniform((3,), device=x.device) + x,
        lambda x: pt.random.randint((2, 3), 0, 1000, device=x.device) + 0 * x.astype(pt.int64),
        lambda x: pt.random.uniform((3, 3), dtype="float32", device=x.device) + x.astype("float32"),
    ):
        pt.seed(1)
        lanes = ad.vmap(draw)(pt.zeros((4,)))
        pt.seed(1)
        np.testing.assert_array_equal(lanes.numpy(), loop(draw, pt.zeros((4,))))


def test_all_lanes_may_draw_the_same_numbers() -> None:
    pt.seed(3)
    out = ad.vmap(lambda x: x + pt.random.normal((4,), device=x.device), randomness="same")(
        pt.zeros((3, 4))
    )
    pt.seed(3)
    close(out, np.stack([pt.random.normal((4,)).numpy()] * 3))


def test_lanes_of_lanes_draw_different_numbers() -> None:
    out = ad.vmap(ad.vmap(lambda x: x + pt.random.normal((), device=x.device)))(pt.zeros((3, 4)))
    assert len(set(out.flatten().tolist())) == 12


# Devices


def test_a_tensor_of_an_outer_device_is_said_with_what_to_type() -> None:
    recording = ad.Autodiff("numpy")
    w = pt.ones(2, device=recording).require_grad()
    xs = pt.ones((3, 2), device="numpy")
    mapped, slopes = ad.vmap(lambda x: x * w), ad.vmap(ad.grad(lambda x: (x * w).sum()))
    calls: list[Any] = [
        mapped,
        slopes,
        lambda x: ad.jvp(lambda x: x * w, (x,), (x,)),
    ]
    for call in calls:
        with pytest.raises(pt.DeviceError, match="a tensor of an outer device") as caught:
            call(xs)
        assert caught.value.got == f"a tensor on {recording!r}, arguments on Numpy()"
        assert str(caught.value.hint).startswith(f"x.to_device({recording!r}) for the arguments")
        call(xs.to_device(recording))


@pytest.mark.parametrize("place", ["none", "default", "shared"])
def test_draws_of_any_device_differ_in_each_lane(place: str) -> None:
    xs, weights = pt.ones((4, 2)), pt.ones(2)
    device = {"none": None, "default": pt.default_device(), "shared": weights.device}[place]

    def noise(x: Tensor[Any]) -> Tensor[Any]:
        return x * 0.0 + pt.random.normal((2,), device=device)

    pt.seed(3)
    wanted = pt.stack([noise(x) for x in (xs[i] for i in range(4))])
    for run in (ad.vmap(noise), ad.vmap(noise, chunk_size=3), ad.vmap(ad.checkpoint(noise))):
        pt.seed(3)
        assert run(xs).tolist() == wanted.tolist()
    pt.seed(3)

    def weighted(x: Tensor[Any]) -> Tensor[Any]:
        return (x * noise(x)).sum()

    block = ad.checkpoint(weighted)
    assert ad.grad(lambda xs: ad.vmap(block)(xs).sum())(xs).tolist() == wanted.tolist()
    pt.seed(3)
    same = ad.vmap(noise, randomness="same")(xs).tolist()
    assert same == [wanted[0].tolist()] * 4


def test_draws_of_nested_lanes_are_those_of_nested_loops() -> None:
    def draw(_: Tensor[Any]) -> Tensor[Any]:
        return pt.random.uniform(())

    xs = pt.ones((2, 3))
    pt.seed(1)
    wanted = pt.random.uniform(())
    pt.seed(1)
    found = ad.vmap(ad.vmap(draw))(xs)
    assert len(set(found.flatten().tolist())) == 6
    assert found[0, 0].item() == wanted.item()
    pt.seed(1)
    rows = ad.vmap(ad.vmap(draw, randomness="same"))(xs).tolist()
    assert [len(set(row)) for row in rows] == [1, 1]
    assert rows[0] != rows[1]


def test_a_jacobian_by_columns_has_the_draws_of_its_value() -> None:
    def noisy(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
        return pt.concat([x * pt.random.normal((2,)), y * pt.random.normal((2,)), x])

    x, y = pt.asarray([1.0, 2.0]), pt.asarray([3.0, 4.0])
    found = []
    for mode, size in (("rows", None), ("columns", None), ("columns", 1)):
        pt.seed(5)
        blocks = ad.jacobian(noisy, (0, 1), mode=mode, chunk_size=size)(x, y)
        found.append([block.tolist() for block in blocks])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("chunk_size", [1, 2, 3, None])
def test_the_same_numbers_in_all_lanes_are_so_in_all_chunks(chunk_size: int | None) -> None:
    xs = pt.zeros(5)

    def draw(x: Any) -> Any:
        return x + pt.random.normal((3,)) + pt.random.uniform((3,))

    start = pt.random.generator().state()
    want = draw(pt.zeros(())).numpy()
    end = pt.random.generator().state()
    pt.random.generator().set_state(*start)
    got = ad.vmap(draw, randomness="same", chunk_size=chunk_size)(xs).numpy()
    assert np.array_equal(got, np.broadcast_to(want, (5, 3)))
    assert pt.random.generator().state() == end


def test_a_mask_updates_each_lane() -> None:
    xs = pt.asarray(np.arange(6.0).reshape(2, 3))
    for update in ("set", "add", "multiply"):
        got = ad.vmap(lambda x, update=update: getattr(x.at[x > 2], update)(5.0))(xs)
        want = getattr(xs.at[xs > 2], update)(5.0)
        assert np.array_equal(got.numpy(), want.numpy())
    slope = ad.grad(lambda x: x.at[x > 2].multiply(float("inf")).sum())(xs)
    assert slope.tolist() == [[1, 1, 1], [float("inf")] * 3]


def test_lanes_of_empty_axes_take_nothing() -> None:
    nothing = pt.zeros((2, 0), dtype="int8")
    for take in (lambda x, at: x[at], lambda x, at: pt.take(x, at, axis=0)):
        assert ad.vmap(take)(pt.ones((2, 0, 3)), nothing).shape == (2, 0, 3)
