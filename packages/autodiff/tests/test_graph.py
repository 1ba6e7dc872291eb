"""The graph: what it holds, when it lets go, how deep it may be, and the errors it gives."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import GradientError, Numpy, Tensor, WrongTypeError

INNER = Numpy(float="float64")
DEVICE = ad.Autodiff(INNER)


@pytest.fixture
def counted() -> Iterator[None]:
    """Reference counts alone free memory: the collector of cycles is off."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(*values: float) -> Tensor[Any]:
    return pt.asarray(list(values), device=DEVICE).require_grad()


def grad_of(w: Tensor[Any], grads: Any) -> Tensor[Any]:
    """A gradient that has to be there."""
    found = w.grad(grads)
    assert found is not None
    return found


def array_of(tensor: Tensor[Any]) -> weakref.ref[Any]:
    """A weak reference to the data of a tensor."""
    return weakref.ref(tensor.primitive.value)


def test_equal_arguments_give_the_same_device() -> None:
    assert ad.Autodiff(INNER) is DEVICE
    assert ad.Autodiff("numpy") is ad.Autodiff(Numpy())
    assert ad.Autodiff(INNER, checkpointing=ad.NoCheckpointing()) is DEVICE
    assert ad.Autodiff(INNER, checkpointing=ad.BalancedCheckpointing()) is not DEVICE
    assert ad.Autodiff(INNER, ad.BalancedCheckpointing()).inner is INNER
    assert pickle.loads(pickle.dumps(ad.Autodiff(DEVICE))) is ad.Autodiff(DEVICE)


def test_a_constant_is_pickled_with_its_device_and_a_recorded_tensor_is_refused() -> None:
    constant = pt.asarray([1.0, 2.0], device=ad.Autodiff(DEVICE))
    back = pickle.loads(pickle.dumps(constant))
    assert back.device is ad.Autodiff(DEVICE)
    assert back.tolist() == [1.0, 2.0]
    w = leaf(1.0)
    for recorded in (w, w * 2, (w * 2).to_device(ad.Autodiff(DEVICE))):
        with pytest.raises(pt.GradientError, match=r"hint: pickle.dumps\(x.detach\(\)\)"):
            pickle.dumps(recorded)
    assert pickle.loads(pickle.dumps((w * 2).detach())).tolist() == [2.0]


def test_a_device_prints_as_it_is_written() -> None:
    assert repr(ad.Autodiff(Numpy())) == "Autodiff(Numpy())"
    balanced = ad.Autodiff(Numpy(), checkpointing=ad.BalancedCheckpointing())
    assert repr(balanced) == "Autodiff(Numpy(), checkpointing=BalancedCheckpointing())"


def test_gradients_are_values_on_the_inner_device() -> None:
    w, unused = leaf(1.0, 2.0), leaf(3.0)
    loss = (w * w).sum()
    grads = loss.backward()
    gradient = w.grad(grads)
    assert gradient is not None
    assert gradient.device is INNER
    assert gradient.tolist() == [2.0, 4.0]
    assert grads.get(unused) is None
    assert grads.get(loss) is None
    assert grads.get(pt.asarray([1.0], device=INNER)) is None
    assert w in grads
    assert unused not in grads
    assert len(grads) == 1
    assert grads.pop(w) is gradient
    assert grads.get(w) is None


def test_uses_of_one_tensor_add_up() -> None:
    w = leaf(2.0)
    y = w * w + w * 3.0 + w
    assert grad_of(w, y.backward()).tolist() == [8.0]


def test_a_seed_weighs_the_elements() -> None:
    w = leaf(1.0, 2.0)
    seed = pt.asarray([10.0, 100.0], device=INNER)
    assert grad_of(w, (w * w).backward(seed)).tolist() == [20.0, 400.0]
    lifted = seed.to_device(DEVICE)
    assert grad_of(w, (w * w).backward(lifted)).tolist() == [20.0, 400.0]


def test_a_leaf_stays_a_leaf() -> None:
    w = leaf(1.0)
    again = w.require_grad()
    assert grad_of(again, (w * 2.0).backward()).tolist() == [2.0]


def test_detached_tensors_are_constants() -> None:
    w = leaf(3.0)
    y = w.detach() * w
    assert not w.detach().requires_grad
    assert grad_of(w, y.backward()).tolist() == [3.0]


def test_detaching_reaches_the_devices_inside() -> None:
    def stopped(x: Tensor[Any]) -> Tensor[Any]:
        return (x.detach() * x).sum()

    second = ad.grad(lambda x: ad.grad(stopped)(x).sum())(pt.asarray([3.0], device=INNER))
    assert second.tolist() == [0.0]


def test_constants_of_the_inner_device_are_lifted() -> None:
    w = leaf(1.0, 2.0)
    y = (w * pt.asarray([5.0, 6.0], device=INNER)).sum()
    assert grad_of(w, y.backward()).tolist() == [5.0, 6.0]


