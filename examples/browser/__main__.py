"""Make the page, and show it at an address of this machine: `--out FOLDER`, `--port N`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from examples.browser.folder import DataError, kernels, make


def main() -> int:
    """Make the folder, serve it until stopped, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.browser", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/browser"), help="the folder")
    parser.add_argument("--port", type=int, default=8000, help="0: make the folder, serve nothing")
    arguments = parser.parse_args()
    print(f"making {arguments.out}; the first time fetches 77 MB and the digits", flush=True)
    try:
        size = make(arguments.out)
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"made {arguments.out}: {size / 1e6:.1f} MB, which any web server can show")
    if kernels() is None:
        print("without the kernels of Cpu(), not built from these sources: ./x wheels pyodide")
    if arguments.port:
        handler = partial(SimpleHTTPRequestHandler, directory=str(arguments.out))
        # GPUs are lent to pages of https and of this machine alone.
        with ThreadingHTTPServer(("127.0.0.1", arguments.port), handler) as server:
            print(f"http://127.0.0.1:{arguments.port} (Control-C ends it)", flush=True)
            server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
