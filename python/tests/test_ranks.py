import pickle
import types

import pytest

import forebay as fb
from forebay.ranks import announce, find_place


def place(environ=None, modules=None, gpus=0, **arguments):
    found = find_place(
        environ=environ or {}, modules=modules or {}, count_gpus=lambda: gpus, **arguments
    )
    return found.rank, found.world_size, found.source


def torch_distributed(rank, world_size, initialised=True):
    module = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: initialised,
        get_rank=lambda: rank,
        get_world_size=lambda: world_size,
    )
    return {"torch.distributed": module}


def ray_train(rank, world_size):
    context = types.SimpleNamespace(
        get_world_rank=lambda: rank, get_world_size=lambda: world_size
    )
    return {"ray.train": types.SimpleNamespace(get_context=lambda: context)}


TORCHRUN = {"RANK": "3", "WORLD_SIZE": "16", "LOCAL_RANK": "3"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
PMI = {"PMI_RANK": "2", "PMI_SIZE": "5"}
SAGEMAKER = {"SM_HOSTS": '["algo-1", "algo-3", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}
SLURM_STEP = {"SLURM_PROCID": "6", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}


def test_without_a_launcher_a_process_is_alone():
    assert place()[:2] == (0, 1)


@pytest.mark.parametrize(
    "environ, expected",
    [
        (TORCHRUN, (3, 16)),
        (OPEN_MPI, (1, 4)),
        (PMI, (2, 5)),
        (SLURM_STEP, (6, 8)),
        ({**SLURM_STEP, "SLURM_STEP_NUM_TASKS": "7"}, (6, 7)),
        ({**SLURM_STEP, "PMIX_RANK": "6", "PMIX_NAMESPACE": "slurm.pmix.1.0"}, (6, 8)),
        ({**OPEN_MPI, "PMIX_RANK": "1"}, (1, 4)),
        (SAGEMAKER, (1, 3)),
        ({**SAGEMAKER, **OPEN_MPI}, (1, 4)),
        ({**SAGEMAKER, "SM_HOSTS": '["algo-2"]'}, (0, 1)),
    ],
)
def test_each_launcher_is_recognised_by_its_variables(environ, expected):
    assert place(environ)[:2] == expected


def test_the_order_is_arguments_torch_ray_torchrun_mpi_slurm():
    everything = {**TORCHRUN, **OPEN_MPI, **PMI, **SLURM_STEP}
    modules = {**torch_distributed(8, 9), **ray_train(10, 11)}
    assert place(everything, modules, rank=0, world_size=2)[:2] == (0, 2)
    assert place(everything, modules)[:2] == (8, 9)
    assert place(everything, {**modules, **torch_distributed(8, 9, False)})[:2] == (10, 11)
    assert place(everything)[:2] == (3, 16)
    assert place({**OPEN_MPI, **PMI, **SLURM_STEP})[:2] == (1, 4)
    assert place({**PMI, **SLURM_STEP})[:2] == (2, 5)


def test_ray_outside_a_training_worker_is_passed_over():
    def no_session():
        raise RuntimeError("no session")

    modules = {"ray.train": types.SimpleNamespace(get_context=no_session)}
    assert place(TORCHRUN, modules)[:2] == (3, 16)
    assert place(TORCHRUN, ray_train(None, None))[:2] == (3, 16)


# As numbers: an interactive step, a batch script, a job's outer container.
@pytest.mark.parametrize(
    "step", [None, "interactive", "batch", "4294967290", "4294967291", "4294967292"]
)
def test_slurm_counts_only_inside_a_job_step(step):
    environ = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    if step is not None:
        environ["SLURM_STEP_ID"] = step
    assert place(environ)[:2] == (0, 1)


def test_a_batch_script_of_several_tasks_is_told_that_it_is_alone(capsys):
    environ = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "17"}
    announce(find_place(environ=environ, modules={}))
    assert "SLURM_NTASKS is 8" in capsys.readouterr().err
    announce(find_place(environ={**environ, "SLURM_STEP_ID": "0"}, modules={}))
    assert capsys.readouterr().err == "forebay: rank 0/8 from Slurm\n"
    announce(find_place(environ={"SLURM_JOB_ID": "17", "SLURM_NTASKS": "1"}, modules={}))
    assert capsys.readouterr().err == ""


def test_torchrun_is_named():
    assert place({**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}) == (3, 16, "torchrun")


def test_sagemakers_hosts_are_refused_where_they_may_have_several_processes():
    with pytest.raises(fb.InvalidArgumentError, match="torchrun.*rank="):
        place(SAGEMAKER, gpus=8)
    assert place({**SAGEMAKER, **TORCHRUN}, gpus=8)[:2] == (3, 16)


def test_a_world_size_that_may_count_nodes_is_refused_with_advice():
    environ = {"RANK": "0", "WORLD_SIZE": "2"}
    with pytest.raises(fb.InvalidArgumentError, match="count nodes.*torchrun.*rank="):
        place(environ, gpus=8)
    assert place(environ, gpus=1)[:2] == (0, 2)
    assert place({**environ, "LOCAL_RANK": "0"}, gpus=8)[:2] == (0, 2)
    assert place(environ, gpus=8, rank=1, world_size=2)[:2] == (1, 2)


@pytest.mark.parametrize(
    "environ",
    [
        {"RANK": "0"},
        {"WORLD_SIZE": "2"},
        {"RANK": "2", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
        {"RANK": "x", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
        {"RANK": "-1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
        {"RANK": "0", "WORLD_SIZE": "0", "LOCAL_RANK": "0"},
        {"PMIX_RANK": "3"},
        {"SM_HOSTS": '["a", "b"]', "SM_CURRENT_HOST": "c"},
        {"SM_HOSTS": '["a", "b"]'},
        {"SM_HOSTS": "a, b"},
    ],
)
def test_half_said_or_impossible_places_are_refused(environ):
    with pytest.raises(fb.InvalidArgumentError):
        place(environ)


def test_visible_gpus_are_counted_from_the_variable(monkeypatch):
    environ = {"RANK": "0", "WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": "0,1"}
    with pytest.raises(fb.InvalidArgumentError):
        find_place(environ=environ, modules={})
    environ["CUDA_VISIBLE_DEVICES"] = "1"
    assert find_place(environ=environ, modules={}).rank == 0


def test_the_place_is_said_once(capsys):
    found = find_place(environ={**TORCHRUN, "RANK": "7"}, modules={})
    announce(found)
    announce(found)
    assert capsys.readouterr().err == "forebay: rank 7/16 from RANK and WORLD_SIZE\n"


def test_a_worker_is_of_its_makers_rank(clips, monkeypatch, capsys):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with fb.Loader(clips) as loader:
        pickled = pickle.dumps(loader)
    for name in TORCHRUN:
        monkeypatch.delenv(name)
    capsys.readouterr()
    with pickle.loads(pickled) as copy:
        assert (copy.rank, copy.world_size) == (3, 16)
    assert capsys.readouterr().err == "", "said by the process that found it"
