"""What others call our activations, windows, statistics and the rest beyond the array API."""

from __future__ import annotations

from typing import Final

# Of a tensor, in the namespaces of NumPy and PyTorch as in ours.
_ALIKE: Final = {
    "fft": "fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfftn rfftn",
    "linalg": "cholesky eigh eigvalsh matrix_norm matrix_rank qr slogdet svd svdvals",
}
# As the rows of ``spellings``; sorted by our name.
NETWORK_ROWS: Final = (
    *(
        (name, name, name, "", f"{{ns}}.{name}(x)")
        for space, names in _ALIKE.items()
        for name in [f"{space}.{each}" for each in names.split()]
    ),
    ("cartesian_prod", "", "=", "cartesian_grid", "{ns}.cartesian_prod([x, y])"),
    ("cummax", "maximum.accumulate", "=", "=", "x.cummax(axis=0)[0]"),
    ("cummin", "minimum.accumulate", "=", "=", "x.cummin(axis=0)[0]"),
    ("fake_quantize", "", "fake_quantize_per_tensor_affine", "", "{ns}.fake_quantize(x, 0.1)"),
    ("fft.fftfreq", "fft.fftfreq", "fft.fftfreq", "", "{ns}.fft.fftfreq(8)"),
    ("fft.irfft", "fft.irfft", "fft.irfft", "signal.irfft", "{ns}.fft.irfft(x)"),
    ("fft.istft", "", "istft", "", "{ns}.fft.istft(x, 256)"),
    ("fft.rfft", "fft.rfft", "fft.rfft", "signal.rfft", "{ns}.fft.rfft(x)"),
    ("fft.rfftfreq", "fft.rfftfreq", "fft.rfftfreq", "", "{ns}.fft.rfftfreq(8)"),
    ("fft.stft", "", "stft", "", "{ns}.fft.stft(x, 256)"),
    ("fold", "", "=", "fold4d", "{ns}.fold(x, (8, 8), 2)"),
    ("grid_sample", "", "=", "grid_sample_2d", "{ns}.grid_sample(x, grid)"),
    ("hard_shrink", "", "hardshrink", "=", "x.hard_shrink(0.5)"),
    ("hard_sigmoid", "", "hardsigmoid", "=", "x.hard_sigmoid()"),
    ("hard_swish", "", "hardswish", "=", "x.hard_swish()"),
    ("hard_tanh", "", "hardtanh", "hardtanh", "x.hard_tanh(-1.0, 1.0)"),
    ("isclose", "=", "=", "is_close", "{ns}.isclose(x, y)"),
    ("linalg.det", "linalg.det", "linalg.det", "linalg.det", "{ns}.linalg.det(x)"),
    ("linalg.inv", "linalg.inv", "inverse", "", "{ns}.linalg.inv(x)"),
    ("linalg.lstsq", "linalg.lstsq", "linalg.lstsq", "", "{ns}.linalg.lstsq(x, y)"),
    ("linalg.lu", "", "linalg.lu", "linalg.lu_decomposition", "{ns}.linalg.lu(x)"),
    ("linalg.matrix_exp", "", "matrix_exp", "", "{ns}.linalg.matrix_exp(x)"),
    (
        "linalg.matrix_power",
        "linalg.matrix_power",
        "linalg.matrix_power",
        "",
        "{ns}.linalg.matrix_power(x, 3)",
    ),
    ("linalg.pinv", "linalg.pinv", "pinverse", "", "{ns}.linalg.pinv(x)"),
    ("linalg.solve", "linalg.solve", "linalg.solve", "", "{ns}.linalg.solve(x, y)"),
    (
        "linalg.solve_triangular",
        "",
        "triangular_solve",
        "",
        "{ns}.linalg.solve_triangular(matrix, x, upper=True)",
    ),
    ("logcumsumexp", "logaddexp.accumulate", "=", "", "x.logcumsumexp(axis=0)"),
    ("masked_fill", "", "=", "mask_fill", "x.masked_fill(x > 0, 1.0)"),
    ("masked_scatter", "place", "=", "", "x.masked_scatter(x > 0, y)"),
    ("max_unpool", "", "max_unpool2d", "", "{ns}.max_unpool(x, indices, (8, 8))"),
    ("max_with_indices", "", "", "max_dim_with_indices", "x.max_with_indices(axis=1)"),
    ("min_with_indices", "", "", "min_dim_with_indices", "x.min_with_indices(axis=1)"),
    ("quantize", "", "quantize_per_tensor", "=", "{ns}.quantize(x, scale)"),
    ("random.beta", "random.beta", "distributions.Beta", "", "{ns}.random.beta((3,), 2.0, 5.0)"),
    ("random.categorical", "", "distributions.Categorical", "", "{ns}.random.categorical(logits)"),
    ("random.choice", "random.choice", "", "", "{ns}.random.choice(x, (3,))"),
    (
        "random.exponential",
        "random.exponential",
        "exponential_",
        "",
        "{ns}.random.exponential((3,))",
    ),
    ("random.gamma", "random.gamma", "distributions.Gamma", "", "{ns}.random.gamma((3,), 2.0)"),
    ("random.gumbel_softmax", "", "gumbel_softmax", "", "{ns}.random.gumbel_softmax(logits)"),
    ("random.multinomial", "", "multinomial", "", "{ns}.random.multinomial(weights, 3)"),
    ("random.poisson", "random.poisson", "poisson", "", "{ns}.random.poisson((3,), 4.0)"),
    ("random.truncated_normal", "", "trunc_normal_", "", "{ns}.random.truncated_normal((3,))"),
    ("rnn", "", "rnn_tanh", "", "{ns}.rnn(x, weight_input, weight_hidden)"),
    ("soft_shrink", "", "softshrink", "=", "x.soft_shrink(0.5)"),
    ("tanh_shrink", "", "tanhshrink", "tanhshrink", "x.tanh_shrink()"),
    ("trace", "=", "=", "linalg.trace", "{ns}.trace(x)"),
    ("unfold", "", "=", "unfold4d", "{ns}.unfold(x, 2)"),
)
