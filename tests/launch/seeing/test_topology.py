"""The launcher and the CPUs in ``topology``; a case of the suite tries where ranks are."""

import os

import pytest
from cobre_kernels.machine import code

from cobre_comm import Topology, launch
from cobre_comm.backends.nodes.node_order import LIST_BYTES, _listed, _numbers
from cobre_comm.errors import runs
from cobre_comm.reports.launcher import launcher_name
from cobre_comm.system import cpus
from cobre_comm.system.cpus import read_cores
from tests.launch.command import cobre
from tests.sysfs import write_sysfs

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
def test_our_launchers(written):
    nodes = {"COBRE_TEST_PRETEND_NODES": "0,1,1"}
    done = cobre("run", "-n", 3, "--no-prefix", "--backend", "tcp", written(PRINTS), **nodes)
    title, first, second, last, kernels = done.stdout.splitlines()
    assert title.split() == ["node", "host", "ranks", "cpus", "numa"]
    assert (first.split()[:3:2], second.split()[:3:2]) == (["0", "0"], ["1*", "1-2"])
    assert last == "launcher: cobre-comm run"
    assert kernels == f"kernels: {code.description()}"
    assert launch(launcher, 2).values == ["launch"] * 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind")
@pytest.mark.parametrize("nodes", ["0", "0,1"])
def test_which_cpus_ranks_may_use(written, nodes):
    first, second = (read_cores() * 2)[:2]
    words = ["--bind", "core", "--no-prefix", "--backend", "tcp"]
    told = cobre("run", "-n", 2, *words, written(PRINTS), COBRE_TEST_PRETEND_NODES=nodes).stdout
    expected = [[",".join(runs(core.cpus)), f"{core.numa}"] for core in (first, second)]
    assert [line.split()[3:] for line in told.splitlines()[1:-2]] == (
        expected if first != second else [expected[0]] * len(set(nodes) - {","})
    )


def test_rows_of_ranks_that_may_run_on_the_same_cpus():
    of_ranks = ((0, 1, 48, 49), (2,), (0, 1, 48, 49), ()), ((0,), (0,), (0,), ())
    told = repr(Topology(("n01", "n02"), ((0, 1, 2), (3,)), 1, "", "", *of_ranks))
    assert [line.split() for line in told.splitlines()[1:-1]] == [
        ["0", "n01", "0,2", "0-1,48-49", "0"],
        ["0", "n01", "1", "2", "0"],
        ["1*", "n02", "3", "?", "?"],
    ]
    # the topology of a backend that reports nothing
    assert "?" in repr(Topology(("n01",), ((0,),), 0, "", ""))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not tell CPUs")
def test_numa_nodes_of_cpus(tmp_path, monkeypatch):
    monkeypatch.setattr(cpus, "SYSFS", write_sysfs(tmp_path, sockets=64, numa=2, cores=1))
    usable = tuple(sorted(os.sched_getaffinity(0)))
    assert cpus.place_of() == (usable, tuple(sorted({cpu % 128 for cpu in usable})))
    assert cpus.place_of(2**22 + 1) == cpus.UNKNOWN


def test_lists_of_a_peer():
    for numbers in ((), (0,), (0, 1, 2, 8, 4095)):
        assert _numbers(_listed(numbers)) == numbers
    assert _listed(range(0, 100, 2)).strip(b"\0") == b"", "too long to be told"
    for strange in (b"9-", b"x", b"99999", b"0-1,,2", b"-3", b"\xff"):
        assert _numbers(strange.ljust(LIST_BYTES, b"\0")) == ()


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, ""),
        # srun has started torchrun, which has started the rank
        ({"TORCHELASTIC_RUN_ID": "none", **SRUN}, "torchrun"),
        (SRUN, "srun"),
        ({"PMI_SIZE": "4", **SRUN}, "srun"),  # srun's own PMI sets PMI_SIZE
        ({"PMI_SIZE": "4"}, "mpiexec"),
        # srun has started the daemons of mpiexec
        ({"OMPI_COMM_WORLD_SIZE": "4", **SRUN}, "mpiexec"),
    ],
)
def test_other_launchers(environ, name):
    assert launcher_name(environ) == name
