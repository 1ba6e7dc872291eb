"""What ``torch.distributed`` calls what there is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Names there -> what to type.
NAMES: Final[Mapping[str, str]] = {
    "DistributedDataParallel": "train.Learner(model, optimizer, 1e-3, group=group)",
    "DistributedSampler": "run.batches()  # of train.Run(folder, learner, loader): the own rows",
    "FullyShardedDataParallel": "train.Learner(..., group=group, shard_optimizer=True)",
    "ReduceOp": "px.all_reduce(x)  # a sum; the mean is px.all_reduce(x) / group.size",
    "all_gather": "px.all_gather(x)  # of an x on px.Distributed(device, group)",
    "all_reduce": "px.all_reduce(x)  # of an x on px.Distributed(device, group)",
    "barrier": "group.barrier()",
    "broadcast": "px.broadcast(x, 0)  # of an x on px.Distributed(device, group)",
    "destroy_process_group": "group = distributed.init()  # nothing ends it but the process",
    "get_rank": "group.rank",
    "get_world_size": "group.size",
    "init_process_group": "group = distributed.init()",
    "is_initialized": "group.size > 1",
    "new_group": "distributed.Mpi(MPI.COMM_WORLD.Split(color))",
    "reduce_scatter": "px.reduce_scatter(x)  # of an x on px.Distributed(device, group)",
}
