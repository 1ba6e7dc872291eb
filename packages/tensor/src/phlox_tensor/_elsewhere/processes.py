"""What other libraries call what processes do together."""

from __future__ import annotations

from typing import Final

_DEVICE: Final = "  # of an x on px.Distributed(device, group)"
_VALUES: Final = "distributed.all_gather_object(group, value)"
_LEARNER: Final = "train.Learner(..., group=group)"
_SHARDED: Final = "train.Learner(..., group=group, shard_optimizer=True)"

# Sorted: names of torch.distributed, Accelerate, DeepSpeed and Horovod -> what to type.
PROCESSES: Final = {
    "Accelerator": "train.Learner(model, optimizer, 1e-3, group=distributed.init())",
    "DistributedDataParallel": "train.Learner(model, optimizer, 1e-3, group=group)",
    "DistributedOptimizer": "train.Learner(model, optimizer, 1e-3, group=group)",
    "DistributedSampler": "run.batches()  # of train.Run(folder, learner, loader): the own rows",
    "FullyShardedDataParallel": _SHARDED,
    "ReduceOp": "px.all_reduce(x)  # a sum; the mean is px.all_reduce(x) / group.size",
    "all_gather": f"px.all_gather(x){_DEVICE}",
    "all_gather_object": _VALUES,
    "all_reduce": f"px.all_reduce(x){_DEVICE}",
    "all_to_all": "px.all_gather(x)  # and a part of it; arrays by group.all_to_all",
    "allgather": f"px.all_gather(x){_DEVICE}",
    "allreduce": f"px.all_reduce(x){_DEVICE}",
    "barrier": "group.barrier()",
    "broadcast": f"px.broadcast(x, 0){_DEVICE}",
    "broadcast_object_list": "distributed.broadcast_object(group, value)",
    "broadcast_parameters": f"{_LEARNER}  # takes the model of rank 0",
    "destroy_process_group": "group = distributed.init()  # nothing ends it but the process",
    "gather_object": _VALUES,
    "get_rank": "group.rank",
    "get_world_size": "group.size",
    "init_process_group": "group = distributed.init()",
    "initialize": "group = distributed.init()",
    "is_initialized": "group.size > 1",
    "is_main_process": "group.rank == 0",
    "local_process_index": "group.local_rank",
    "local_world_size": "group.local_size",
    "new_group": "from mpi4py import MPI; distributed.Mpi(MPI.COMM_WORLD.Split(color))",
    "num_processes": "group.size",
    "pmean": f"px.all_reduce(x) / group.size{_DEVICE}",
    "process_index": "group.rank",
    "psum": f"px.all_reduce(x){_DEVICE}",
    "reduce_scatter": f"px.reduce_scatter(x){_DEVICE}",
    "wait_for_everyone": "group.barrier()",
    "world_size": "group.size",
}

# What is said of processes alone: elsewhere such names are those of other things.
OF_PROCESSES: Final = {
    **PROCESSES,
    "DeviceMesh": "group = distributed.init()  # one axis: the parts of a batch",
    "FSDP": _SHARDED,
    "ZeroRedundancyOptimizer": _SHARDED,
    "accumulate": f"{_LEARNER}  # with microbatches=8: adds up, and sends once",
    "checkpoint": "train.Run(folder, learner, loader)  # saves, and goes on with other numbers",
    "fsdp": _SHARDED,
    "gather": f"px.all_gather(x){_DEVICE}",
    "get_local_rank": "group.local_rank",
    "init_device_mesh": "group = distributed.init()  # one axis: the parts of a batch",
    "irecv": "px.broadcast(x, 0)  # from one rank to all; there is no pair",
    "is_available": "group.size > 1",
    "isend": "px.broadcast(x, 0)  # from one rank to all; there is no pair",
    "launch": "phlox launch -n 4 train.py  # in a shell",
    "local_rank": "group.local_rank",
    "local_size": "group.local_size",
    "no_sync": f"{_LEARNER}  # with microbatches=8: adds up, and sends once",
    "rank": "group.rank",
    "recv": "px.broadcast(x, 0)  # from one rank to all; there is no pair",
    "reduce": f"px.all_reduce(x){_DEVICE}",
    "scatter": "px.broadcast(x, 0)  # and a part of it",
    "send": "px.broadcast(x, 0)  # from one rank to all; there is no pair",
    "set_epoch": "for batch in run.batches(): ...  # each epoch has an order of its own",
    "size": "group.size",
}
