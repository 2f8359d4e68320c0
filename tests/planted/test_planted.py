"""The conformance suite finds faults that are planted in true kernels.

CATCHERS has the tests that find each fault; `make test` has these tests for the true kernels.
"""

import pathlib

import pytest
from numba import config

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
LENGTHS = "TestAllreduce::test_lengths"
CHUNKS = "TestAllreduce::test_long_in_many_small_chunks"
ZEROS = "TestAllreduce::test_earlier_zero_and_first_nan_stay"
DTYPES = ["TestAllreduce::test_dtypes"]
LAYOUTS = "TestAllgatherv::test_layouts"
CATCHERS = {
    "allgatherv-past-the-end": [LAYOUTS],
    "allreduce-past-the-end": [LENGTHS],
    "any-root": ["TestArguments::test_fields"],
    "broadcast-past-the-end": ["TestBroadcast::test_from_every_rank"],
    "dropped-chunk-allgatherv": ["TestAllgatherv::test_many_chunks"],
    "dropped-chunk-allreduce": [CHUNKS],
    "dropped-chunk-gatherv": ["TestGatherv::test_many_chunks"],
    "dropped-chunk-broadcast": ["TestBroadcast::test_many_chunks"],
    "exclusive-or": DTYPES,
    "flushed-subnormals": [LENGTHS],
    "greater-bool": DTYPES,
    "half-of-complex": DTYPES,
    "in-place-allgatherv": ["TestAllgatherv::test_own_block_in_place"],
    "in-place-allreduce": [LENGTHS],
    "kept-values": [LENGTHS],
    "later-nan": [ZEROS],
    "later-zero": [ZEROS],
    "late-told-by-all": ["TestLateLines::test_waited_for"],
    "late-untold": ["TestLateLines::test_waited_for"],
    "logical-for-bitwise": DTYPES,
    "lone-number": ["TestScalars::test_numbers"],
    "lost-stripe": [LENGTHS],
    "lost-in-large": ["TestAllgatherv::test_twenty_mebibytes"],
    "no-barrier": ["TestBarrier::test_late_rank_delays_all"],
    "no-fence": ["TestRegions::test_late_leader"],
    "odd-address-broadcast": ["TestBroadcast::test_odd_addresses"],
    "odd-address-send": ["TestAllgatherv::test_odd_addresses"],
    "one-sided-error": ["TestDisagreement::test_calls"],
    "refusal-breaks": ["TestArguments::test_fields"],
    "reverse-fold": [LENGTHS, ZEROS],
    "root-modified": ["TestBroadcast::test_from_every_rank"],
    "rounded-parts": ["TestExactSum::test_every_kind_in_every_split"],
    "send-modified": [LENGTHS],
    "skipped-zero": ["TestAllreduce::test_special_numbers"],
    "stale-allgatherv": ["TestAllgatherv::test_same_call_with_other_data"],
    "stale-allreduce": ["TestAllreduce::test_same_call_with_other_data"],
    "stale-broadcast": ["TestBroadcast::test_same_call_with_other_data"],
    "stale-slot": [CHUNKS],
    "sum-from-zero": [LENGTHS],
    "sum-in-pairs": [LENGTHS],
    "sum-rounded-once": [LENGTHS],
    "swallowed-nan": [LENGTHS],
    "swapped-blocks": [LAYOUTS],
    "swapped-equal-blocks": ["TestAllgather::test_lengths"],
    "unheard-stop": ["TestStop::test_known_after_the_same_collective"],
    "unseen-counts": ["TestDisagreement::test_calls"],
    "unseen-displacements": ["TestDisagreement::test_tables"],
    "unseen-offset": ["TestIntoRegions::test_allgatherv"],
    "unseen-root": ["TestDisagreement::test_calls"],
    "unsigned-as-signed": DTYPES,
    "vector-aligned-allreduce": ["TestAllreduce::test_odd_addresses"],
    "written-gaps": [LAYOUTS],
    "wrong-last": ["TestStats::test_who_came_last"],
}
# A fault in compiled methods strikes callers in @njit alone; a fault in Python, every caller.
PACKAGE_CATCHERS = {
    "block-copied": ["TestRegions::test_populate_by_block"],
    "block-unchecked": ["TestRegions::test_block_bounds"],
    "bytes-as-elements": ["TestRegions::test_populate_by_block"],
    "item-lost": ["TestWork::test_every_item_once"],
    "item-of-an-old-round": ["TestWork::test_late_reset"],
    "item-twice": ["TestWork::test_contended"],
    "lost-exception": ["TestSignals::test_interrupted"],
    "objects-of-others": [f"TestObjects::test_{name}" for name in ("allgather", "gather")],
    "objects-of-rank-0": ["TestObjects::test_broadcast"],
    "phase-not-restored": ["TestPhases::test_with_blocks"],
    "phase-of-later": ["TestPhases::test_one_comes_last"],
    "split-without-key": ["TestSplit::test_plans"],
    "swapped-extremes": ["TestScalars::test_numbers"],
}
# One short test of each collective, for those that have no fault.
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
    """Return the tests that failed and passed with each of these faults, and without a fault."""
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