# Memory


@pytest.mark.usefixtures("counted")
def test_the_graph_goes_with_its_tensors() -> None:
    w = leaf(1.0, 2.0)
    middle = w.exp()
    kept = array_of(middle)
    loss = middle.sin().sum()
    del middle
    assert kept() is not None
    del loss
    assert kept() is None


@pytest.mark.usefixtures("counted")
def test_a_backward_pass_frees_what_it_used() -> None:
    w = leaf(1.0, 2.0)
    middle = w.exp()
    kept = array_of(middle)
    loss = middle.sin().sum()
    del middle
    grads = loss.backward()
    assert kept() is None
    assert w.grad(grads) is not None


@pytest.mark.usefixtures("counted")
def test_a_retained_graph_keeps_what_it_needs() -> None:
    w = leaf(1.0, 2.0)
    loss = w.exp().sin().sum()
    first = w.grad(loss.backward(retain_graph=True))
    second = w.grad(loss.backward())
    assert first is not None
    assert second is not None
    assert first.tolist() == second.tolist()


@pytest.mark.usefixtures("counted")
def test_a_backward_pass_frees_as_it_goes() -> None:
    """When the rule of an early step runs, what later steps kept is gone already."""
    seen: list[bool] = []
    w = leaf(1.0, 2.0)

    @ad.custom_gradient
    def spy(x: Tensor[Any]) -> Any:
        def pull(g: Tensor[Any]) -> Tensor[Any]:
            seen.append(kept() is None)
            return g

        return x, pull

    middle = spy(w).exp()
    kept = array_of(middle)
    loss = middle.sin().sum()
    del middle
    loss.backward()
    assert seen == [True]


@pytest.mark.usefixtures("counted")
def test_a_step_that_keeps_nothing_holds_no_data() -> None:
    w = leaf(1.0, 2.0)
    scaled = w * 2.0
    kept = array_of(scaled)
    total = (scaled + 1.0).sum()
    del scaled
    assert kept() is None
    assert grad_of(w, total.backward()).tolist() == [2.0, 2.0]


@pytest.mark.usefixtures("counted")
def test_gradients_do_not_hold_the_graph() -> None:
    w = leaf(1.0, 2.0)
    loss = w.exp().sum()
    kept = array_of(loss)
    grads = loss.backward()
    del loss
    assert kept() is None
    assert len(grads) == 1


DEEP = 100_000


@pytest.mark.usefixtures("counted")
def test_a_deep_graph_neither_recurses_nor_leaks() -> None:
    w = leaf(1.0)
    y = w
    for _ in range(DEEP):
        y = y + w
    assert grad_of(w, y.backward()).tolist() == [DEEP + 1.0]


@pytest.mark.usefixtures("counted")
def test_a_deep_graph_is_dropped_without_a_pass() -> None:
    w = leaf(1.0)
    y = w.exp()
    kept = array_of(y)
    for _ in range(DEEP):
        y = y.sin()
    del y
    assert kept() is None


# Errors


def test_a_second_pass_says_how_to_keep_the_graph() -> None:
    w = leaf(1.0, 2.0)
    loss = (w + 1.0).sum()
    loss.backward()
    with pytest.raises(pt.GradientError, match=r"backward\(retain_graph=True\)"):
        loss.backward()


def test_a_pass_over_a_shared_and_freed_part_is_refused() -> None:
    w = leaf(1.0, 2.0)
    shared = w.exp()
    shared.sum().backward()
    with pytest.raises(pt.GradientError, match="used by an earlier backward pass"):
        shared.sin().sum().backward()


def test_backward_of_a_constant_is_refused() -> None:
    constant = pt.asarray([1.0], device=DEVICE)
    with pytest.raises(pt.GradientError, match="nothing was recorded"):
        (constant * 2.0).sum().backward()


def test_backward_of_several_elements_asks_for_a_seed() -> None:
    with pytest.raises(pt.ShapeError, match=r"hint: x.sum\(\).backward\(\)"):
        (leaf(1.0, 2.0) * 2.0).backward()


@pytest.mark.parametrize("shape", [(3,), (2, 1), ()])
def test_a_seed_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(pt.ShapeError, match="the seed does not fit"):
        (leaf(1.0, 2.0) * 2.0).backward(pt.ones(shape, device=INNER))


def test_a_result_is_no_leaf() -> None:
    with pytest.raises(pt.GradientError, match=r"x.detach\(\).require_grad\(\)"):
        (leaf(1.0) * 2.0).require_grad()


def test_integers_have_no_gradient() -> None:
    integers: Any = pt.asarray([1, 2], device=DEVICE)
    with pytest.raises(pt.GradientError, match="only Float tensors"):
        integers.require_grad()


