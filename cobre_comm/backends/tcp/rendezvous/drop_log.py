"""A log of dropped connections whose length no flood can raise."""

from __future__ import annotations

import logging

MOST_LINES = 20

_logger = logging.getLogger("cobre_comm")


class DropLog:
    """Logs each reason once for each host, a bounded number in all, then a summary."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._logged: set[tuple[str, str]] = set()
        self._dropped = 0
        self._exhausted = False

    def note(self, host: str, reason: str) -> None:
        """Count a dropped connection; log it if host and reason are new."""
        self._dropped += 1
        if len(self._logged) < MOST_LINES and (host, reason) not in self._logged:
            self._logged.add((host, reason))
            _logger.warning(
                "tcp rank %d dropped a connection from %s: it %s", self._rank, host, reason
            )

    def exhausted(self, error: OSError) -> None:
        """Log, once, that a connection could not even be accepted."""
        if not self._exhausted:
            self._exhausted = True
            _logger.warning("tcp rank %d cannot accept a connection: %s", self._rank, error)

    def close(self) -> None:
        """Log how many there were, if the lines so far do not say it."""
        if self._dropped > len(self._logged):
            _logger.warning(
                "tcp rank %d dropped %d connections during the rendezvous",
                self._rank, self._dropped,
            )  # fmt: skip
