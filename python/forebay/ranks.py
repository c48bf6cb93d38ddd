"""Which part of the data this process takes: its rank among how many.

Looked for in this order: arguments; torch.distributed, if initialised; Ray Train; RANK,
WORLD_SIZE and LOCAL_RANK (torchrun); Open MPI, PMI and PMIx; Slurm, inside a job step; SageMaker's
hosts; otherwise alone. Nothing that says half of it is passed over: two processes that both think
they are alone would train on the same data.
"""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import re
import sys

from . import check
from .errors import InvalidArgumentError


#: The source of a place among one host's processes, where each host has data of its own.
HOST_SHARE = "this host's share"
_SAGEMAKER_CONFIG = "/opt/ml/input/config/resourceconfig.json"


@dataclasses.dataclass(frozen=True)
class Place:
    rank: int
    world_size: int
    source: str  # "arguments", "torch.distributed", ...
    note: str = ""  # why it is alone where one might think otherwise


def find_place(rank=None, world_size=None, environ=None, modules=None, count_gpus=None):
    """The place of this process. ``environ``, ``modules`` and ``count_gpus`` are for tests.

    Errors: InvalidArgumentError, with advice, where the surroundings are half said, contradict
    themselves, or where WORLD_SIZE may count nodes instead of processes.
    """
    environ = os.environ if environ is None else environ
    modules = sys.modules if modules is None else modules
    if count_gpus is None:
        count_gpus = lambda: _count_gpus(environ, modules)  # noqa: E731 (costs an import or a look)
    if rank is not None or world_size is not None:
        if rank is None or world_size is None:
            raise InvalidArgumentError("rank= and world_size= belong together: give both")
        return _checked(rank, world_size, "arguments")
    return (
        _from_torch(modules)
        or _from_ray(modules)
        or _from_torchrun(environ, count_gpus)
        or _from_mpi(environ)
        or _from_slurm(environ)
        or _from_sagemaker(environ, count_gpus)
        or Place(0, 1, "a single process", _why_alone(environ))
    )


def announce(place):
    """Says once on stderr where the rank came from; nothing for a process that is plainly alone."""
    text = f"forebay: rank {place.rank}/{place.world_size} from {place.source}"
    if place.note:
        text = f"forebay: a single process: {place.note}"
    if (place.world_size > 1 or place.note) and text not in _announced:
        _announced.add(text)
        print(text, file=sys.stderr, flush=True)


def announced(rank, world_size):
    """This process was given its place by another one, which has said so."""
    _announced.add(f"forebay: rank {rank}/{world_size} from arguments")


_announced = set()


def _from_torch(modules):
    # Only where the program has imported it: the import takes seconds.
    distributed = modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return _checked(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")


def _from_ray(modules):
    train = modules.get("ray.train")
    if train is None:
        return None
    try:
        context = train.get_context()
        rank, world_size = context.get_world_rank(), context.get_world_size()
    except Exception:  # outside a training worker: which exception depends on Ray's version
        return None
    if rank is None or world_size is None:
        return None
    return _checked(rank, world_size, "Ray Train")


def _from_torchrun(environ, count_gpus):
    rank, world_size = environ.get("RANK"), environ.get("WORLD_SIZE")
    if rank is None and world_size is None:
        return None
    if rank is None or world_size is None:
        given = "RANK" if world_size is None else "WORLD_SIZE"
        raise InvalidArgumentError(
            f"{given} is set without its counterpart (RANK and WORLD_SIZE belong together); set "
            "both, or pass rank= and world_size="
        )
    if "LOCAL_RANK" not in environ and count_gpus() > 1:
        raise InvalidArgumentError(
            f"RANK={rank} and WORLD_SIZE={world_size} are set without LOCAL_RANK, and several GPUs "
            "are visible: on some platforms (PyTorchJob, DLC) they count nodes, which would give "
            "the GPUs of a node the same data; start the processes with torchrun, or pass rank= "
            "and world_size="
        )
    torchrun = "TORCHELASTIC_RUN_ID" in environ
    return _checked(rank, world_size, "torchrun" if torchrun else "RANK and WORLD_SIZE")


def _from_mpi(environ):
    for rank, world_size, source in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI"),
        ("PMI_RANK", "PMI_SIZE", "PMI"),
    ):
        if rank in environ and world_size in environ:
            return _checked(environ[rank], environ[world_size], source)
    if "PMIX_RANK" not in environ or _in_slurm_step(environ):
        return None  # srun --mpi=pmix: Slurm says the size
    raise InvalidArgumentError(
        f"PMIX_RANK={environ['PMIX_RANK']} says which rank this is, and no variable of how many; "
        "pass rank= and world_size="
    )


# Slurm's numbers for what is no step of tasks: extern, batch, interactive and their like.
_SLURM_STEPS_MOST = 0xFFFFFFF0


