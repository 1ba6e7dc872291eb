"""What PyTorch's names of optimizers and schedulers are here."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import phlox_optim as optim
from phlox_tensor import UnknownNameError

OWNERS: list[Any] = [
    optim.AdamConfig().init(),
    optim.CosineSchedulerConfig(0.1, steps=3).init(),
    optim.LbfgsConfig().init(),
    optim.PlateauSchedulerConfig(0.1).init(),
]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("load_state_dict", "load_record"),
        ("param_groups", "GroupsConfig"),
        ("state_dict", "into_record"),
        ("zero_grad", "nothing to reset"),
    ],
)
def test_a_name_of_pytorch_says_what_to_type(owner: Any, name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=hint):
        getattr(owner, name)


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
def test_other_names_are_missing_as_anywhere(owner: Any) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'stepp'"):
        owner.stepp()
    assert not hasattr(owner, "__array__")
    for same in (copy.deepcopy(owner), pickle.loads(pickle.dumps(owner))):
        assert same.into_record() == owner.into_record()
