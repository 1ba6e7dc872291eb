"""CLIP: images and texts as vectors of one space."""

from __future__ import annotations

from math import log, sqrt
from typing import Literal

from phlox_tensor import Backend, Float, Int, ShapeError, Tensor, concat, full, linalg, one_hot

from .. import initializers as init
from ..layers.conv import Conv2d, Conv2dConfig
from ..layers.embedding import Embedding
from ..layers.linear import Linear, LinearConfig
from ..layers.norm import LayerNorm, LayerNormConfig
from ..module.module import Module
from ..param.param import Param
from ._parts import SMALL, ModelConfig, ProjectedAttention, require_heads, small_linear

_Activation = Literal["quick_gelu", "gelu"]


class ClipConfig(ModelConfig):
    """Settings of ``Clip``; the defaults are those of ViT-B/32.

    Attributes:
        words: number of tokens.
        positions: the longest text.
        d_model: size of a vector of a token.
        n_layers: layers for text.
        n_heads: heads of attention there.
        d_ff: size between the linear maps there.
        image: height and width of the images.
        patch: height and width of a patch.
        channels_in: channels of the images.
        d_image: size of a vector of a patch.
        n_layers_image: layers for images.
        n_heads_image: heads of attention there.
        d_ff_image: size between the linear maps there.
        d_shared: size of what texts and images become.
        activation: between the linear maps; ``"quick_gelu"`` is ``x · sigmoid(1.702 · x)``.
        end: the token whose first place has the vector of the text; None for the place of the
            largest token, as in the first published files.
        epsilon: of the norms.
    """

    words: int = 49408
    positions: int = 77
    d_model: int = 512
    n_layers: int = 12
    n_heads: int = 8
    d_ff: int = 2048
    image: int = 224
    patch: int = 32
    channels_in: int = 3
    d_image: int = 768
    n_layers_image: int = 12
    n_heads_image: int = 12
    d_ff_image: int = 3072
    d_shared: int = 512
    activation: _Activation = "quick_gelu"
    end: int | None = None
    epsilon: float = 1e-5

    def validate(self) -> None:
        """Raise ConfigError unless patches and heads divide what they must."""
        self.require("patch", self.patch > 0 and not self.image % self.patch, "a divisor of image")
        require_heads(self)
        fits = self.n_heads_image > 0 and not self.d_image % self.n_heads_image
        self.require("n_heads_image", fits, f"a divisor of d_image {self.d_image}")

    def init(self, device: Backend | str | None = None) -> Clip:
        """Return both towers with lazy parameters."""
        d, wide = self.d_model, self.d_image

        def norm(size: int) -> LayerNorm:
            return LayerNormConfig(size, self.epsilon).init(device)

        def table(rows: int, size: int) -> Embedding:
            return Embedding(rows, size, initializer=SMALL, device=device)

        def projection(size: int) -> Linear:
            first = init.Normal(std=1 / sqrt(size))
            return LinearConfig(size, self.d_shared, bias=False, initializer=first).init(device)

        places = (self.image // self.patch) ** 2 + 1
        patches = Conv2dConfig(
            self.channels_in, wide, self.patch, self.patch, bias=False, initializer=SMALL
        )
        text, images = (d, self.n_heads, self.d_ff), (wide, self.n_heads_image, self.d_ff_image)
        return Clip(
            text_model=ClipText(
                embeddings=ClipWords(table(self.words, d), table(self.positions, d)),
                encoder=ClipLayers(tuple(self._layer(*text, device) for _ in range(self.n_layers))),
                final_layer_norm=norm(d),
                end=self.end,
            ),
            vision_model=ClipImages(
                embeddings=ClipPatches(
                    class_embedding=SMALL.param((wide,), device),
                    patch_embedding=patches.init(device),
                    position_embedding=table(places, wide),
                ),
                pre_layrnorm=norm(wide),
                encoder=ClipLayers(
                    tuple(self._layer(*images, device) for _ in range(self.n_layers_image))
                ),
                post_layernorm=norm(wide),
            ),
            text_projection=projection(d),
            visual_projection=projection(wide),
            logit_scale=Temperature().param((), device),
            settings=self,
        )

    def _layer(self, size: int, heads: int, d_ff: int, device: Backend | str | None) -> ClipLayer:
        key, value, query, out = (small_linear(size, size, device) for _ in range(4))
        return ClipLayer(
            layer_norm1=LayerNormConfig(size, self.epsilon).init(device),
            self_attn=ProjectedAttention(key, value, query, out, heads),
            layer_norm2=LayerNormConfig(size, self.epsilon).init(device),
            mlp=ClipMlp(
                small_linear(size, d_ff, device),
                small_linear(d_ff, size, device),
                self.activation == "quick_gelu",
            ),
        )


class Temperature(init.Initializer):
    """The logarithm of 1 / 0.07, by which cosines are multiplied at first."""

    def values(self, shape: tuple[int, ...], fans: init.Fans, device: Backend) -> Tensor[Float]:
        """Return the first value."""
        return full(shape, -log(0.07), device=device)


class ClipMlp(Module):
    """Two linear maps with an activation between."""

    fc1: Linear
    fc2: Linear
    quick: bool

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d) to the same shape."""
        x = self.fc1(x)
        return self.fc2(x * (x * 1.702).sigmoid() if self.quick else x.gelu())


class ClipLayer(Module):
    """Attention and maps, each after a norm and added to its input."""

    layer_norm1: LayerNorm
    self_attn: ProjectedAttention
    layer_norm2: LayerNorm
    mlp: ClipMlp

    def forward(self, x: Tensor[Float], *, is_causal: bool) -> Tensor[Float]:
        """Map (N, places, d) to the same shape."""
        y = self.layer_norm1(x)
        x = x + self.self_attn(y, self.self_attn.keys(y), is_causal=is_causal)
        return x + self.mlp(self.layer_norm2(x))


class ClipLayers(Module):
    """Layers in a row."""

    layers: tuple[ClipLayer, ...]

    def forward(self, x: Tensor[Float], *, is_causal: bool = False) -> Tensor[Float]:
        """Map (N, places, d) to the same shape."""
        for layer in self.layers:
            x = layer(x, is_causal=is_causal)
        return x


class ClipWords(Module):
    """A vector for each token, by what it is and where."""

    token_embedding: Embedding
    position_embedding: Embedding

    def forward(self, tokens: Tensor[Int]) -> Tensor[Float]:
        """Map (N, length) to (N, length, d)."""
        places = self.position_embedding.weight.value
        if tokens.ndim != 2 or tokens.shape[1] > places.shape[0]:
            expected = f"(N, length), at most {places.shape[0]} tokens"
            raise ShapeError("Clip", "no texts that fit", got=tokens.shape, expected=expected)
        return self.token_embedding(tokens) + places[: tokens.shape[1]]


class ClipText(Module):
    """The tower of texts, in which each token sees those before it."""

    embeddings: ClipWords
    encoder: ClipLayers
    final_layer_norm: LayerNorm
    end: int | None

    def forward(self, tokens: Tensor[Int]) -> Tensor[Float]:
        """Map tokens (N, length) to the vector (N, d) of what ends each text."""
        x = self.final_layer_norm(self.encoder(self.embeddings(tokens), is_causal=True))
        ends = tokens if self.end is None else (tokens == self.end).astype(tokens.dtype)
        there = one_hot(ends.argmax(axis=-1), tokens.shape[-1]).astype(x.dtype)
        return (there[:, None] @ x)[:, 0]


class ClipPatches(Module):
    """A vector for each patch of an image, behind one for all of it."""

    class_embedding: Param
    patch_embedding: Conv2d
    position_embedding: Embedding

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, image, image) to (N, patches + 1, d)."""
        x = self.patch_embedding(images).flatten(2).mT
        places = self.position_embedding.weight.value
        if x.shape[1] + 1 != places.shape[0]:
            got, expected = f"{x.shape[1]} patches", places.shape[0] - 1
            raise ShapeError("Clip", "images of another size", got=got, expected=expected)
        first = self.class_embedding.value.broadcast_to((x.shape[0], 1, x.shape[2]))
        return concat((first, x), axis=1) + places


