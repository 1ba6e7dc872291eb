#!/usr/bin/env bash
# gguf 0.19.0: `GGUFWriter` drops a key whose value is an empty string or an empty array.
#
# Guess: the key is written, with length 0: the page "GGUF" of the format gives strings and arrays
# a length of 64 bits and no least one, and `add_bool(False)` or `add_uint32(0)` are written.
# Done: write an empty string, an empty array, a False and a 0, and list the file's keys.
# Seen: the first two are missing, without a word, so "has no merges" and "was not said" read the
# same; a reader that asks for the key fails on a file that set it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gguf==0.19.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import os
import tempfile

import gguf

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("x.string", "")
    writer.add_array("x.array", [])
    writer.add_bool("x.bool", False)
    writer.add_uint32("x.number", 0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    keys = [key for key in gguf.GGUFReader(path).fields if key.startswith("x.")]
print("written: x.string, x.array, x.bool, x.number; found:", keys)
assert keys == ["x.bool", "x.number"]
PYTHON
