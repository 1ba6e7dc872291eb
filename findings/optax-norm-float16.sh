#!/usr/bin/env bash
# optax 0.2.8 (jax 0.10.2): clipping float16 gradients by their norm makes them 0 once the norm passes 255.
#
# Guess: [300, 4] scaled to norm 1 is [0.99991, 0.01333]: the page of clip_by_global_norm gives g / norm * max_norm,
# the norm of 300 is itself a float16, and PyTorch's clip_grad_norm_ adds such squares in float32.
# Done: global_norm, clip_by_global_norm(1) and clip_by_block_rms(1) of float16 gradients.
# Seen: the squares are added in float16, where 300 * 300 is inf. The norm is inf, and every gradient of the model
# becomes 0, those in float32 beside it too: training stands still and nothing is NaN. Scaled losses, which float16
# needs, reach such gradients at once. Cast gradients to float32 before they are clipped.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import jax.numpy as jnp
import numpy as np
import optax

gradients = {
    "half": jnp.array([300.0, 4.0], jnp.float16),
    "single": jnp.array([5.0], jnp.float32),
}
norm = optax.global_norm(gradients)
clipped, _ = optax.clip_by_global_norm(1.0).update(gradients, optax.EmptyState())
blocks, _ = optax.clip_by_block_rms(1.0).update(gradients, optax.EmptyState())
wide = optax.global_norm({name: value.astype(jnp.float32) for name, value in gradients.items()})
print("norm:", norm, " in float32:", wide)
print("clipped by norm:", {name: value.tolist() for name, value in clipped.items()})
print("clipped by block:", {name: value.tolist() for name, value in blocks.items()})
assert np.isinf(norm) and abs(wide - 300.0683) < 1e-3, "the norm is right now"
assert not clipped["half"].any() and not clipped["single"].any(), "clipping is right now"
assert not blocks["half"].any()
PYTHON
