"""The problem of one stage: its arrays in scaled units, the cuts on it, and its solution.

A stage is solved at one point (incoming volumes) and one opening (inflows and demand).
"""
