"""The tag of a wheel: in its name, in its file WHEEL, and by that in its RECORD."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from tools.shell import fail


def retag(wheel: Path, old: str, new: str) -> Path:
    """Give a wheel another tag for the old one, and return the file in its place.

    Raises:
        CommandError: its name has another tag than the old one.
    """
    if f"-{old}.whl" not in wheel.name:
        raise fail(f"a wheel has another tag: got {wheel.name}, expected {old}", "./x wheels")
    out = wheel.with_name(wheel.name.replace(old, new))
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(out, "w") as made:
        changed = ""
        for info in archive.infolist():  # RECORD is the last one
            content = archive.read(info)
            if info.filename.endswith(".dist-info/WHEEL"):
                content = content.replace(old.encode(), new.encode())
                total = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
                changed = f"{info.filename},sha256={total.rstrip('=')},{len(content)}"
            if info.filename.endswith(".dist-info/RECORD"):
                name = changed.partition(",")[0]
                lines = content.decode().splitlines()
                lines = [changed if each.startswith(f"{name},") else each for each in lines]
                content = "\n".join([*lines, ""]).encode()
            made.writestr(info, content, info.compress_type, 9)
    wheel.unlink()
    return out
