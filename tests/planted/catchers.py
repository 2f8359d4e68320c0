"""The tests of the suite that find each planted fault."""

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
# A fault in compiled methods is found by callers in @njit alone; a fault in Python by all callers.
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

# For each mistake in the repository: the shortest run that finds it, a test of that run, and a word
# that is in the names of some instances of the test.
ZEROS = "conformance/test_table.py::TestTable::TestAllreduce::test_earlier_zero_and_first_nan_stay"
ENDINGS = "launch/run/test_endings.py::test_first_failure_ends_the_job_with_its_code"
ORDERINGS = "kernels/threads/test_threads.py::test_words_see_only_what_is_stated"
PAGE = "conformance/test_errors.py::test_the_page_has_what_a_refused_call_and_a_lost_rank_say"
LEAVING = "faults/test_leaving.py::test_a_rank_that_fails_awaits_who_writes_to_its_array"
LATE = "faults/test_leaving.py::test_a_late_rank_writes_to_no_output_of_a_rank_that_has_given_up"
CHANGED = "faults/test_leaving.py::test_a_rank_that_reads_what_a_program_has_changed_gets_an_error"
REPOSITORY_CATCHERS = {
    "floored-stripe": ("make quick", ZEROS, "tcp-4"),
    "order-of-two": ("make quick", ZEROS, "shm-2"),
    "relaxed-store": ("CI", ORDERINGS, ""),
    "unawaited-writer": ("make test", LEAVING, ""),
    "unheeding-fold": ("make test", CHANGED, "region"),
    "unheeding-reader": ("make test", CHANGED, "broadcast"),
    "unheeding-writer": ("make test", LATE, "both"),
    "wrong-exit-code": ("make quick", ENDINGS, "kill"),
    "wrong-sentence": ("make quick", PAGE, ""),
}
