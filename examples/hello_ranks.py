"""Every rank says hello; together the ranks add up their numbers.

Run it with ``cobre-comm run -n 4 examples/hello_ranks.py``, or alone with ``python``.
"""

import numpy as np

from cobre_comm import ReduceOp, create_communicator

with create_communicator() as comm:
    print(f"hello from rank {comm.rank} of {comm.size} on {comm.backend}")
    mine = np.array([comm.rank, 1.0])
    total = np.empty_like(mine)
    comm.allreduce(mine, total, ReduceOp.SUM)
    if comm.rank == 0:
        print(f"{total[1]:.0f} ranks, whose numbers add up to {total[0]:.0f}")
