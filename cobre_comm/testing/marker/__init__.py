"""``@pytest.mark.ranks``: its arguments, the test on each rank, and pytest's report."""
