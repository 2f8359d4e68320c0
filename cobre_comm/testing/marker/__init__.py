"""``@pytest.mark.ranks``: its arguments, the test on each rank, and the report that
pytest shows.
"""
