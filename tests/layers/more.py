# ruff: noqa: E501 - one row of the table stands on one line
"""Rows whose values are PyTorch's, kept in values.json: windows, norms, sequences, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from phlox import nn
from tests.layers.case import Array, Case, classes, normal, torch


def inside(w: dict[str, Any]) -> tuple[Any, Any]:
    """Weight and bias."""
    return w["weight"], w.get("bias")


def recurrent(
    w: dict[str, Any], name: str, x: Any, *states: Any, lengths: Any = None, **settings: Any
) -> Any:
    """A recurrent layer of PyTorch with these parameters; all it gives as one vector."""
    t = torch()
    both, count = settings.get("bidirectional", False), settings.get("num_layers", 1)
    layer = getattr(t.nn, name)(4, 3, batch_first=True, dtype=t.float64, **settings)
    given = {}
    for i in range(count * (1 + both)):
        end = f"l{i // (1 + both)}" + ("_reverse" if both and i % 2 else "")
        for mine, theirs in (
            ("weight_input", "weight_ih"),
            ("weight_hidden", "weight_hh"),
            ("bias_input", "bias_ih"),
            ("bias_hidden", "bias_hh"),
        ):
            if f"layers.{i}.{mine}" in w:
                value = w[f"layers.{i}.{mine}"]
                given[f"{theirs}_{end}"] = value.T if value.ndim == 2 else value
    if lengths is not None:
        x = t.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    start = None if not states else states[0] if len(states) == 1 else states
    y, end = t.func.functional_call(layer, given, (x,) if start is None else (x, start))
    if lengths is not None:
        y, _ = t.nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
    ends = end if isinstance(end, tuple) else (end,)
    return t.cat([part.flatten() for part in (y, *ends)])


def cell(w: dict[str, Any], name: str, x: Any, *states: Any, **settings: Any) -> Any:
    """One step of a cell of PyTorch with these parameters; its states as one vector."""
    t = torch()
    layer = getattr(t.nn, f"{name}Cell")(4, 3, dtype=t.float64, **settings)
    ends = {"input": "ih", "hidden": "hh"}
    given = {}
    for path, value in w.items():
        kind, _, end = path.removeprefix("recurrence.").partition("_")
        given[f"{kind}_{ends[end]}"] = value.T if kind == "weight" else value
    start = None if not states else states[0] if len(states) == 1 else states
    found = t.func.functional_call(layer, given, (x, start))
    return t.cat([part.flatten() for part in found]) if name == "LSTM" else found


def unpooled(f: Any, x: Any, places: Any, size: tuple[int, ...]) -> Any:
    """Zeros with elements at their places, by an index into each plane."""
    n, c = x.shape[:2]
    empty = x.new_zeros((n, c, int(np.prod(size))))
    return empty.scatter(2, places.reshape(n, c, -1), x.reshape(n, c, -1)).reshape(n, c, *size)


def signs(*shape: int) -> Array:
    """1 and -1."""
    return np.sign(normal(*shape))


def shares(*shape: int) -> Array:
    """Numbers between 0 and 1."""
    return normal(*shape) / 4.1 + 0.5


LINES, IMAGES, VOLUMES = normal(2, 4, 7), normal(2, 4, 5, 6), normal(1, 2, 4, 5, 4)
WORDS, ROWS = normal(2, 5, 4), normal(3, 5)
OTHERS = ROWS[::-1, ::-1].copy()
LENGTHS = np.array([3, 5])
LABELS = np.array([[2, 0, -1, 1, 1], [4, -1, -1, -1, -1], [3, 1, 0, 2, 4]])
STATES = normal(2, 3), normal(2, 3)[::-1].copy()


def places(shape: tuple[int, ...], size: int) -> Array:
    """Different places below ``size`` for the elements of each plane."""
    n, c, count = shape[0], shape[1], int(np.prod(shape[2:]))
    rng = np.random.default_rng(count)
    found = [rng.permutation(size)[:count] for _ in range(n * c)]
    return np.stack(found).reshape(shape)


CTC = (
    normal(3, 6, 4),
    np.array([[1, 2, 2], [3, 3, 1], [2, 1, 0]]),
    np.array([6, 5, 4]),
    np.array([3, 3, 2]),
)


def transducer(x: Any, labels: Any, steps: Any, counts: Any) -> Any:
    """The loss of a transducer by its definition, place by place."""
    t, log_p, losses = torch(), x.log_softmax(-1), []
    for i in range(len(x)):
        ways: dict[tuple[int, int], Any] = {(0, 0): x.new_zeros(())}
        for u in range(counts[i] + 1):
            for s in range(steps[i]):
                parts = [ways[s - 1, u] + log_p[i, s - 1, u, 0]] if s else []
                parts += [ways[s, u - 1] + log_p[i, s, u - 1, labels[i, u - 1]]] if u else []
                if parts:
                    ways[s, u] = t.logsumexp(t.stack(parts), 0)
        end = steps[i].item() - 1, counts[i].item()
        losses.append(-ways[end] - log_p[i, end[0], end[1], 0])
    return t.stack(losses).mean()


def deformed(w: dict[str, Any], x: Any, offset: Any, mask: Any) -> Any:
    """Windows read by ``grid_sample`` at their places, one after the other; a window of 3 x 2."""
    t, (height, width) = torch(), x.shape[2:]
    rows, columns = offset.shape[2:]
    parts = []
    for place in range(6):
        i, j = divmod(place, 2)
        down = t.arange(rows).reshape(-1, 1) + i - 1 + offset[:, 2 * place]
        across = t.arange(columns).reshape(1, -1) + j - 1 + offset[:, 2 * place + 1]
        grid = t.stack([(across * 2 + 1) / width - 1, (down * 2 + 1) / height - 1], -1)
        read = t.nn.functional.grid_sample(x, grid, align_corners=False)
        parts.append(
            t.einsum("nchw,oc->nohw", read * mask[:, place : place + 1], w["weight"][:, :, i, j])
        )
    return sum(parts) + w["bias"].reshape(1, -1, 1, 1)


def row(config: Any, inputs: tuple[Array, ...], twin: Any, training: bool = False) -> Case:
    """A row without a formula."""
    return Case(config, inputs, None, twin, training)


# fmt: off
CASES: dict[str, Case] = {
    "adaptive-avg-pool-1d": row(nn.AdaptiveAvgPool1dConfig(3), (LINES,), lambda f, w, x: f.adaptive_avg_pool1d(x, 3)),
    "adaptive-avg-pool-2d": row(nn.AdaptiveAvgPool2dConfig((2, 4)), (IMAGES,), lambda f, w, x: f.adaptive_avg_pool2d(x, (2, 4))),
    "adaptive-avg-pool-3d": row(nn.AdaptiveAvgPool3dConfig(2), (VOLUMES,), lambda f, w, x: f.adaptive_avg_pool3d(x, 2)),
    "adaptive-max-pool-1d": row(nn.AdaptiveMaxPool1dConfig(3), (LINES,), lambda f, w, x: f.adaptive_max_pool1d(x, 3)),
    "adaptive-max-pool-2d": row(nn.AdaptiveMaxPool2dConfig((2, 4)), (IMAGES,), lambda f, w, x: f.adaptive_max_pool2d(x, (2, 4))),
    "adaptive-max-pool-3d": row(nn.AdaptiveMaxPool3dConfig(2), (VOLUMES,), lambda f, w, x: f.adaptive_max_pool3d(x, 2)),
    "alpha-dropout": row(nn.AlphaDropoutConfig(0.3), (ROWS,), lambda f, w, x: f.alpha_dropout(x, 0.3, training=False) * 1),
    "avg-pool-1d": row(nn.AvgPool1dConfig(3, padding=1, count_include_pad=False), (LINES,), lambda f, w, x: f.avg_pool1d(x, 3, 3, 1, count_include_pad=False)),
    "avg-pool-3d": row(nn.AvgPool3dConfig((2, 3, 2), stride=1), (VOLUMES,), lambda f, w, x: f.avg_pool3d(x, (2, 3, 2), 1)),
    "bilinear": row(nn.BilinearConfig(4, 5, 3), (normal(3, 4), ROWS), lambda f, w, x, y: f.bilinear(x, y, *inside(w))),
    "binary-cross-entropy": row(nn.BinaryCrossEntropyLossConfig(), (ROWS, shares(3, 5)), lambda f, w, x, y: f.binary_cross_entropy_with_logits(x, y)),
    "binary-cross-entropy-probabilities": row(nn.BinaryCrossEntropyLossConfig(from_logits=False, reduction="sum"), (shares(3, 5), shares(3, 5)[::-1].copy()), lambda f, w, x, y: f.binary_cross_entropy(x, y, reduction="sum")),
    "binary-cross-entropy-weighted": row(nn.BinaryCrossEntropyLossConfig(weights=(1.0, 2.0, 0.5, 1.5, 3.0), smoothing=0.2), (ROWS, shares(3, 5)), lambda f, w, x, y: f.binary_cross_entropy_with_logits(x, y * 0.8 + 0.1, pos_weight=x.new_tensor([1.0, 2.0, 0.5, 1.5, 3.0]))),
    "channel-dropout": row(nn.ChannelDropoutConfig(0.3), (IMAGES,), lambda f, w, x: f.dropout2d(x, 0.3, training=False)),
    "channel-shuffle": row(nn.ChannelShuffleConfig(2), (IMAGES,), lambda f, w, x: f.channel_shuffle(x, 2)),
    "conv-1d": row(nn.Conv1dConfig(4, 6, 3, stride=2, groups=2, padding=1), (LINES,), lambda f, w, x: f.conv1d(x, *inside(w), stride=2, padding=1, groups=2)),
    "conv-1d-same": row(nn.Conv1dConfig(4, 2, 3, dilation=2, padding="same", bias=False), (LINES,), lambda f, w, x: f.conv1d(x, w["weight"], dilation=2, padding="same")),
    "conv-1d-sides": row(nn.Conv1dConfig(4, 2, 3, padding=(2, 0)), (LINES,), lambda f, w, x: f.conv1d(f.pad(x, (2, 0)), *inside(w))),
    "conv-3d": row(nn.Conv3dConfig(2, 3, (2, 3, 2), padding=(1, 0, 1)), (VOLUMES,), lambda f, w, x: f.conv3d(x, *inside(w), padding=(1, 0, 1))),
    "conv-transpose-1d": row(nn.ConvTranspose1dConfig(4, 6, 3, stride=2, padding=1, padding_out=1, groups=2), (LINES,), lambda f, w, x: f.conv_transpose1d(x, *inside(w), 2, 1, 1, 2)),
    "conv-transpose-2d": row(nn.ConvTranspose2dConfig(4, 3, (3, 2), stride=2, dilation=(1, 2)), (IMAGES,), lambda f, w, x: f.conv_transpose2d(x, *inside(w), 2, 0, 0, 1, (1, 2))),
    "conv-transpose-3d": row(nn.ConvTranspose3dConfig(2, 3, 2, bias=False), (VOLUMES,), lambda f, w, x: f.conv_transpose3d(x, w["weight"])),
    "cosine-embedding": row(nn.CosineEmbeddingLossConfig(margin=0.2), (ROWS, OTHERS, signs(3)), lambda f, w, x, y, t: f.cosine_embedding_loss(x, y, t, 0.2)),
    "cosine-similarity": row(nn.CosineSimilarityConfig(), (ROWS, OTHERS), lambda f, w, x, y: f.cosine_similarity(x, y)),
    "ctc": row(nn.CtcLossConfig(), CTC, lambda f, w, x, n, i, t: f.ctc_loss(x.transpose(0, 1).log_softmax(-1), n, i, t)),
    "ctc-sum": row(nn.CtcLossConfig(blank=3, zero_infinity=True, reduction="sum"), (CTC[0], CTC[1] % 3, CTC[2], CTC[3]), lambda f, w, x, n, i, t: f.ctc_loss(x.transpose(0, 1).log_softmax(-1), n, i, t, 3, "sum", True)),
    "deform-conv": row(nn.DeformConv2dConfig(4, 3, (3, 2), padding=1), (normal(1, 4, 4, 3), normal(1, 12, 4, 4) / 2.5 + 0.013, shares(1, 6, 4, 4)), lambda f, w, x, o, m: deformed(w, x, o, m)),
    "embedding-bag": row(nn.EmbeddingBagConfig(5, 2), (classes(5, 2, 3),), lambda f, w, n: f.embedding_bag(n, w["weight"])),
    "embedding-bag-max": row(nn.EmbeddingBagConfig(5, 2, "max"), (classes(5, 2, 3),), lambda f, w, n: f.embedding_bag(n, w["weight"], mode="max")),
    "embedding-bag-shares": row(nn.EmbeddingBagConfig(5, 2, "sum"), (classes(5, 2, 3), normal(2, 3)), lambda f, w, n, s: f.embedding_bag(n, w["weight"], mode="sum", per_sample_weights=s)),
    "feature-alpha-dropout": row(nn.FeatureAlphaDropoutConfig(0.3), (IMAGES,), lambda f, w, x: f.feature_alpha_dropout(x, 0.3, training=False) * 1),
    "flatten": row(nn.FlattenConfig(), (IMAGES,), lambda f, w, x: x.flatten(1)),
    "flatten-middle": row(nn.FlattenConfig(1, 2), (IMAGES,), lambda f, w, x: x.flatten(1, 2)),
    "fold": row(nn.FoldConfig((3, 4), (2, 3), padding=(1, 0)), (normal(1, 6, 8),), lambda f, w, x: f.fold(x, (3, 4), (2, 3), padding=(1, 0))),
    "gaussian-nll": row(nn.GaussianNllLossConfig(full=True), (ROWS, OTHERS, shares(3, 5)), lambda f, w, x, y, v: f.gaussian_nll_loss(x, y, v, full=True)),
    "gaussian-noise": row(nn.GaussianNoiseConfig(0.3), (ROWS,), lambda f, w, x: x * 1),
    "glu": row(nn.GluConfig(1), (LINES,), lambda f, w, x: f.glu(x, 1)),
    "group-norm": row(nn.GroupNormConfig(2, 4), (IMAGES,), lambda f, w, x: f.group_norm(x, 2, *inside(w))),
    "gru": row(nn.GruConfig(4, 3), (WORDS,), lambda f, w, x: recurrent(w, "GRU", x)),
    "gru-both-ways": row(nn.GruConfig(4, 3, 2, bidirectional=True, bias=False), (WORDS,), lambda f, w, x: recurrent(w, "GRU", x, num_layers=2, bidirectional=True, bias=False)),
    "gru-cell": row(nn.GruCellConfig(4, 3), (normal(2, 4), STATES[0]), lambda f, w, x, h: cell(w, "GRU", x, h)),
    "gru-cell-no-bias": row(nn.GruCellConfig(4, 3, bias=False), (normal(2, 4),), lambda f, w, x: cell(w, "GRU", x, bias=False)),
    "hinge-embedding": row(nn.HingeEmbeddingLossConfig(), (ROWS, signs(3, 5)), lambda f, w, x, t: f.hinge_embedding_loss(x, t)),
    "huber": row(nn.HuberLossConfig(0.7), (ROWS, OTHERS), lambda f, w, x, y: f.huber_loss(x, y, delta=0.7)),
    "identity": row(nn.IdentityConfig(), (ROWS,), lambda f, w, x: x * 1),
    "instance-norm": row(nn.InstanceNormConfig(4), (LINES,), lambda f, w, x: f.instance_norm(x)),
    "instance-norm-affine": row(nn.InstanceNormConfig(4, 1e-2, affine=True), (IMAGES,), lambda f, w, x: f.instance_norm(x, None, None, *inside(w), eps=1e-2)),
    "interpolate": row(nn.InterpolateConfig((5, 9)), (IMAGES,), lambda f, w, x: f.interpolate(x, (5, 9))),
    "interpolate-cubic": row(nn.InterpolateConfig(7, mode="cubic", align_corners=True), (IMAGES,), lambda f, w, x: f.interpolate(x, (7, 7), mode="bicubic", align_corners=True)),
    "interpolate-linear": row(nn.InterpolateConfig(scale_factor=1.5, mode="linear"), (LINES,), lambda f, w, x: f.interpolate(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True)),
    "kl-div": row(nn.KlDivLossConfig(reduction="batch_mean"), (ROWS, shares(3, 5)), lambda f, w, x, y: f.kl_div(x, y, reduction="batchmean")),
    "kl-div-log": row(nn.KlDivLossConfig(log_target=True), (ROWS, OTHERS), lambda f, w, x, y: (y.exp() * (y - x)).mean()),
    "l1": row(nn.L1LossConfig(), (ROWS, OTHERS), lambda f, w, x, y: f.l1_loss(x, y)),
    "linear-cross-entropy": row(nn.LinearCrossEntropyLossConfig(rows=2), (normal(5, 4), normal(4, 3), classes(3, 5)), lambda f, w, x, v, n: f.cross_entropy(x @ v, n)),
    "linear-cross-entropy-weighted": row(nn.LinearCrossEntropyLossConfig((1.0, 2.0, 0.5), 0.1, (1,), rows=3), (normal(2, 4, 4), normal(4, 3), classes(3, 2, 4)), lambda f, w, x, v, n: f.cross_entropy((x @ v).flatten(0, 1), n.flatten(), weight=x.new_tensor([1.0, 2.0, 0.5]), label_smoothing=0.1, ignore_index=1)),
    "local-response-norm": row(nn.LocalResponseNormConfig(3, 0.5, 0.7, 2.0), (IMAGES,), lambda f, w, x: f.local_response_norm(x, 3, 0.5, 0.7, 2.0)),
    "local-response-norm-even": row(nn.LocalResponseNormConfig(2, 1.0), (LINES,), lambda f, w, x: f.local_response_norm(x, 2, 1.0)),
    "log-softmax": row(nn.LogSoftmaxConfig(), (ROWS,), lambda f, w, x: f.log_softmax(x, -1)),
    "lp": row(nn.LpLossConfig(3.0, "sum"), (ROWS, OTHERS), lambda f, w, x, y: ((x - y).abs() ** 3).sum()),
    "lp-pool-1d": row(nn.LpPool1dConfig(3.0, 2, 1), (LINES**2,), lambda f, w, x: f.lp_pool1d(x, 3.0, 2, 1)),
    "lp-pool-2d": row(nn.LpPool2dConfig(2.0, (2, 3), stride=1), (IMAGES,), lambda f, w, x: f.lp_pool2d(x, 2.0, (2, 3), 1)),
    "lp-pool-3d": row(nn.LpPool3dConfig(2.0, 2), (VOLUMES,), lambda f, w, x: f.lp_pool3d(x, 2.0, 2)),
    "lstm": row(nn.LstmConfig(4, 3), (WORDS,), lambda f, w, x: recurrent(w, "LSTM", x)),
    "lstm-both-ways": row(nn.LstmConfig(4, 3, 2, bidirectional=True), (WORDS,), lambda f, w, x: recurrent(w, "LSTM", x, num_layers=2, bidirectional=True)),
    "lstm-cell": row(nn.LstmCellConfig(4, 3), (normal(2, 4),), lambda f, w, x: cell(w, "LSTM", x)),
    "margin-ranking": row(nn.MarginRankingLossConfig(0.3), (ROWS, OTHERS, signs(3, 5)), lambda f, w, x, y, t: f.margin_ranking_loss(x, y, t, 0.3)),
    "max-pool-1d": row(nn.MaxPool1dConfig(3, stride=2, padding=1), (LINES,), lambda f, w, x: f.max_pool1d(x, 3, 2, 1)),
    "max-pool-1d-dilated": row(nn.MaxPool1dConfig(2, dilation=2, stride=1), (LINES,), lambda f, w, x: f.max_pool1d(x, 2, 1, 0, 2)),
    "max-pool-3d": row(nn.MaxPool3dConfig((2, 3, 2)), (VOLUMES,), lambda f, w, x: f.max_pool3d(x, (2, 3, 2))),
    "max-unpool-1d": row(nn.MaxUnpool1dConfig(2), (LINES, places((2, 4, 7), 14)), lambda f, w, x, n: unpooled(f, x, n, (14,))),
    "max-unpool-2d": row(nn.MaxUnpool2dConfig(3, (2, 1), (1, 0)), (IMAGES, places((2, 4, 5, 6), 72)), lambda f, w, x, n: f.max_unpool2d(x, n, 3, (2, 1), (1, 0))),
    "max-unpool-3d": row(nn.MaxUnpool3dConfig(2, 1), (VOLUMES, places((1, 2, 4, 5, 4), 150)), lambda f, w, x, n: f.max_unpool3d(x, n, 2, 1)),
    "multi-label-margin": row(nn.MultiLabelMarginLossConfig(), (ROWS, LABELS), lambda f, w, x, n: f.multilabel_margin_loss(x, n)),
    "multi-label-margin-none": row(nn.MultiLabelMarginLossConfig("none"), (OTHERS, LABELS[::-1].copy()), lambda f, w, x, n: f.multilabel_margin_loss(x, n, reduction="none")),
    "multi-margin": row(nn.MultiMarginLossConfig(), (ROWS, classes(5, 3)), lambda f, w, x, n: f.multi_margin_loss(x, n)),
    "multi-margin-weighted": row(nn.MultiMarginLossConfig(2, 0.5, (1.0, 2.0, 0.5, 1.5, 3.0), "sum"), (ROWS, classes(5, 3)), lambda f, w, x, n: f.multi_margin_loss(x, n, 2, 0.5, x.new_tensor([1.0, 2.0, 0.5, 1.5, 3.0]), reduction="sum")),
    "pad": row(nn.PadConfig(((1, 2), (0, 1)), value=0.5), (IMAGES,), lambda f, w, x: f.pad(x, (0, 1, 1, 2), value=0.5)),
    "pad-circular": row(nn.PadConfig(((1, 2),), "circular"), (LINES,), lambda f, w, x: f.pad(x, (1, 2), "circular")),
    "pad-edge": row(nn.PadConfig(((1, 0), (3, 1)), "edge"), (IMAGES,), lambda f, w, x: f.pad(x, (3, 1, 1, 0), "replicate")),
    "pad-reflect": row(nn.PadConfig(((1, 0), (3, 1)), "reflect"), (IMAGES,), lambda f, w, x: f.pad(x, (3, 1, 1, 0), "reflect")),
    "pairwise-distance": row(nn.PairwiseDistanceConfig(), (ROWS, OTHERS), lambda f, w, x, y: f.pairwise_distance(x, y)),
    "pairwise-distance-cubic": row(nn.PairwiseDistanceConfig(3.0, keepdims=True), (ROWS, OTHERS), lambda f, w, x, y: f.pairwise_distance(x, y, 3.0, keepdim=True)),
    "pixel-shuffle": row(nn.PixelShuffleConfig(2), (IMAGES,), lambda f, w, x: f.pixel_shuffle(x, 2)),
    "pixel-unshuffle": row(nn.PixelUnshuffleConfig(3), (normal(1, 2, 3, 6),), lambda f, w, x: f.pixel_unshuffle(x, 3)),
    "poisson-nll": row(nn.PoissonNllLossConfig(full=True), (ROWS, shares(3, 5) * 4), lambda f, w, x, y: f.poisson_nll_loss(x, y, full=True)),
    "poisson-nll-rates": row(nn.PoissonNllLossConfig(log_input=False), (shares(3, 5), OTHERS), lambda f, w, x, y: f.poisson_nll_loss(x, y, log_input=False)),
    "prelu": row(nn.PReluConfig(4), (IMAGES,), lambda f, w, x: f.prelu(x, w["weight"])),
    "rnn": row(nn.RnnConfig(4, 3), (WORDS,), lambda f, w, x: recurrent(w, "RNN", x)),
    "rnn-cell": row(nn.RnnCellConfig(4, 3, activation="relu"), (normal(2, 4), STATES[1]), lambda f, w, x, h: cell(w, "RNN", x, h, nonlinearity="relu")),
    "rnn-relu": row(nn.RnnConfig(4, 3, bidirectional=True, activation="relu"), (WORDS,), lambda f, w, x: recurrent(w, "RNN", x, bidirectional=True, nonlinearity="relu")),
    "rnnt": row(nn.RnntLossConfig(), (normal(2, 4, 3, 3), classes(2, 2, 2) + 1, np.array([4, 3]), np.array([2, 1])), lambda f, w, x, n, i, t: transducer(x, n, i, t)),
    "rrelu": row(nn.RReluConfig(), (ROWS,), lambda f, w, x: f.rrelu(x, training=False)),
    "smooth-l1": row(nn.SmoothL1LossConfig(0.7), (ROWS, OTHERS), lambda f, w, x, y: f.smooth_l1_loss(x, y, beta=0.7)),
    "soft-margin": row(nn.SoftMarginLossConfig(), (ROWS, signs(3, 5)), lambda f, w, x, t: (1 + (-t * x).exp()).log().mean()),
    "softmax": row(nn.SoftmaxConfig(1), (IMAGES,), lambda f, w, x: f.softmax(x, 1)),
    "softmin": row(nn.SoftminConfig(), (ROWS,), lambda f, w, x: f.softmin(x, -1)),
    "swiglu": row(nn.SwiGluConfig(5, 3), (ROWS,), lambda f, w, x: f.silu(x @ w["gate.weight"]) * (x @ w["value.weight"])),
    "triplet-margin": row(nn.TripletMarginLossConfig(), (ROWS, OTHERS, normal(3, 5) ** 2), lambda f, w, a, p, n: f.triplet_margin_loss(a, p, n)),
    "triplet-margin-swapped": row(nn.TripletMarginLossConfig(2.0, swap=True), (ROWS, OTHERS, normal(3, 5) ** 2), lambda f, w, a, p, n: f.triplet_margin_loss(a, p, n, 2.0, swap=True)),
    "unflatten": row(nn.UnflattenConfig(1, (2, -1)), (IMAGES,), lambda f, w, x: x.unflatten(1, (2, -1))),
    "unfold": row(nn.UnfoldConfig((2, 3), stride=(1, 2), padding=1), (IMAGES,), lambda f, w, x: f.unfold(x, (2, 3), 1, 1, (1, 2))),
}
# fmt: on
