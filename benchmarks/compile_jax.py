"""What the group ``compile`` runs in JAX, through ``jax.jit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.case import Network, Run, Words, warmed

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


def words() -> Words:
    """Return JAX's functions."""
    import jax  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return Words(
        exp=jax.numpy.exp,
        relu=jax.nn.relu,
        sqrt=jax.numpy.sqrt,
        square=jax.numpy.square,
        top=lambda x: x.max(axis=-1, keepdims=True),
    )


def functions(
    given: Mapping[str, tuple[Callable[..., Any], Sequence[np.ndarray]]],
) -> dict[str, Run]:
    """Return compiled functions of arrays, by name."""
    import jax  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    def run(name: str) -> Run:
        function, arrays = given[name]
        fast, put = jax.jit(function), [jax.numpy.asarray(array) for array in arrays]
        return warmed(lambda: jax.block_until_ready(fast(*put)))

    return {name: run(name) for name in given}


def steps(given: Mapping[str, Network]) -> dict[str, Run]:
    """Return training steps with Adam, by name."""
    return {name: _step(network) for name, network in given.items()}


def first_calls(given: Network) -> dict[str, Run]:
    """Return first calls of functions that JAX has not seen before, by name."""
    import jax  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    ten = jax.numpy.ones(10)
    step, state, data = _parts(given)

    def chain() -> object:
        return jax.block_until_ready(jax.jit(lambda x: jax.numpy.exp(jax.nn.relu(x * 2 + 1)))(ten))

    def network() -> object:
        return jax.block_until_ready(jax.jit(lambda *args: step(*args))(state, *data))

    return {"(x*2+1).relu().exp(), 10": chain, "MLP 64-32-10, b32, Adam": network}


def _step(given: Network) -> Run:
    import jax  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    step, state, data = _parts(given)
    # Old weights and moments are given up, as PyTorch's are written over.
    fast = jax.jit(step, donate_argnums=0)
    place = [state]

    def run() -> object:
        place[0], loss = fast(place[0], *data)
        return jax.block_until_ready(loss)

    return warmed(run)


def _parts(given: Network) -> tuple[Callable[..., Any], Any, tuple[Any, Any]]:
    """A training step, what it starts with, and its data."""
    import jax  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    jnp, sizes = jax.numpy, given.sizes
    rng = np.random.default_rng(0)
    weights = [
        jnp.asarray(rng.standard_normal(shape, np.float32) * 0.05)
        for shape in (sizes[:2], sizes[1:2], sizes[1:], sizes[2:])
    ]
    x, target = jnp.asarray(given.images), jnp.asarray(given.labels)

    def loss_of(weights: Any, x: Any, target: Any) -> Any:
        first, bias, second, last = weights
        scores = jax.nn.relu(x @ first + bias) @ second + last
        return -jax.nn.log_softmax(scores)[jnp.arange(len(target)), target].mean()

    def step(state: Any, x: Any, target: Any) -> Any:
        weights, means, squares, count = state
        loss, grads = jax.value_and_grad(loss_of)(weights, x, target)
        count = count + 1
        means = [_BETA1 * m + (1 - _BETA1) * g for m, g in zip(means, grads, strict=True)]
        squares = [_BETA2 * s + (1 - _BETA2) * g * g for s, g in zip(squares, grads, strict=True)]
        shrunk, spread = 1 - _BETA1**count, 1 - _BETA2**count
        weights = [
            w - 1e-3 * (m / shrunk) / (jnp.sqrt(s / spread) + _EPSILON)
            for w, m, s in zip(weights, means, squares, strict=True)
        ]
        return (weights, means, squares, count), loss

    zeros = [jnp.zeros_like(w) for w in weights]
    state = (weights, zeros, [jnp.zeros_like(w) for w in weights], jnp.zeros((), jnp.float32))
    return step, state, (x, target)
