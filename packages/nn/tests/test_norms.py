"""Settings of normalizations and tables as PyTorch has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import Backend, ShapeError, UnknownArgumentError

LOOSE: Any = nn


def test_without_a_momentum_the_statistics_are_the_mean_of_all_batches() -> None:
    norm = nn.BatchNorm(2, momentum=None).with_training(True)
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(4, 2, 3)).astype(np.float32) for _ in range(3)]
    for batch in batches:
        with nn.collect() as updates:
            norm(pt.asarray(batch))
        norm = updates.apply(norm)
    means = np.stack([b.mean((0, 2)) for b in batches]).mean(0)
    variances = np.stack([b.var((0, 2), ddof=1) for b in batches]).mean(0)
    assert norm.num_batches_tracked is not None
    assert norm.num_batches_tracked.value.item() == 3
    assert np.allclose(norm.running_mean.value.numpy(), means, rtol=1e-5, atol=1e-6)
    assert np.allclose(norm.running_var.value.numpy(), variances, rtol=1e-5, atol=1e-6)
    again = nn.BatchNorm(2, momentum=None).load_record(norm.into_record())
    assert again.num_batches_tracked is not None
    assert again.num_batches_tracked.value.item() == 3


def test_batches_are_counted_in_records_of_pytorch_where_they_count() -> None:
    norm = nn.BatchNorm(2, momentum=None)
    record: dict[str, Any] = {**norm.into_record(layout="pytorch")}
    record["num_batches_tracked"] = pt.asarray(7)
    loaded = norm.load_record(record, layout="pytorch")
    assert loaded.num_batches_tracked is not None
    assert loaded.num_batches_tracked.value.item() == 7
    plain: dict[str, Any] = {**nn.BatchNorm(2).into_record(), "num_batches_tracked": pt.asarray(7)}
    assert nn.BatchNorm(2).load_record(plain, layout="pytorch").num_batches_tracked is None


def test_without_tracking_there_is_no_state() -> None:
    norm = nn.BatchNorm(2, affine=False, track_running_stats=False).with_training(True)
    assert not norm.params()
    with nn.collect() as updates:
        y = norm(pt.asarray([[1.0, 2.0], [3.0, 6.0]]))
    assert not len(updates)
    assert np.allclose(y.numpy(), [[-1, -1], [1, 1]], rtol=1e-4, atol=1e-4)


def test_one_value_for_each_channel_is_refused() -> None:
    one = pt.ones((1, 2, 1))
    norm = nn.BatchNorm(2)
    assert norm(one).shape == (1, 2, 1)  # by the running statistics
    for layer in (
        norm.with_training(True),
        nn.BatchNorm(2, track_running_stats=False),
        nn.InstanceNorm(2),
    ):
        with pytest.raises(ShapeError, match=r"a single value for each channel has no variance"):
            layer(one)
    with pytest.raises(ShapeError, match="hint: a larger batch"):
        norm.with_training(True)(one)
    assert nn.GroupNorm(2, 2)(one).tolist() == [[[0.0], [0.0]]]  # as PyTorch for two examples


@pytest.mark.parametrize("layer", [nn.LayerNorm((2, 3)), nn.RmsNorm((2, 3))])
def test_rows_over_several_axes_are_of_their_sizes(layer: nn.Module) -> None:
    assert layer.params()["weight"].shape == (2, 3)
    for wrong in ((4, 3), (3, 2), (3,)):
        with pytest.raises(ShapeError, match=r"expected \(…, 2, 3\)"):
            layer(pt.ones(wrong))
    for make in (nn.LayerNorm, nn.RmsNorm):
        with pytest.raises(nn.ConfigError, match="d_model makes no sense"):
            make(())
    assert not nn.LayerNorm(3, affine=False).params()
    assert not nn.RmsNorm(3, affine=False).params()
    assert list(nn.InstanceNorm(3, affine=True, bias=False).params()) == ["weight"]


@pytest.mark.parametrize("place", [1, -3])
def test_what_fills_sequences_up_starts_as_zeros(place: int, recording: Backend) -> None:
    table = nn.Embedding(4, 2, padding_idx=place, device=recording)
    assert not table.weight.value.numpy()[1].any()
    assert table.weight.value.numpy()[[0, 2, 3]].all()


def test_a_filling_row_is_one_of_the_rows() -> None:
    for wrong in (4, -5):
        with pytest.raises(nn.ConfigError, match=r"padding_idx.*expected a row: -4 <= padding_idx"):
            nn.Embedding(4, 2, padding_idx=wrong)


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: LOOSE.LayerNorm(3, elementwise_affine=False), r"affine=\.\.\."),
        (lambda: LOOSE.Embedding(3, 2, max_norm=1.0), r"model\.map"),
        (lambda: LOOSE.Embedding(3, 2, sparse=True), "leave it out"),
        (lambda: LOOSE.EmbeddingBag(3, 2, padding_idx=0), "shares of 0"),
        (lambda: LOOSE.InstanceNorm(3, track_running_stats=True), r"nn\.BatchNorm\(channels\)"),
        (lambda: LOOSE.InstanceNorm(num_features=3), r"num_channels=\.\.\."),
        (lambda: LOOSE.Lstm(3, 2, proj_size=2), r"nn\.Linear\(d_hidden, size\)"),
        (lambda: LOOSE.L1Loss(size_average=False), "reduction="),
    ],
)
def test_other_settings_of_pytorch_say_what_to_do(make: Any, hint: str) -> None:
    with pytest.raises(UnknownArgumentError, match=rf"unknown argument: got .*\nhint: .*{hint}"):
        make()
