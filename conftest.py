"""Settings of every test: how many examples hypothesis tries; time limits are pytest's alone."""

import os

from hypothesis import settings

# In CI the examples follow from the test alone, so that a red run can be repeated anywhere.
_PARENT = settings.get_profile("ci" if os.environ.get("CI") else "default")

for _name, _examples in (("quick", 10), ("default", 50), ("long", 1000)):
    settings.register_profile(
        f"phlox-{_name}", _PARENT, max_examples=_examples, deadline=None, print_blob=True
    )
settings.load_profile(f"phlox-{os.environ.get('PHLOX_TEST_EXAMPLES', 'default')}")
