"""The networks that the training benchmarks step."""

from __future__ import annotations

from typing import Any

import phlox as px
from phlox import nn

Device = px.Backend


class Mlp(nn.Module):
    """Two linear layers with relu between."""

    first: nn.Linear
    second: nn.Linear

    def forward(self, x: px.Tensor) -> px.Tensor:
        """Map (N, in) to (N, out)."""
        return self.second(self.first(x).relu())


def mlp(d_input: int, d_hidden: int, d_output: int, device: Device) -> Mlp:
    """Return an MLP of one hidden layer."""
    return Mlp(
        first=nn.Linear(d_input, d_hidden, device=device),
        second=nn.Linear(d_hidden, d_output, device=device),
    )


class Cnn(nn.Module):
    """Two convolutions, a pool, two linear layers: images (N, 1, 28, 28) to logits (N, 10)."""

    conv1: nn.Conv2d
    norm: nn.BatchNorm
    conv2: nn.Conv2d
    dropout: nn.Dropout
    hidden: nn.Linear
    head: nn.Linear

    def forward(self, images: px.Tensor) -> px.Tensor:
        """Return the logits."""
        x = self.conv2(self.norm(self.conv1(images)).relu()).relu()
        x = self.dropout(px.max_pool2d(x, 2).flatten(1))
        return self.head(self.hidden(x).relu())


def cnn(device: Device) -> Cnn:
    """Return the network of the usual digits example."""
    return Cnn(
        conv1=nn.Conv2d(1, 32, 3, device=device),
        norm=nn.BatchNorm(32, device=device),
        conv2=nn.Conv2d(32, 64, 3, device=device),
        dropout=nn.Dropout(0.5, device=device),
        hidden=nn.Linear(9216, 128, device=device),
        head=nn.Linear(128, 10, device=device),
    )


class Block(nn.Module):
    """Attention and a feed-forward part, each added and normalized. Vaswani et al., 2017."""

    heads: int
    project: nn.Linear
    out: nn.Linear
    norm1: nn.LayerNorm
    wide: nn.Linear
    narrow: nn.Linear
    norm2: nn.LayerNorm

    def forward(self, x: px.Tensor) -> px.Tensor:
        """Map (N, S, D) to (N, S, D)."""
        n, s, d = x.shape
        parts = self.project(x).reshape(n, s, 3, self.heads, d // self.heads)
        q, k, v = (parts[:, :, i].permute_dims((0, 2, 1, 3)) for i in range(3))
        mixed = px.attention(q, k, v).permute_dims((0, 2, 1, 3)).reshape(n, s, d)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.narrow(self.wide(x).relu()))


class Encoder(nn.Module):
    """Blocks in a row."""

    blocks: list[Block]

    def forward(self, x: px.Tensor) -> px.Tensor:
        """Map (N, S, D) to (N, S, D)."""
        for block in self.blocks:
            x = block(x)
        return x


def encoder(layers: int, d_model: int, heads: int, d_wide: int, device: Device) -> Encoder:
    """Return a transformer encoder without dropout."""

    def linear(d_input: int, d_output: int) -> Any:
        return nn.Linear(d_input, d_output, device=device)

    def norm() -> Any:
        return nn.LayerNorm(d_model, device=device)

    def block() -> Block:
        return Block(
            heads=heads,
            project=linear(d_model, 3 * d_model),
            out=linear(d_model, d_model),
            norm1=norm(),
            wide=linear(d_model, d_wide),
            narrow=linear(d_wide, d_model),
            norm2=norm(),
        )

    return Encoder(blocks=[block() for _ in range(layers)])
