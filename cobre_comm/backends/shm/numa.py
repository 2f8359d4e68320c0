"""Interleaves pages over NUMA nodes, if the machine has several."""

from __future__ import annotations

import ctypes
import platform

from cobre_comm.system import cpus
from cobre_comm.system.log import logger

_MBIND_NUMBERS = {"x86_64": 237, "aarch64": 235}
_MPOL_INTERLEAVE = 3


def online_nodes() -> list[int]:
    """Return the numbers of the NUMA nodes of this machine; ``[0]`` if the system does not tell."""
    return cpus.numbers_in(cpus.SYSFS / "node/online") or [0]


def interleave(address: int, nbytes: int) -> bool:
    """Spread the pages of a new mapping over all NUMA nodes; return whether this was possible.

    Source: mbind(2). If the system refuses, the program gets a warning, and continues.
    """
    nodes = online_nodes()
    number = _MBIND_NUMBERS.get(platform.machine())
    if number is None or len(nodes) < 2:
        return False
    mask_bits = max(nodes) + 2
    mask = (ctypes.c_ulong * (mask_bits // 64 + 1))()
    for node in nodes:
        mask[node // 64] |= 1 << node % 64
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (number, address, nbytes, _MPOL_INTERLEAVE)
    result = libc.syscall(
        *(ctypes.c_long(a) for a in arguments), mask, ctypes.c_long(mask_bits), ctypes.c_long(0)
    )
    if result != 0:
        logger.warning("pages are not interleaved: mbind failed, errno %d", ctypes.get_errno())
    return bool(result == 0)
