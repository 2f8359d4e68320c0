"""The table of cases as classes of tests that pytest collects, for our backends and for others.

``cobre_comm.testing.conformance`` is the public name of this package.
"""
