"""``@pytest.mark.ranks``: the arguments of the mark, the test on each rank, and pytest's report."""
