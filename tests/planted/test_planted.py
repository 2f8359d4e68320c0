"""The conformance suite finds faults that are planted in copies of the kernels.

CATCHERS has the tests that find each fault. On kernels without a fault, CI runs all of these tests,
and `make test` runs most of them (README.md).
"""

import pathlib

import pytest
from numba import config

from tests.planted.catchers import CATCHERS, PACKAGE_CATCHERS
from tests.planted.running import (
    compile_faults,
    copy_package,
    load_faults,
    make_sources,
    run_suite,
)

pytestmark = [
    pytest.mark.timeout(2000),
    pytest.mark.skipif(config.DISABLE_JIT, reason="the faults are in compiled kernels"),
]

ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 900
# One short test of each collective, for collectives that the planted faults leave right.
BYSTANDERS = {
    "allgatherv": "TestAllgatherv::test_send_may_be_read_only",
    "allreduce": "TestAllreduce::test_sum_of_four_with_op_left_out",
    "broadcast": "TestBroadcast::test_root_left_out",
    "gatherv": "TestGatherv::test_far_apart",
    "barrier": "TestBarrier::test_three_in_a_row",
}
FAULTS, PACKAGE_FAULTS = load_faults().FAULTS, load_faults().PACKAGE_FAULTS


def bystanders(fault):
    return [test for kernel, test in BYSTANDERS.items() if kernel != fault.kernel]


@pytest.fixture(scope="session")
def compiled(request):
    """Compile the faults that the chosen tests need; return their names."""
    asking = [item for item in request.session.items if "outcomes" in item.fixturenames]
    names = sorted({i.callspec.params["name"] for i in asking if hasattr(i, "callspec")})
    compile_faults(names, timeout_s=LIMIT_S)
    return names


@pytest.fixture(scope="session")
def outcomes(compiled, tmp_path_factory):
    """Return the tests that failed and that passed, with each of these faults and with no fault."""
    catchers = sorted({test for name in compiled for test in CATCHERS[name]})
    tests = [f"TestNone::{test}" for test in [*catchers, *BYSTANDERS.values()]]
    for name in compiled:
        fault = FAULTS[name]
        tests += [f"{fault.class_name}::{t}" for t in [*CATCHERS[name], *bystanders(fault)]]
    return run_suite(tests, tmp_path_factory.mktemp("planted") / "report.xml", timeout_s=LIMIT_S)


def test_every_patch_fits_its_kernel():
    assert set(FAULTS) == set(CATCHERS)
    assert set(PACKAGE_FAULTS) == set(PACKAGE_CATCHERS)
    make_sources(FAULTS)
    faults = load_faults()
    for fault in [*PACKAGE_FAULTS.values(), *faults.REPOSITORY_FAULTS.values()]:
        faults.patched((ROOT / fault.path).read_text(), fault.hunks)


@pytest.mark.slow
def test_without_a_fault_all_pass(outcomes):
    tallies = {test: t for test, t in outcomes.items() if test.startswith("TestNone::")}
    assert not {test: tally.failed for test, tally in tallies.items() if tally.failed}
    assert sum(len(tally.passed) for tally in tallies.values()) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(outcomes, name):
    found, all_there = [], []
    for test in CATCHERS[name]:
        failed = outcomes[f"{FAULTS[name].class_name}::{test}"].failed
        assert failed, f"{test} passes all the same: {FAULTS[name].story}"
        found += failed
        all_there += outcomes[f"TestNone::{test}"].passed
    for caller in ("python", "njit"):
        if any(caller in instance for instance in all_there):
            assert any(caller in instance for instance in found), found


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_others_pass(outcomes, name):
    for test in bystanders(FAULTS[name]):
        tally = outcomes[f"{FAULTS[name].class_name}::{test}"]
        assert tally.passed
        assert not tally.failed


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGE_FAULTS)
def test_fault_of_the_package_is_found_where_it_is(name, tmp_path):
    copy_package(name, tmp_path)
    tests = [f"TestNone::{test}" for test in PACKAGE_CATCHERS[name]]
    tallies = run_suite(tests, tmp_path / "report.xml", timeout_s=LIMIT_S, first=tmp_path)
    for test in tests:
        assert tallies[test].failed, f"{test} passes all the same: {PACKAGE_FAULTS[name].story}"
        if "/jit/" in PACKAGE_FAULTS[name].path:
            assert not [instance for instance in tallies[test].failed if "python" in instance]
