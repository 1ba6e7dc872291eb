"""Files by which processes of MPICH share memory: where one is killed, nobody removes them."""

from __future__ import annotations

import re
from pathlib import Path
from time import sleep
from typing import Final

_FILE: Final = re.compile(r"/dev/shm/mpich_shm_\w+$", re.MULTILINE)
_TURN: Final = 0.05  # seconds, in which a process that was killed lets go


def note(path: Path) -> None:
    """Write down which of them this process has in use."""
    path.write_text("\n".join(_in_use("self")))


def remove(folder: Path) -> None:
    """Remove those that processes noted in a folder, and that no process has in use any more."""
    noted = {name for path in folder.glob("rank-*.shm") for name in path.read_text().splitlines()}
    for turn in range(20):
        left = {name for name in noted if Path(name).exists()}
        if not left:
            return
        sleep(_TURN * (turn > 0))
        for process in Path("/proc").glob("[0-9]*"):
            left -= _in_use(process.name)
        for name in left:
            Path(name).unlink(missing_ok=True)


def _in_use(process: str) -> set[str]:
    try:
        return {*_FILE.findall(Path(f"/proc/{process}/maps").read_text())}
    except OSError:  # it is gone or another user's, or the system shows nothing of processes
        return set()
