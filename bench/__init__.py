"""Benchmarks: the times of cobre_comm beside those of its peers, in the same processes.

`cases` lists the measurements, `ranks` has the programs of the ranks, `report` turns results into
pages, and `studies` are measurements behind single design decisions.
"""
