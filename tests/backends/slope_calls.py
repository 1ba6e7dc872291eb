"""The functions of the table of slopes in docs/numerics.md, as PyTorch and JAX write them.

One row a line, by what stands in the table; None where the other library has no such function.
"""

from __future__ import annotations

from typing import Final

# Names that the expressions use: px, t (torch), f (torch.nn.functional), j (jax.numpy), jax, x.
ELSEWHERE: Final[dict[str, tuple[str | None, str | None]]] = {
    "px.acosh(x)": ("x.acosh()", "j.arccosh(x)"),
    "px.asin(x)": ("x.asin()", "j.arcsin(x)"),
    "px.atan2(x, x)": ("t.atan2(x, x)", "j.arctan2(x, x)"),
    "px.atanh(x)": ("x.atanh()", "j.arctanh(x)"),
    "px.cdist(x[None], x[None] * 0)": ("t.cdist(x[None], x[None] * 0)", None),
    "px.clip(x, -px.ones_like(x), px.ones_like(x))": (
        "t.clamp(x, -t.ones_like(x), t.ones_like(x))",
        "j.clip(x, -j.ones_like(x), j.ones_like(x))",
    ),
    "px.cosine_similarity(x, x * 0 + 1)": ("t.cosine_similarity(x, x * 0 + 1, dim=0)", None),
    "px.elu(x)": ("f.elu(x)", "jax.nn.elu(x)"),
    "px.fft.rfft(x).abs()": ("t.fft.rfft(x).abs()", "j.abs(j.fft.rfft(x))"),
    "px.gelu(x)": ("f.gelu(x)", "jax.nn.gelu(x, approximate=False)"),
    "px.hard_tanh(x)": ("f.hardtanh(x)", "jax.nn.hard_tanh(x)"),
    "px.hypot(x, x * 0)": ("t.hypot(x, x * 0)", "j.hypot(x, x * 0)"),
    "px.hypot(x, x)": ("t.hypot(x, x)", "j.hypot(x, x)"),
    "px.linalg.det(x.reshape(2, 2))": (
        "t.linalg.det(x.reshape(2, 2))",
        "j.linalg.det(x.reshape(2, 2))",
    ),
    "px.linalg.svdvals(x.reshape(2, 2))": (
        "t.linalg.svdvals(x.reshape(2, 2))",
        "j.linalg.svd(x.reshape(2, 2), compute_uv=False)",
    ),
    "px.linalg.vector_norm(x)": ("t.linalg.vector_norm(x)", "j.linalg.norm(x)"),
    "px.linalg.vector_norm(x, ord=1)": (
        "t.linalg.vector_norm(x, ord=1)",
        "j.linalg.norm(x, ord=1)",
    ),
    "px.linalg.vector_norm(x, ord=3)": (
        "t.linalg.vector_norm(x, ord=3)",
        "j.linalg.norm(x, ord=3)",
    ),
    "px.linalg.vector_norm(x, ord=px.inf)": (
        "t.linalg.vector_norm(x, ord=float('inf'))",
        "j.linalg.norm(x, ord=j.inf)",
    ),
    "px.log(x)": ("x.log()", "j.log(x)"),
    "px.log_softmax(x)": ("x.log_softmax(0)", "jax.nn.log_softmax(x)"),
    "px.logaddexp(x, x)": ("t.logaddexp(x, x)", "j.logaddexp(x, x)"),
    "px.logsumexp(x)": ("x.logsumexp(0)", "jax.nn.logsumexp(x)"),
    "px.maximum(x, 0.0)": ("t.maximum(x, t.zeros_like(x))", "j.maximum(x, 0.0)"),
    "px.median(x)": ("x.quantile(0.5)", "j.median(x)"),
    "px.minimum(x, 0.0)": ("t.minimum(x, t.zeros_like(x))", "j.minimum(x, 0.0)"),
    "px.mish(x)": ("f.mish(x)", "jax.nn.mish(x)"),
    "px.relu(x)": ("x.relu()", "jax.nn.relu(x)"),
    "px.relu6(x)": ("f.relu6(x)", "jax.nn.relu6(x)"),
    "px.silu(x)": ("f.silu(x)", "jax.nn.silu(x)"),
    "px.softmax(x)": ("x.softmax(0)", "jax.nn.softmax(x)"),
    "px.softplus(x)": ("f.softplus(x)", "jax.nn.softplus(x)"),
    "x % 2.0": ("x % 2.0", "x % 2.0"),
    "x ** 0.0": ("x ** 0.0", "x ** 0.0"),
    "x ** 0.5": ("x ** 0.5", "x ** 0.5"),
    "x ** 1.0": ("x ** 1.0", "x ** 1.0"),
    "x ** x": ("x ** x", "x ** x"),
    "x.abs()": ("x.abs()", "j.abs(x)"),
    "x.clip(-1.0, 1.0)": ("x.clamp(-1.0, 1.0)", "j.clip(x, -1.0, 1.0)"),
    "x.clip(min=0.0)": ("x.clamp(min=0.0)", "j.clip(x, min=0.0)"),
    "x.max()": ("x.amax()", "x.max()"),
    "x.mean()": ("x.mean()", "x.mean()"),
    "x.min()": ("x.amin()", "x.min()"),
    "x.prod()": ("x.prod()", "x.prod()"),
    "x.round()": ("x.round()", "j.round(x)"),
    "x.sign()": ("x.sign()", "j.sign(x)"),
    "x.sort()[0]": ("x.sort().values[0]", "j.sort(x)[0]"),
    "x.sqrt()": ("x.sqrt()", "j.sqrt(x)"),
    "x.std()": ("x.std(correction=0)", "x.std()"),
}
