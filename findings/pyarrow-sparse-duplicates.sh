#!/usr/bin/env bash
# pyarrow 26.0.1 (SciPy 1.17.1): a SciPy COO matrix loses the first of two entries of one place.
#
# Guess: entries of the same place add up, as SciPy's page "coo_array" defines its matrices (this
# is how a sparse gradient of repeated rows is gathered), or the conversion refuses them.
# Done: three entries, two of them at (0, 0), made dense by SciPy and by pyarrow.
# Seen: SciPy gives 1 + 2 = 3 there, pyarrow 2: the later one overwrites the earlier in silence.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import pyarrow as pa
import scipy.sparse

places = (np.array([0, 0, 1]), np.array([0, 0, 1]))
matrix = scipy.sparse.coo_array((np.array([1.0, 2.0, 3.0]), places), shape=(2, 2))
dense = pa.SparseCOOTensor.from_scipy(matrix).to_tensor().to_numpy()
print("SciPy", matrix.toarray().tolist(), "pyarrow", dense.tolist())
assert matrix.toarray().tolist() == [[3, 0], [0, 3]] and dense.tolist() == [[2, 0], [0, 3]]
PYTHON
