"""phlox where there are no locks of files, no threads, and no package but NumPy and msgpack."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent.parent / "isolation" / "without_system.py"


def test_it_trains_and_saves_without_what_a_browser_lacks(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "phlox works without them\n", done.stderr


def test_bfloat16_is_found_by_its_numpy_type_before_it_is_used() -> None:
    code = "import ml_dtypes, phlox as px\nprint(px.as_dtype(ml_dtypes.bfloat16) is px.bfloat16)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
