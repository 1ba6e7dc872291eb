"""Settings of every test: how many examples hypothesis tries, and that time limits are pytest's."""

import os

from hypothesis import settings

# In CI the examples follow from the test alone, so that a red run can be repeated anywhere.
_CI = os.environ.get("CI", "").lower() in {"1", "true"}

for _name, _examples in (("quick", 10), ("default", 50), ("long", 1000)):
    settings.register_profile(
        f"phlox-{_name}",
        max_examples=_examples,
        deadline=None,
        derandomize=_CI,
        database=None if _CI else settings.default.database if settings.default else None,
        print_blob=True,
    )
settings.load_profile(f"phlox-{os.environ.get('PHLOX_TEST_EXAMPLES', 'default')}")
