"""Where the layers of a model stand: at the paths that the file's names give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Final, final

from ...run._paths import Taken, is_made_up, tells, words_of
from ..trace._values import Field

Path = tuple[str, ...]
# Longer names are no paths: optimizers join those of all that they put together.
LONGEST: Final = 12


@final
class ModulePaths:
    """The paths of fields, and what stands together.

    Attributes:
        paths: that of each field in the file, none for one without a name and for what is made
            of several.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        """Take the fields of a model as they are before there are classes."""
        taken, found = Taken(), map(_path, fields)
        self.paths = [path if path is not None and taken.take(path) else None for path in found]
        known = [path for path in self.paths if path is not None]
        self._inside = Counter(path[:k] for path in known for k in range(1, len(path) + 1))

    def of(self, number: int) -> Path | None:
        """The path of a field; what came later has none."""
        return self.paths[number] if number < len(self.paths) else None

    def named(self, leaves: Sequence[int]) -> bool:
        """Whether all of these have paths of several words."""
        return all(len(self.of(leaf) or ()) > 1 for leaf in leaves)

    def home(self, leaves: Sequence[int]) -> Path | None:
        """The largest module of the file that holds these and no other, if there is one."""
        own = [path for leaf in leaves if (path := self.of(leaf)) is not None]
        home = common(own)
        if home and home in own:
            home = home[:-1]
        if not home or self._inside[home] != len(own):
            return None
        while len(home) > 1 and not home[-1].isdigit() and self._inside[home[:-1]] == len(own):
            home = home[:-1]
        # What holds a list alone is no class.
        return None if any(path[len(home)].isdigit() for path in own) else home

    def homes(self, instances: Sequence[Sequence[int]]) -> list[Path] | None:
        """The modules of parts that are equal, down to the names of what they hold."""
        found = [self.home(leaves) for leaves in instances]
        homes = [home for home in found if home is not None]
        if len(set(homes)) < len(instances):
            return None
        forms = set()
        for home, leaves in zip(homes, instances, strict=True):
            paths = [self.of(leaf) for leaf in leaves]
            forms.add(tuple(path and path[len(home) :] for path in paths))
        return homes if len(forms) == 1 else None


def common(paths: Sequence[Path]) -> Path:
    """What all begin with."""
    rows = zip(*paths, strict=False)
    return tuple(row[0] for row in takewhile(lambda row: len(set(row)) == 1, rows))


def _path(made: Field) -> Path | None:
    """Where a field stands by the first of its names that tells; the last word is no name."""
    *names, _ = made.words
    for name in names:
        words = words_of(name)
        known = not is_made_up(words) if made.kind == "Param" else tells(words := words[:-1])
        if words and known and len(words) <= LONGEST:
            return words
    return None