class ClipImages(Module):
    """The tower of images, a vision transformer with a norm in front."""

    embeddings: ClipPatches
    pre_layrnorm: LayerNorm  # as the published files spell it
    encoder: ClipLayers
    post_layernorm: LayerNorm

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, image, image) to vectors (N, d)."""
        x = self.encoder(self.pre_layrnorm(self.embeddings(images)))
        return self.post_layernorm(x[:, 0])


class Clip(Module):
    """Two transformers that tell which text goes with which image. Radford et al., 2021.

    arXiv 2103.00020. Parameters have the names of the published files. Images are 224 pixels wide
    and high, cut from the middle, with means and deviations of the paper: ``nn.models.CLIP_MEAN``
    and ``CLIP_STD``.

    Example:
        >>> from phlox_nn import models
        >>> models.ClipConfig().init().num_params()
        151277313
    """

    text_model: ClipText
    vision_model: ClipImages
    text_projection: Linear
    visual_projection: Linear
    logit_scale: Param
    settings: ClipConfig

    def encode_text(self, tokens: Tensor[Int]) -> Tensor[Float]:
        """Map tokens (N, length) to vectors (N, d_shared)."""
        return self.text_projection(self.text_model(tokens))

    def encode_image(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map images (N, channels, image, image) to vectors (N, d_shared)."""
        return self.visual_projection(self.vision_model(images))

    def forward(self, tokens: Tensor[Int], images: Tensor[Float]) -> Tensor[Float]:
        """Map texts (T, length) and images (N, …) to logits (N, T): which text an image goes with.

        They are cosines of the vectors, times a number that is learned. ``softmax`` over the texts
        gives shares; the transposed logits tell which image goes with a text.
        """
        texts, pictures = self.encode_text(tokens), self.encode_image(images)
        texts = texts / linalg.vector_norm(texts, axis=-1, keepdims=True)
        pictures = pictures / linalg.vector_norm(pictures, axis=-1, keepdims=True)
        return (pictures @ texts.mT) * self.logit_scale.value.exp()


CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
