"""The models of ``nn.models`` beside PyTorch, with the same weights by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import optim
from tests.training.twins import TWINS, Weights

DEVICE = px.Autodiff(px.Cpu(float="float64"))


def arrays(record: Any, start: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a record by their paths."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, item in record.items():
        if isinstance(item, dict):
            found |= arrays(item, f"{start}{name}.")
        else:
            found[start + name] = np.array(getattr(item, "tensor", item).numpy())
    return found


def flat(out: Any) -> Any:
    """One tensor of what a model gives; of an autoencoder logits, mean and variance."""
    return px.concat(out, axis=1) if isinstance(out, tuple) else out


def without_noise(model: Any, x: Any) -> Any:
    """What an autoencoder gives where the code is its mean."""
    mean, spread = model.encode(x)
    return model.decode(mean), mean, spread


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", TWINS)
def test_outputs_and_gradients_are_those_of_pytorch(name: str, training: bool) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    twin = TWINS[name]
    px.seed(5)
    model = twin.config.init(DEVICE)
    # Norms and running statistics that do something.
    model = model.map(lambda _, p: p.with_value(p.value.detach() + 0.1)).with_training(training)
    weights = arrays(model.into_record(layout=twin.layout))
    inputs = [px.asarray(a, device=DEVICE) for a in twin.inputs]
    out = flat(without_noise(model, *inputs) if name == "vae" else model(*inputs))
    shares = np.cos(np.arange(out.size)).reshape(out.shape)
    grads = (out * px.asarray(shares, device=DEVICE)).sum().backward()
    found = {
        p.id: p.with_value(g) for p in model.param_list() if (g := grads.get(p.value)) is not None
    }
    gradients = arrays(model.with_params(found).into_record(layout=twin.layout))

    tensors = {key: torch.tensor(value) for key, value in weights.items()}
    for key, tensor in tensors.items():
        tensor.requires_grad_("running" not in key)
    theirs = Weights(torch.nn.functional, tensors, training=training)
    want = twin.function(theirs, *map(torch.tensor, twin.inputs))
    np.testing.assert_allclose(out.numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-9)
    (want * torch.tensor(shares)).sum().backward()
    compared = 0
    for key, tensor in tensors.items():
        if tensor.grad is not None:
            wanted = tensor.grad.numpy()
            np.testing.assert_allclose(gradients[key], wanted, rtol=1e-7, atol=1e-8, err_msg=key)
            compared += 1
    assert compared == len(found) > 4
    after = arrays(optim.SgdConfig().init().step(0.0, model, grads).into_record(layout=twin.layout))
    for key in (key for key in after if "running" in key):  # which PyTorch moves in place
        np.testing.assert_allclose(after[key], tensors[key].numpy(), rtol=1e-9, err_msg=key)
