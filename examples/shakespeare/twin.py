"""The same training in PyTorch, from the same first weights and in the same order."""

from typing import Any

import phlox as px
from examples.shakespeare.data import Letters, Pieces
from examples.shakespeare.train import Settings
from phlox import Cpu


def losses(works: str, letters: Letters | Pieces, settings: Settings) -> list[float]:
    """Return the loss of each step."""
    # For comparisons alone.
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    px.seed(settings.seed)
    first = settings.model(len(letters)).init(Cpu())
    w = {k: torch.tensor(p.value.numpy(), requires_grad=True) for k, p in first.params().items()}
    rule = torch.optim.AdamW(list(w.values()), lr=1.0, weight_decay=0.1)
    schedule, found = settings.schedule(), []
    for batch in map(torch.from_numpy, settings.batches(letters.encoded(works))):
        tokens, wanted = batch[:, :-1], batch[:, 1:]
        logits = _forward(torch, w, settings, tokens)
        loss: Any = torch.nn.functional.cross_entropy(
            logits.reshape(-1, len(letters)), wanted.reshape(-1)
        )
        rule.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)
        rule.param_groups[0]["lr"] = schedule.step()
        rule.step()
        found.append(loss.item())
    return found


def _forward(torch: Any, w: dict[str, Any], s: Settings, tokens: Any) -> Any:
    f, (n, length) = torch.nn.functional, tokens.shape

    def norm(x: Any, at: str) -> Any:
        return f.layer_norm(x, (s.d_model,), w[f"{at}.weight"], w[f"{at}.bias"])

    def linear(x: Any, at: str) -> Any:
        return x @ w[f"{at}.weight"] + w[f"{at}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][:length]
    for i in range(s.n_layers):
        parts = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
        heads = parts.reshape(n, length, 3, s.n_heads, -1).permute(2, 0, 3, 1, 4)
        seen = f.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + linear(seen.transpose(1, 2).reshape(n, length, -1), f"h.{i}.attn.c_proj")
        inner = f.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T
