# ruff: noqa: E501 - one row of the table stands on one line
"""Layers at kinks, ties, zeros and where they saturate: values and slopes are PyTorch's, in edges.json."""

from __future__ import annotations

from typing import Any

import numpy as np

from phlox import nn
from tests.layers.case import Array, Case
from tests.layers.cases import ACTIVATIONS

POINTS = np.array([-800, -30, -6, -3, -1, -0.5, 0, 0.5, 1, 3, 6, 30, 800], float)
NEAR, FAR = np.array([[0, 1, 2, -1, 0.5]]), np.array([[0, 2, 2, 0, 0.5]], float)
SIGNS = np.array([[1, -1, 1, -1, 1]], float)
TIES = np.array([[[[1, 1, 0, 2], [1, 0, 2, 2], [0, 0, -1, -1], [0, 0, -1, -1]]]], float)
EQUAL = np.ones((2, 4, 3, 3))
ZEROS = np.zeros((2, 4, 3, 3))
RISES = np.array([[1, 0, 2, 1, -3]], float)


def row(config: Any, inputs: tuple[Array, ...], twin: Any) -> Case:
    """A row without a formula."""
    return Case(config, inputs, None, twin)


# fmt: off
EDGES: dict[str, Case] = {
    **{f"activation-{name}": row(nn.ActivationConfig.from_dict({"name": name}), (POINTS,), ACTIVATIONS[name][1]) for name in ACTIVATIONS if name != "hard_sigmoid"},
    "activation-hard-sigmoid": row(nn.ActivationConfig("hard_sigmoid"), (POINTS,), lambda f, w, x: f.hardsigmoid(x)),
    "activation-hard-shrink": row(nn.ActivationConfig("hard_shrink"), (POINTS,), lambda f, w, x: f.hardshrink(x)),
    "binary-cross-entropy": row(nn.BinaryCrossEntropyLossConfig(reduction="none"), (np.array([[-800.0, -30, 0, 30, 800]]), np.array([[0, 1, 0.5, 1, 0]])), lambda f, w, x, y: f.binary_cross_entropy_with_logits(x, y, reduction="none")),
    "cosine-similarity-of-zeros": row(nn.CosineSimilarityConfig(), (NEAR * 0, FAR), lambda f, w, x, y: f.cosine_similarity(x, y)),
    "cross-entropy-sure": row(nn.CrossEntropyLossConfig(), (np.array([[800.0, -800, 0]]), np.array([1])), lambda f, w, x, n: f.cross_entropy(x, n)),
    "group-norm-equal": row(nn.GroupNormConfig(2, 4), (EQUAL,), lambda f, w, x: f.group_norm(x, 2, w["weight"], w["bias"])),
    "hinge-embedding": row(nn.HingeEmbeddingLossConfig(1.0, "none"), (np.array([[0, 1, 2, 1, 0.5]]), SIGNS), lambda f, w, x, t: f.hinge_embedding_loss(x, t, reduction="none")),
    "huber": row(nn.HuberLossConfig(1.0, "none"), (NEAR, FAR), lambda f, w, x, y: f.huber_loss(x, y, reduction="none")),
    "instance-norm-equal": row(nn.InstanceNormConfig(4), (EQUAL,), lambda f, w, x: f.instance_norm(x)),
    "l1": row(nn.L1LossConfig("none"), (NEAR, FAR), lambda f, w, x, y: f.l1_loss(x, y, reduction="none")),
    "layer-norm-equal": row(nn.LayerNormConfig(3), (EQUAL,), lambda f, w, x: f.layer_norm(x, (3,), w["weight"], w["bias"])),
    "local-response-norm-zeros": row(nn.LocalResponseNormConfig(2), (ZEROS,), lambda f, w, x: f.local_response_norm(x, 2)),
    "lp-pool-zeros": row(nn.LpPool2dConfig(2.0, 2), (TIES,), lambda f, w, x: f.lp_pool2d(x, 2.0, 2)),
    "margin-ranking": row(nn.MarginRankingLossConfig(1.0, "none"), (NEAR, FAR, SIGNS), lambda f, w, x, y, t: f.margin_ranking_loss(x, y, t, 1.0, reduction="none")),
    "max-pool-1d-ties": row(nn.MaxPool1dConfig(2), (TIES[0],), lambda f, w, x: f.max_pool1d(x, 2)),
    "max-pool-2d-ties": row(nn.MaxPool2dConfig(3, 1, 1), (TIES,), lambda f, w, x: f.max_pool2d(x, 3, 1, 1)),
    "max-pool-3d-ties": row(nn.MaxPool3dConfig(2), (np.stack([TIES, TIES], 2),), lambda f, w, x: f.max_pool3d(x, 2)),
    "multi-label-margin": row(nn.MultiLabelMarginLossConfig("none"), (RISES, np.array([[0, 3, -1, 0, 0]])), lambda f, w, x, n: f.multilabel_margin_loss(x, n, reduction="none")),
    "multi-margin": row(nn.MultiMarginLossConfig(reduction="none"), (RISES, np.array([0])), lambda f, w, x, n: f.multi_margin_loss(x, n, reduction="none")),
    "multi-margin-squared": row(nn.MultiMarginLossConfig(2, reduction="none"), (RISES, np.array([0])), lambda f, w, x, n: f.multi_margin_loss(x, n, 2, reduction="none")),
    "pairwise-distance-zero": row(nn.PairwiseDistanceConfig(epsilon=0.0), (NEAR, NEAR.copy()), lambda f, w, x, y: f.pairwise_distance(x, y, eps=0.0)),
    "pairwise-distance-zero-cubic": row(nn.PairwiseDistanceConfig(3.0, epsilon=0.0), (NEAR, NEAR.copy()), lambda f, w, x, y: f.pairwise_distance(x, y, 3.0, eps=0.0)),
    "prelu": row(nn.PReluConfig(), (POINTS[None],), lambda f, w, x: f.prelu(x, w["weight"])),
    "rms-norm-zeros": row(nn.RmsNormConfig(3), (ZEROS,), lambda f, w, x: f.rms_norm(x, (3,), w["weight"], 1e-5)),
    "rrelu": row(nn.RReluConfig(), (POINTS[None],), lambda f, w, x: f.rrelu(x, training=False)),
    "smooth-l1": row(nn.SmoothL1LossConfig(1.0, "none"), (NEAR, FAR), lambda f, w, x, y: f.smooth_l1_loss(x, y, reduction="none")),
    "soft-margin-far": row(nn.SoftMarginLossConfig("none"), (NEAR * 600, SIGNS), lambda f, w, x, t: -f.logsigmoid(x * t)),
    "triplet-margin-equal": row(nn.TripletMarginLossConfig(reduction="none"), (NEAR, NEAR.copy(), FAR), lambda f, w, a, p, n: f.triplet_margin_loss(a, p, n, reduction="none")),
    "triplet-margin-zero": row(nn.TripletMarginLossConfig(epsilon=0.0, reduction="none"), (NEAR, NEAR.copy(), FAR), lambda f, w, a, p, n: f.triplet_margin_loss(a, p, n, eps=0.0, reduction="none")),
}
# fmt: on