def test_shape_errors_name_the_op_that_was_called() -> None:
    for name in ("add", "gelu_backward", "logaddexp"):
        op = pt.REGISTRY[name]
        with pytest.raises(pt.ShapeError, match=rf"\[{name}\] shapes do not broadcast"):
            op(leaf(1.0, 2.0), leaf(1.0, 2.0, 3.0))


def test_element_types_promote_as_they_do_inside() -> None:
    narrow = pt.asarray([1.5], dtype=pt.float32, device=DEVICE).require_grad()
    wide = leaf(2.0)
    y = narrow * wide
    assert y.dtype is pt.float64
    grads = y.backward()
    assert grad_of(narrow, grads).dtype is pt.float32
    assert grad_of(wide, grads).tolist() == [1.5]


def test_a_pass_that_keeps_its_graph_is_not_freed_under_it() -> None:
    """A rule runs a second pass over the graph while the first reads it."""
    w = leaf(1.0, 2.0)

    @ad.custom_gradient
    def nested(x: Tensor[Any]) -> Any:
        def pull(g: Tensor[Any]) -> Tensor[Any]:
            with pytest.raises(pt.GradientError, match="another backward pass"):
                loss.backward()
            return g

        return x, pull

    loss = nested(w.exp()).sin().sum()
    first = grad_of(w, loss.backward(retain_graph=True))
    again = grad_of(w, loss.backward(retain_graph=True))
    assert again.tolist() == first.tolist()


# Gradients as a value


@pytest.mark.parametrize(
    ("of", "got", "hint"),
    [
        (lambda w: leaf(3.0), "a leaf on which this loss does not depend", "grads.get(x)"),
        (lambda w: pt.ones(2, device=DEVICE), "a constant", "x.require_grad()"),
        (lambda w: w * 2, "a result of other tensors", "retain_grad(x)"),
        (lambda w: pt.ones(2, device=INNER), "a tensor on Numpy", "x.to_device(Autodiff("),
    ],
    ids=["other leaf", "constant", "result", "other device"],
)
def test_where_there_is_no_gradient_the_error_says_why(
    of: Callable[[Any], Tensor[Any]], got: str, hint: str
) -> None:
    w = leaf(1.0, 2.0)
    x = of(w)
    grads = (w * w).sum().backward()
    for call in (x.grad, lambda _: grads[x]):
        with pytest.raises(GradientError, match="no gradient of this tensor") as error:
            call(grads)
        assert got in str(error.value.got)
        assert hint in str(error.value.hint)
    assert grads.get(x) is None
    assert grads[w].tolist() == w.grad(grads).tolist() == [2.0, 4.0]


def test_gradients_are_asked_for_by_tensors() -> None:
    w: Any = leaf(1.0)
    grads = (w * w).sum().backward()
    for call in (grads.get, grads.pop, grads.__getitem__):
        with pytest.raises(WrongTypeError, match=r"not a tensor: got str(.|\n)*hint: grads.get"):
            call("w")


def test_gradients_add_up_and_scale() -> None:
    a, b, unused = leaf(1.0, 2.0), leaf(3.0), leaf(4.0)
    one, other = (a * a).sum().backward(), (a.sum() * b).sum().backward()
    total = one + other
    assert len(total) == 2
    assert grad_of(a, total).tolist() == [5.0, 7.0]
    assert grad_of(b, total).tolist() == [3.0]
    assert grad_of(a, one).tolist() == [2.0, 4.0]
    assert len(one) == 1
    for half in (total * 0.5, 0.5 * total, total.map(lambda g: g / 2)):
        assert grad_of(a, half).tolist() == [2.5, 3.5]
        assert half.get(unused) is None
    assert sorted(g.tolist() for g in total) == [[3.0], [5.0, 7.0]]


def test_gradients_of_two_devices_do_not_add_up() -> None:
    other = pt.asarray([1.0], device=ad.Autodiff(Numpy())).require_grad()
    with pytest.raises(pt.GradientError, match="two devices"):
        _ = leaf(1.0).exp().backward() + other.exp().backward()
    with pytest.raises(TypeError):
        _ = leaf(1.0).exp().backward() + other  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = leaf(1.0).exp().backward() * other
    with pytest.raises(pt.GradientError, match=r"expected a tensor of shape \(1,\)"):
        leaf(1.0).exp().backward().map(lambda g: g.sum())


def test_a_history_does_not_move_to_another_device_in_silence() -> None:
    other = ad.Autodiff(Numpy())
    w = leaf(1.0, 2.0)
    for tracked in (w, w * 2, (w * 2).to_device(ad.Autodiff(DEVICE))):
        with pytest.raises(pt.GradientError, match=r"^\[to_device\] the history of a tensor"):
            tracked.to_device(other)
        with pytest.raises(pt.GradientError, match=r"x.detach\(\).to_device"):
            tracked.to_device(Numpy())
        assert tracked.detach().to_device(other).device is other
        assert tracked.detach().to_device(Numpy()).tolist() == tracked.tolist()
