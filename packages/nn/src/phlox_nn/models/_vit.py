"""The vision transformer."""

from __future__ import annotations

from phlox_tensor import Backend, Float, ShapeError, Tensor, attention, concat

from .. import initializers as init
from ..layers.conv import Conv2d
from ..layers.linear import Linear, LinearConfig
from ..layers.norm import LayerNorm, LayerNormConfig
from ..module.module import Module
from ..param.param import Param
from ._parts import SMALL, ModelConfig, heads_of_one_map, require_heads, without_heads


class ViTConfig(ModelConfig):
    """Settings of ``ViT``; the defaults are those of ViT-B/16.

    Attributes:
        image: height and width of the images.
        patch: height and width of a patch.
        channels_in: channels of the images.
        d_model: size of the vector of a patch.
        n_layers: number of blocks.
        n_heads: heads of attention.
        d_ff: size between the linear maps.
        classes: number of classes.
    """

    image: int = 224
    patch: int = 16
    channels_in: int = 3
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int = 3072
    classes: int = 1000

    def validate(self) -> None:
        """Raise ConfigError unless patches and heads divide what they must."""
        self.require("patch", self.patch > 0 and not self.image % self.patch, "a divisor of image")
        require_heads(self)

    def init(self, device: Backend | str | None = None) -> ViT:
        """Return the network with lazy parameters."""
        d, places = self.d_model, (self.image // self.patch) ** 2 + 1
        project = Conv2d(self.channels_in, d, self.patch, self.patch, device=device)
        return ViT(
            cls_token=SMALL.param((1, 1, d), device),
            pos_embed=SMALL.param((1, places, d), device),
            patch_embed=Patches(project),
            blocks=tuple(self._block(device) for _ in range(self.n_layers)),
            norm=LayerNormConfig(d, 1e-6).init(device),
            head=LinearConfig(d, self.classes, initializer=SMALL).init(device),
        )

    def _block(self, device: Backend | str | None) -> Block:
        d = self.d_model

        def linear(d_input: int, d_output: int) -> Linear:
            return LinearConfig(d_input, d_output, initializer=init.XavierUniform()).init(device)

        return Block(
            norm1=LayerNormConfig(d, 1e-6).init(device),
            attn=Attention(linear(d, 3 * d), linear(d, d), self.n_heads),
            norm2=LayerNormConfig(d, 1e-6).init(device),
            mlp=Mlp(linear(d, self.d_ff), linear(self.d_ff, d)),
        )


class Patches(Module):
    """A vector for each patch of an image."""

    proj: Conv2d

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, H, W) to (N, patches, d_model)."""
        return self.proj(images).flatten(2).mT


class Attention(Module):
    """Heads that look at all patches, from one linear map."""

    qkv: Linear
    proj: Linear
    heads: int

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, places, d_model) to the same shape."""
        query, key, value = heads_of_one_map(self.qkv(x), self.heads)
        return self.proj(without_heads(attention(query, key, value)))


class Mlp(Module):
    """Two linear maps with gelu between."""

    fc1: Linear
    fc2: Linear

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_model) to the same shape."""
        return self.fc2(self.fc1(x).gelu())


class Block(Module):
    """Attention and maps, each after a norm and added to its input."""

    norm1: LayerNorm
    attn: Attention
    norm2: LayerNorm
    mlp: Mlp

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, places, d_model) to the same shape."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(Module):
    """A transformer over patches of images. Dosovitskiy et al., 2020.

    Parameters have the names of timm's ``vit_base_patch16_224``.

    Example:
        >>> from phlox_nn import models
        >>> models.ViTConfig().init().num_params()
        86567656
    """

    cls_token: Param
    pos_embed: Param
    patch_embed: Patches
    blocks: tuple[Block, ...]
    norm: LayerNorm
    head: Linear

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, image, image) to logits (N, classes).

        Raises:
            ShapeError: for images of another size than the positions are for.
        """
        x = self.patch_embed(images)
        places = self.pos_embed.shape[1]
        if x.shape[1] + 1 != places:
            raise ShapeError(
                "ViT", "images of another size", got=f"{x.shape[1]} patches", expected=places - 1
            )
        first = self.cls_token.value.broadcast_to((x.shape[0], 1, x.shape[2]))
        x = concat((first, x), axis=1) + self.pos_embed.value
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
