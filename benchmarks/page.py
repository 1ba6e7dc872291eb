"""The tables of docs/performance: each kind of CPU has one, between marks that name it."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parents[1] / "docs" / "performance"


@dataclass(frozen=True)
class Cells:
    """A row as text; a wanted value that is not reached is marked by ``!``."""

    phlox: str
    other: str
    times: str
    rate: str
    share: str


def cells(row: dict[str, Any]) -> Cells:
    """Format a measured row."""
    rate = ""
    if "flops_per_second" in row:
        rate = f"{row['flops_per_second'] / 1e9:.1f} GF/s"
    elif "bytes_per_second" in row:
        rate = f"{row['bytes_per_second'] / 1e9:.1f} GB/s"
    return Cells(
        phlox=_limited(row),
        other=duration(row["other_seconds"]) if "other_seconds" in row else "",
        times=_against(row, "times", "{:.2f}"),
        rate=rate,
        share=_against(row, "share_of_peak", "{:.0%}"),
    )


def _against(row: dict[str, Any], key: str, form: str) -> str:
    """A value, and the wanted one after it."""
    if key not in row:
        return ""
    wanted = row.get(f"{key}_wanted", 0.0)
    text = form.format(row[key])
    if not wanted:
        return text
    return f"{text}{'' if row[key] >= wanted else ' !'} (≥ {form.format(wanted)})"


def _limited(row: dict[str, Any]) -> str:
    """The time, and the one that it may take."""
    text, most = duration(row["phlox_seconds"]), row.get("seconds_wanted", 0.0)
    return (
        f"{text}{'' if row['phlox_seconds'] <= most else ' !'} (≤ {duration(most)})"
        if most
        else text
    )


def write(facts: dict[str, Any], rows: list[dict[str, Any]], pages: Path = PAGES) -> None:
    """Put the table between the marks of this kind of CPU, or onto a page of its own."""
    put(facts["cpu"], _section(facts, rows), pages)


def put(kind: str, lines: list[str], pages: Path = PAGES) -> None:
    """Put lines between the marks of a kind of processor, or onto a page of its own."""
    begin, end = f"<!-- table: {kind} -->", f"<!-- end: {kind} -->"
    block = "\n".join((begin, *lines, end))
    for path in pages.glob("*.md"):
        text = path.read_text()
        if begin in text:
            marked = f"{re.escape(begin)}.*?{re.escape(end)}"
            path.write_text(re.sub(marked, lambda _: block, text, flags=re.S))
            return
    name = re.sub(r"\W+", "-", kind.lower()).strip("-")
    (pages / f"{name}.md").write_text(f"# {kind}\n\n{block}\n")


def _section(facts: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    one, all_of_them = facts["peak_flops_one_thread"], facts["peak_flops"]
    peaks = ", ".join(
        f"{name} {one[name] / 1e9:.0f} GF/s on one thread, {peak / 1e9:.0f} on {facts['threads']}"
        for name, peak in all_of_them.items()
    )
    out = [
        f"{facts['cpu']}, {facts['threads']} threads, PyTorch {facts['torch']}, {today}, load "
        f"{facts['load']}. Measured multiply-add peaks: {peaks}.",
    ]
    for group in dict.fromkeys(row["group"] for row in rows):
        out += [
            "",
            f"| {group} | phlox | PyTorch | times PyTorch | rate | share of peak |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for row in rows:
            if row["group"] == group:
                c = cells(row)
                line = (row["name"], c.phlox, c.other, c.times, c.rate, c.share)
                out.append(f"| {' | '.join(line)} |")
    return out


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
