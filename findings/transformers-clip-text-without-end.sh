#!/usr/bin/env bash
# transformers 5.24.0: CLIP gives all texts that lack the end token the vector of their first token.
#
# Guess: the vector of the last token, or an error: "CLIP" says that the text's features come from the end token,
# and tokens made with add_special_tokens=False, or cut by hand to 77, have none.
# Done: give CLIPTextModelWithProjection texts that begin with the same token, with the end token and without.
# Seen: without it `(ids == eos).argmax()` over nothing is place 0, where a causal model has read one token alone. Texts
# of which only the first token is the same have the same vector, to the last bit, and nothing is said; a search finds
# them all equal. In configs that say eos_token_id 2, as the first files did, the largest token is taken: they differ.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.24.0 torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from transformers import CLIPTextConfig, CLIPTextModelWithProjection

sizes = dict(vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2)
sizes |= dict(num_attention_heads=4, max_position_embeddings=16, projection_dim=8)


def vectors(eos: int, *texts: list[int]) -> torch.Tensor:
    torch.manual_seed(0)
    config = CLIPTextConfig(**sizes, bos_token_id=57, eos_token_id=eos, pad_token_id=0)
    model = CLIPTextModelWithProjection(config).eval()
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter) * 0.3
    with torch.no_grad():
        return model(torch.tensor(texts)).text_embeds


first, second = [57, 3, 14, 15, 9], [57, 26, 5, 35, 8]
ended = vectors(58, [*first, 58], [*second, 58])
bare = vectors(58, first, second)
largest = vectors(2, first[1:], second[1:])
print("with the end token, largest difference:", (ended[0] - ended[1]).abs().max().item())
print("without it:", (bare[0] - bare[1]).abs().max().item())
print("without it, eos_token_id 2:", (largest[0] - largest[1]).abs().max().item())
assert (ended[0] - ended[1]).abs().max() > 0.1
assert torch.equal(bare[0], bare[1])
assert torch.allclose(bare[:1], vectors(58, [57]), atol=1e-5)
assert (largest[0] - largest[1]).abs().max() > 0.1
PYTHON
