#!/usr/bin/env bash
# PyTorch 2.15.0: a plain dict of tensors saved with `pickle_protocol=4` is refused by `torch.load`.
#
# Guess: it loads: the page "torch.save" lists `pickle_protocol` as a choice of the caller, protocol
# 4 is Python's default since 3.8, and the file holds nothing but a dict, a string and a tensor.
# Done: save {"a": ones(2)} with protocols 2 to 5 and load each with the defaults.
# Seen: 2 and 3 load. 4 and 5 are written and refused ("Unsupported operand 149", the frame mark),
# with the advice to load without the safety check.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import io
import pickle

import torch

seen = {}
for protocol in (2, 3, 4, 5):
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file, pickle_protocol=protocol)
    file.seek(0)
    try:
        seen[protocol] = torch.load(file)["a"].tolist()
    except pickle.UnpicklingError as error:
        seen[protocol] = next(line for line in str(error).splitlines() if "operand" in line)
    print(protocol, "->", seen[protocol])
assert seen[2] == seen[3] == [1, 1] and "149" in seen[4] and "149" in seen[5]
PYTHON