def _in_slurm_step(environ):
    step = environ.get("SLURM_STEP_ID", environ.get("SLURM_STEPID", ""))
    return step.isdigit() and int(step) < _SLURM_STEPS_MOST and "SLURM_PROCID" in environ


def _from_slurm(environ):
    # An interactive allocation and a batch script have SLURM_PROCID too, with one process that
    # is no part of a step.
    if not _in_slurm_step(environ):
        return None
    world_size = environ.get("SLURM_STEP_NUM_TASKS", environ.get("SLURM_NTASKS"))
    if world_size is None:
        return None
    return _checked(environ["SLURM_PROCID"], world_size, "Slurm")


def sagemaker_host(environ=None, config=_SAGEMAKER_CONFIG):
    """(number, hosts) of this host in a SageMaker job, from SM_HOSTS or its resourceconfig.json."""
    environ = os.environ if environ is None else environ
    hosts, host = _sagemaker_hosts(environ), environ.get("SM_CURRENT_HOST")
    if not hosts:
        try:
            with open(config, encoding="utf-8") as file:
                said = json.load(file)
            hosts, host = said["hosts"], said["current_host"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidArgumentError(
                "distribution=\"ShardedByS3Key\": neither SM_HOSTS nor SageMaker's "
                "resourceconfig.json says which host this is: pass host=(number, hosts)"
            ) from None
    if host not in hosts:
        raise InvalidArgumentError(
            f"the current host {host!r} is not one of {hosts}: pass host=(number, hosts)"
        )
    return sorted(hosts).index(host), len(hosts)


def within_host(hosts, environ=None, modules=None, count_gpus=None):
    """The place among the processes of this host, one of so many, by the launcher's variables.

    Errors: InvalidArgumentError where there are several on a host and nothing says which this is.
    """
    environ = os.environ if environ is None else environ
    pairs = (("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
             ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"))  # fmt: skip
    for rank, size in pairs:
        if rank in environ and size in environ:
            return _checked(environ[rank], environ[size], HOST_SHARE)
    everywhere = find_place(environ=environ, modules=modules, count_gpus=count_gpus)
    if everywhere.world_size > hosts:
        raise InvalidArgumentError(
            f"{everywhere.source} says {everywhere.world_size} processes, on {hosts} hosts: pass "
            "rank= and world_size= among those of this host, or set LOCAL_RANK and LOCAL_WORLD_SIZE"
        )
    return Place(0, 1, HOST_SHARE)


def _sagemaker_hosts(environ):
    try:
        hosts = json.loads(environ.get("SM_HOSTS", "[]"))
    except ValueError:
        hosts = None
    if not isinstance(hosts, list):
        raise InvalidArgumentError(f"SM_HOSTS={environ['SM_HOSTS']!r} is no list of hosts")
    return hosts


def _from_sagemaker(environ, count_gpus):
    # A training job without a distribution runs its script once on each host. One with a
    # distribution has torchrun's or Open MPI's variables, and did not come this far.
    hosts = _sagemaker_hosts(environ)
    if len(hosts) < 2:
        return None
    host = environ.get("SM_CURRENT_HOST")
    if host not in hosts:
        raise InvalidArgumentError(
            f"SM_CURRENT_HOST={host!r} is not one of SM_HOSTS={hosts}; pass rank= and world_size="
        )
    if count_gpus() > 1:
        raise InvalidArgumentError(
            f"SM_HOSTS names {len(hosts)} hosts and several GPUs are visible: a process for each "
            "GPU would get its host's data; start them with torchrun (distribution={'torch_"
            "distributed': {'enabled': True}}), or pass rank= and world_size="
        )
    return _checked(sorted(hosts).index(host), len(hosts), "SageMaker's hosts")


def _why_alone(environ):
    tasks = environ.get("SLURM_NTASKS", "1")
    if "SLURM_JOB_ID" in environ and tasks != "1":
        return f"SLURM_NTASKS is {tasks}, but this is no step of the job; srun starts one"
    return ""


def _checked(rank, world_size, source):
    try:
        rank, world_size = (int(v) if isinstance(v, str) else v for v in (rank, world_size))
    except ValueError:
        raise InvalidArgumentError(
            f"{source}: rank {rank!r} of {world_size!r} are no integers"
        ) from None
    world_size = check.integer(f"world_size ({source})", world_size, least=1, most=2**31 - 1)
    rank = check.integer(f"rank ({source})", rank, least=0, most=world_size - 1)
    return Place(rank, world_size, source)


def _count_gpus(environ, modules):
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([name for name in visible.split(",") if name.strip() not in ("", "-1")])
    torch = modules.get("torch")
    if torch is not None and getattr(torch, "cuda", None) is not None:
        return torch.cuda.device_count()
    return len([p for p in glob.glob("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia[0-9]+", p)])
