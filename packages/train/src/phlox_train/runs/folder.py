"""The folder of a run: its lock, its log, its checkpoints and the files that point to them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from phlox_tensor import RecordError

from .card import NAME, card_of, moment
from .checkpoints import Checkpoints, write_json
from .configs import differences
from .errors import RunError
from .keep import KeepRule, Kept
from .lock import FolderLock
from .log import Log, whole_length
from .rows import Rows

VERSION: Final = 1
LOG: Final = "log.jsonl"
SYSTEM: Final = "system.jsonl"


@final
class Folder:
    """What a run has on the disk; with no path it has nothing there, and logs in memory."""

    def __init__(self, path: Path | None, keep: Sequence[KeepRule]) -> None:
        """Keep what is needed to open it."""
        self.path, self._keep = path, keep
        self.better: dict[str, str] = {}
        self._config: Mapping[str, Any] | None = None
        self.checkpoints: Checkpoints | None = None
        self._lock: FolderLock | None = None
        self.rows = Rows(Log(None, 0))
        self.system = Log(None, 0)
        self._card: dict[str, Any] = {}

    def open(
        self, config: Mapping[str, Any] | None, resume: bool | str, parts: Iterable[Any]
    ) -> Any:
        """Take the folder, and return the newest checkpoint of it; None where there is none."""
        self._config = config
        if self.path is None:
            return None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.path)
            there = Checkpoints(self.path / "checkpoints", self._keep, better=self.better)
            found = self._newest(there, config, resume) if there.steps else None
            length = 0 if found is None else found["mark"]
            self.rows = Rows(Log(self.path / LOG, length))
            # It is not cut: what a machine did in steps that are done again was so.
            self.system = Log(self.path / SYSTEM, whole_length(self.path / SYSTEM))
            if config is not None:
                write_json(self.path / "config.json", config)
            self._card = card_of(parts, {} if found is None else read_json(self.path / NAME))
            self.tell("running", "", 0 if found is None else found["place"]["step"])
        except OSError as error:
            self.close()
            raise RunError(
                "run",
                f"the folder {self.path} cannot be used",
                got=str(error),
                expected="a folder that may be written to",
                hint='train.Run("another folder", ...)',
            ) from error
        except BaseException:
            self.close()
            raise
        self.checkpoints = there
        if found is not None:
            known = {k["step"]: Kept(k["step"], k["epoch"], k["values"]) for k in found["kept"]}
            there.kept = [known[kept.step] for kept in there.kept if kept.step in known]
        return found

    def take(self, found: Mapping[str, Any]) -> None:
        """Take over the values of a checkpoint."""
        self.better.update(found["better"])
        self.rows.values.update(found["values"])

    def _newest(
        self, there: Checkpoints, config: Mapping[str, Any] | None, resume: bool | str
    ) -> Any:
        if resume is False:
            raise RunError(
                "run",
                f"a run is in {self.path}",
                got=f"its checkpoints of steps {there.steps}",
                expected="a folder without a run",
                hint=f"resume=True to go on with it, or remove {self.path}",
            )
        try:
            found = there.load()
        except RecordError as error:
            *others, newest = there.steps
            then = f"that of step {others[-1]}" if others else "the start"
            raise RunError(
                "run",
                f"the checkpoint {there.path(newest)} is damaged",
                got=error.what,
                expected="the file as it was written",
                hint=f"remove it, and the run goes on from {then}",
            ) from error
        if found.get("version") != VERSION:
            got = f"version {found.get('version')}"
            raise RunError("run", "not a checkpoint of a run", got=got, expected=f"{VERSION}")
        changed = differences(found["config"], None if config is None else dict(config))
        if changed and resume != "anyway":
            raise RunError(
                "run",
                f"the run in {self.path} has another config",
                got="; ".join(changed),
                expected="the config that it began with",
                hint='resume="anyway" to go on with the new one, or another folder',
            )
        return found

    def save(
        self,
        record: dict[str, Any],
        step: int,
        epoch: int,
        values: Mapping[str, float],
        done: Callable[[Path], None],
    ) -> None:
        """Begin to write a checkpoint of what is in a record, and of the folder itself."""
        assert self.checkpoints is not None
        self.checkpoints.wait()
        self.rows.flush()
        kept = [*self.checkpoints.kept, Kept(step, epoch, values)]
        whole = {
            "version": VERSION,
            **record,
            "config": self._config,
            "mark": self.rows.mark,
            "values": dict(self.rows.values),
            "better": dict(self.better),
            "kept": [{"step": k.step, "epoch": k.epoch, "values": dict(k.values)} for k in kept],
        }
        self.checkpoints.save(
            step, whole, values, epoch=epoch, before=self.rows.log.sync, done=done
        )

    def tell(self, state: str, reason: str, step: int) -> None:
        """Say how the run is, for those who look from outside.

        Raises:
            RunError: where that cannot be written.
        """
        if self.path is not None:
            ended = None if state == "running" else moment()
            self._card |= {"state": state, "reason": reason, "step": step, "ended": ended}
            write_json(self.path / NAME, {**self._card, "better": self.better})

    def point(self, path: Path, step: int, best: Mapping[str, Any]) -> None:
        """Say in small files which checkpoint is the last and which were the best."""
        assert self.path is not None
        self.tell("running", "", step)
        write_json(self.path / "last.json", {"path": os.path.relpath(path, self.path)})
        if best:
            write_json(self.path / "best.json", best)

    def close(self) -> None:
        """Give all files back."""
        self.rows.log.close()
        self.system.close()
        if self.checkpoints is not None:
            self.checkpoints.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def read_json(path: Path) -> dict[str, Any]:
    """Return what a small file of a run says; nothing where it is not there, or not whole."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
