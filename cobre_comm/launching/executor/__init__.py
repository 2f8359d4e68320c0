"""Run ranks in the workers of an executor: one rank per worker, which stays usable afterwards."""

from cobre_comm.launching.executor.call import call_on_executor

__all__ = ["call_on_executor"]
