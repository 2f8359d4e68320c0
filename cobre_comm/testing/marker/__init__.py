"""``@pytest.mark.ranks``: what the mark says, the test on each rank, what pytest shows of it."""
