#!/usr/bin/env bash
# msgpack-numpy 0.4.8: a masked array loses its mask, and what was masked comes back as a number.
#
# Guess: an error or a masked array: the README says that it packs "numerical and array data types provided by numpy",
# and a datetime64 ends in a TypeError, so what it cannot keep seems to be refused.
# Done: a masked array, a matrix, a structured array and a float16 are packed and unpacked.
# Seen: the mask is gone without a word, so a mean over what was read counts the numbers that had been masked out
# (999 here). Structured arrays and float16 are kept. pickle keeps the mask.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet msgpack-numpy==0.4.8 msgpack==1.2.4 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import pickle

import msgpack_numpy
import numpy as np


def read_back(value):
    return msgpack_numpy.unpackb(msgpack_numpy.packb(value))


heights = np.ma.array([1.5, 999.0, 2.5], mask=[False, True, False])
read = read_back(heights)
print("written:", heights, "mean", heights.mean())
print("read:", read, "mean", read.mean(), type(read).__name__)
assert type(read) is np.ndarray and read.tolist() == [1.5, 999.0, 2.5], "the mask is kept now"
assert heights.mean() == 2.0 and read.mean() > 334
assert pickle.loads(pickle.dumps(heights)).mean() == 2.0
table = np.array([(1, 2.5)], dtype=[("a", "<i4"), ("b", "<f8")])
assert read_back(table).dtype == table.dtype and read_back(np.float16(1.5)).dtype == np.float16
try:
    read_back(np.datetime64("2020-01-01"))
except TypeError as error:
    print("datetime64:", error)
else:
    raise AssertionError("datetime64 is packed now")
PYTHON
