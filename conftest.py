"""Settings of every test: how many examples hypothesis tries, and where random numbers start."""

import gc
import os

from hypothesis import settings

import phlox_tensor

# In CI the examples follow from the test alone, so that a red run can be repeated anywhere.
_PARENT = settings.get_profile("ci" if os.environ.get("CI") else "default")

for _name, _examples in (("quick", 10), ("default", 50), ("long", 1000)):
    settings.register_profile(
        f"phlox-{_name}", _PARENT, max_examples=_examples, deadline=None, print_blob=True
    )
settings.load_profile(f"phlox-{os.environ.get('PHLOX_TEST_EXAMPLES', 'default')}")


def pytest_collection_finish() -> None:
    """Hide collected tests from the garbage collector: each `gc.collect()` would walk them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Each test draws the same numbers on every machine, alone and among others."""
    phlox_tensor.seed(0)
