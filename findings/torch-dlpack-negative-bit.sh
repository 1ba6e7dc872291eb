#!/usr/bin/env bash
# PyTorch 2.15.0 (NumPy 2.4.6): the sign of a lazily negated tensor is lost on the way through DLPack.
#
# Guess: -2, or an error: the page "torch.Tensor.__dlpack__" belongs to an exchange of values, a
# tensor with the conjugate bit is refused there, and `.numpy()` refuses one with the negative bit.
# Done: the imaginary part of a conjugate, [-2], to NumPy and back to PyTorch by `from_dlpack`.
# Seen: [2] in both, without a word: the bits are lent and the pending minus stays behind.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import torch

x = torch.tensor([1 + 2j]).conj().imag
try:
    by_numpy = x.numpy().tolist()
except RuntimeError:
    by_numpy = "refused"
lent, back = np.from_dlpack(x).tolist(), torch.from_dlpack(x).tolist()
try:
    conjugate = np.from_dlpack(torch.tensor([1 + 2j]).conj()).tolist()
except BufferError:
    conjugate = "refused"
print("tensor", x.tolist(), "NumPy", lent, "PyTorch", back, ".numpy()", by_numpy)
print("with the conjugate bit:", conjugate)
assert x.tolist() == [-2] and lent == back == [2] and by_numpy == conjugate == "refused"
PYTHON
