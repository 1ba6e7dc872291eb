"""Models of sound and images beside those of ``transformers``, by the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox.nn import models
from tests.layers.media_rows import DEVICE, INPUTS, ROWS, given, model_of

STORED = Path(__file__).with_name("media.json")


@pytest.mark.parametrize("name", ROWS)
def test_answers_are_those_of_transformers(name: str) -> None:
    """The last logits of the last input; of EfficientNet-lite as timm 1.0.31 has them."""
    answers = model_of(name)(*given(name)).numpy()
    want = np.array(json.loads(STORED.read_text())[name])
    found = answers.reshape(answers.shape[0], -1)[-1, -len(want) :]
    assert np.abs(found - want).max() < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ROWS if "architectures" in ROWS[name]])
def test_transformers_reads_what_was_saved_and_gives_the_same(name: str, tmp_path: Path) -> None:
    """Another folder, which it saves, comes back too."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    other: Any = pytest.importorskip("transformers", reason="it comes with ./x test --long")
    model = model_of(name)
    there: Any = getattr(other, ROWS[name]["architectures"][0]).from_pretrained(
        models.save(model, tmp_path / "ours"), dtype=torch.float32
    )
    with torch.no_grad():
        inputs = {key: torch.tensor(each) for key, each in INPUTS[name].items()}
        found = there.eval()(**inputs)
        want = (found.logits if "logits" in found else found.logits_per_image).numpy()
    assert np.abs(model(*given(name)).numpy() - want).max() < 1e-4
    there.save_pretrained(tmp_path / "theirs")
    again: Any = models.load(tmp_path / "theirs", DEVICE)
    assert np.array_equal(again(*given(name)).numpy(), model(*given(name)).numpy())


@pytest.mark.parametrize("name", ROWS)
def test_a_folder_that_was_saved_becomes_the_same_model(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    folder = models.save(model, tmp_path)
    assert models.load_report(folder).complete
    loaded: Any = models.load(folder, DEVICE)
    assert loaded.settings == model.settings
    assert np.array_equal(loaded(*given(name)).numpy(), model(*given(name)).numpy())


@pytest.mark.parametrize("name", ROWS)
def test_slopes_reach_every_weight(name: str) -> None:
    device = px.Autodiff(DEVICE)
    model = model_of(name).to_device(device).unfreeze()
    answers = model(*(each.to_device(device) for each in given(name)))
    rising = px.arange(answers.shape[-1], dtype=answers.dtype, device=device)
    slopes = (answers * rising).square().mean().backward()
    for path, param in model.params(role="weight").items():
        slope = slopes.get(param.value)
        assert slope is not None, path
        # A shift of all keys moves no share of attention.
        assert path.endswith("k_proj.bias") or float(slope.abs().max()) > 0, path


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("CLIP", {"text_config": {"hidden_act": "relu"}}, "hidden_act is not built"),
        ("CLIP", {"vision_config": {"layer_norm_eps": 1.0}}, "expected 1e-05"),
        ("Whisper", {"encoder_ffn_dim": 99}, "encoder_ffn_dim is not built: got 99, expected 24"),
        ("Whisper", {"activation_function": "relu"}, "activation_function is not built"),
    ],
)
def test_settings_that_are_not_built_are_refused(
    name: str, wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = models.save(model_of(name), tmp_path)
    (folder / "config.json").write_text(json.dumps({**ROWS[name], **wrong}))
    with pytest.raises(px.RecordError, match=message):
        models.load(folder, DEVICE)


def test_images_of_another_size_and_texts_that_are_too_long_are_refused() -> None:
    tokens, images = given("CLIP")
    with pytest.raises(px.ShapeError, match="images of another size: got 9 patches, expected 16"):
        model_of("CLIP").encode_image(images[:, :, :12, :12])
    with pytest.raises(px.ShapeError, match=r"no texts that fit: got \(3, 15\)"):
        model_of("CLIP").encode_text(tokens.repeat(3, axis=1))
