"""The launcher that a rank tells of; which ranks are where is a case of the conformance suite."""

import pytest

from cobre_comm import launch
from cobre_comm.common.launcher import launcher_name
from tests.launch.command import cobre

PRINTS = """
from cobre_comm import create_communicator
with create_communicator() as comm:
    if comm.rank == 1:
        print(comm.topology())
    comm.barrier()
"""
SRUN = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}


def launcher(comm):
    return comm.topology().launcher


@pytest.mark.quick
def test_our_launchers(tmp_path):
    path = tmp_path / "prints.py"
    path.write_text(PRINTS)
    nodes = {"COBRE_TCP_PRETEND_NODES": "0,1,1"}
    done = cobre("run", "-n", 3, "--no-prefix", "--backend", "tcp", path, **nodes)
    title, first, second, last = done.stdout.splitlines()
    assert title.split() == ["node", "host", "ranks"]
    assert (first.split()[::2], second.split()[::2]) == (["0", "0"], ["1*", "1-2"])
    assert last == "launcher: cobre-comm run"
    assert launch(launcher, 2).values == ["launch"] * 2


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, ""),
        ({"TORCHELASTIC_RUN_ID": "none", **SRUN}, "torchrun"),  # which srun has started
        (SRUN, "srun"),
        ({"PMI_SIZE": "4", **SRUN}, "srun"),  # by its own PMI
        ({"PMI_SIZE": "4"}, "mpiexec"),
        ({"OMPI_COMM_WORLD_SIZE": "4", **SRUN}, "mpiexec"),  # whose daemons srun has started
    ],
)
def test_other_launchers(environ, name):
    assert launcher_name(environ) == name
