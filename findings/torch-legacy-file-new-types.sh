#!/usr/bin/env bash
# PyTorch 2.15.0: the old file format takes float8 and uint16 tensors and cannot give them back.
#
# Guess: such a file loads, or saving refuses: the page "torch.save" offers the old format by
# `_use_new_zipfile_serialization=False` without naming a type that it lacks.
# Done: save and load tensors of five types in the old format.
# Seen: bfloat16 and int8 come back. float8_e4m3fn, uint16 and uint32 are written without a word and
# raise AttributeError about `UntypedStorage` on loading.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import io

import torch

seen = {}
for kind in (torch.bfloat16, torch.int8, torch.float8_e4m3fn, torch.uint16, torch.uint32):
    file = io.BytesIO()
    torch.save(torch.ones(3).to(kind), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    try:
        seen[str(kind)] = str(torch.load(file).dtype)
    except AttributeError as error:
        seen[str(kind)] = f"AttributeError: {error}"
    print(kind, "->", seen[str(kind)])
assert seen["torch.bfloat16"] == "torch.bfloat16" and seen["torch.int8"] == "torch.int8"
assert all("UntypedStorage" in seen[f"torch.{n}"] for n in ("float8_e4m3fn", "uint16", "uint32"))
PYTHON
