"""`./x test --browser`: phlox in a headless Chromium, with WebGPU on a processor.

Makes the page of examples/browser, shows it and the pages of tests/browser to the browser, and
prints what they tell. Where kernels are not built their page is skipped, which is said.
"""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tools.shell import ROOT, CommandError, fail, which

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# SwiftShader, a GPU that is played by the processor, is part of Chromium.
_OPTIONS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic", "--disable-dev-shm-usage"),
    *("--enable-unsafe-webgpu", "--enable-features=Vulkan", "--use-vulkan=swiftshader"),
    *("--use-webgpu-adapter=swiftshader", "--use-angle=swiftshader"),
)
SILENCE = 480  # seconds after which a page that tells nothing has failed
POLL = 1  # seconds between two looks at the browser
LEARNED = 0.5  # share of the digits that a page knows at least, after the fewest of its steps
ROUNDED = 0.01  # of that share, what a record of 16-bit floats may change
PATIENCE = 10  # seconds that a browser has to end
_OF_KERNELS = "kernels of the processor"
PAGES = {
    "conformance on Numpy": "check.html?part=numpy",
    _OF_KERNELS: "check.html?part=cpu",
    "kernels of the GPU": "check.html?part=wgpu",
    "the page": "index.html?steps=30#check",
    "the page on the GPU": "index.html?steps=10&device=wgpu#check",
}

Told = dict[str, Any]


class _Server(ThreadingHTTPServer):
    """Shows a folder, and takes what its pages tell."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
        self.told: queue.Queue[Told] = queue.Queue()


class _Handler(SimpleHTTPRequestHandler):
    def do_POST(self) -> None:
        """Take what a page tells."""
        length = int(self.headers["Content-Length"])
        assert isinstance(self.server, _Server)
        self.server.told.put(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def need_browser() -> None:
    """See that there is a browser.

    Raises:
        CommandError: there is none.
    """
    if not any(which(name) for name in _PROGRAMS):
        raise fail("browser: no Chromium is installed", "apt-get install chromium")


def main(words: list[str]) -> int:
    """Run the pages whose names hold one of the words, or all; returns an exit status."""
    try:
        pages = chosen(words)
        need_browser()
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1
    from examples.browser.folder import DataError, kernels, make  # noqa: PLC0415 - needs phlox

    with tempfile.TemporaryDirectory(prefix="phlox-") as scratch:
        folder = Path(scratch) / "page"
        try:
            make(folder)
        except DataError as error:
            print(error, file=sys.stderr)
            return 1
        shutil.copytree(ROOT / "tests" / "browser" / "page", folder, dirs_exist_ok=True)
        if kernels() is None and _OF_KERNELS in pages:
            del pages[_OF_KERNELS]
            print(
                f"{_OF_KERNELS}: skipped: they are not built from these sources: ./x wheels pyodide"
            )
        failed = [
            name
            for name, address in pages.items()
            if not _passes(name, address, folder, Path(scratch) / "profile")
        ]
    return 1 if failed else 0


def chosen(words: list[str]) -> dict[str, str]:
    """Pages whose names hold one of the words, or all.

    Raises:
        CommandError: no name holds a word.
    """
    for word in words:
        if not any(word in name for name in PAGES):
            known = ", ".join(PAGES)
            raise fail(f"browser: got {word}, expected part of: {known}", "./x test --browser")
    return {
        name: address
        for name, address in PAGES.items()
        if not words or any(word in name for word in words)
    }


def _passes(name: str, address: str, folder: Path, profile: Path) -> bool:
    """Show a page and print what it tells; whether it came to its end without a failure."""
    program = next(found for each in _PROGRAMS if (found := which(each)))
    start = time.perf_counter()
    print(f"{name}:", flush=True)
    # A server for each page, so that none is told what an earlier one still sends.
    with _Server(folder) as server, tempfile.TemporaryFile() as output:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{address}"
        command = [program, *_OPTIONS, f"--user-data-dir={profile}", url]
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            passed = listen(server.told, lambda: process.poll() is None)
        finally:
            end(process)
            server.shutdown()
        print(f"  {'passed' if passed else 'FAILED'} in {time.perf_counter() - start:.0f} s")
        if not passed:
            output.seek(0)
            print(output.read().decode(errors="replace")[-2000:])
    return passed


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process: ask it to, and after a while do not ask."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def listen(told: queue.Queue[Told], lives: Callable[[], bool]) -> bool:
    """Print what a page tells while its browser lives; whether it ended without a failure."""
    passed = True
    seen: dict[str, Told] = {}
    heard = time.monotonic()
    while True:
        try:
            what = told.get(timeout=POLL)
        except queue.Empty:
            silent = time.monotonic() - heard > SILENCE
            if silent or not lives():
                print(f"  {f'nothing was told for {SILENCE} s' if silent else 'the browser ended'}")
                return False
            continue
        heard = time.monotonic()
        event = what.pop("event")
        if event == "end":
            return passed
        words = ", ".join(f"{key} {value}" for key, value in what.items())
        print(f"  {event}: {words}", flush=True)
        why = wrong(event, what, seen)
        seen[event] = what
        if why:
            print(f"  wrong: {why}", flush=True)
        passed = passed and not why
        if event == "failed":
            return False


def wrong(event: str, what: Told, seen: Mapping[str, Told]) -> str:
    """What is wrong with what a page tells, after what it told before, or nothing."""
    if "failed" in event or what.get("failed"):
        return event
    if event == "conformance" and not what["checks"]:
        return "got no checks, expected some"
    if event == "trained" and not what["accuracy"] >= LEARNED:
        return f"got {what['accuracy']} after training, expected at least {LEARNED}"
    if event == "loaded":
        trained = seen["trained"]["accuracy"]
        if not abs(what["accuracy"] - trained) <= ROUNDED:
            return f"got {what['accuracy']} of a record, expected {trained} as before it"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
