#!/usr/bin/env bash
# mpich 5.0.2: one `Allreduce` with MPI.MAX leaves NaN on one rank and 1 on the other, and of equal elements makes NaN of half.
#
# Guess: whatever the maximum of NaN and 1 is, every rank gets the same: section 6.9.6
# "All-Reduce" of MPI-4.1 says that all members of the group get the result. And equal elements of one
# array have equal maxima.
# Done: on two ranks an array of NaN meets an array of ones, with 1 and with 100 elements; NaN on either rank.
# Seen: of one element, the rank without the NaN gets NaN and the other gets 1. Of 100 equal elements 50 are
# NaN, on both ranks. "Did a norm overflow", asked by MPI.MAX, is answered yes by one rank and no by the other,
# which then part; asked by the maximum of a flag, `isnan(norm)`, both say yes. openmpi 5.0.11 agrees between
# ranks, but not between elements.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mpi4py==4.1.2 mpich==5.0.2 numpy==2.4.6
cat > "$folder/program.py" <<'PYTHON'
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD


def nans_by_rank(holder: int, size: int) -> list[int]:
    values = np.full(size, np.nan if world.rank == holder else 1.0)
    most = np.empty(size)
    world.Allreduce(values, most, MPI.MAX)
    return world.allgather(int(np.isnan(most).sum()))


for size in (1, 100):
    for holder in (0, 1):
        seen = nans_by_rank(holder, size)
        if world.rank == 0:
            print(f"{size:3} elements, NaN on rank {holder}: NaN in the maximum, on rank 0 and 1: {seen}")
        assert seen == ([int(rank != holder) for rank in (0, 1)] if size == 1 else [50, 50])
flag, most = np.array([float(world.rank == 0)]), np.empty(1)
world.Allreduce(flag, most, MPI.MAX)
assert most[0] == 1
PYTHON
"$folder/venv/bin/mpiexec" -n 2 "$folder/venv/bin/python" "$folder/program.py"
