"""Tracebacks of Ctrl-C, held back from the output of ranks, so that equal ones are shown once.

Every rank gets the signal, and on each rank Python prints the traceback by itself, even if the rank
has not met the others yet. All that a launcher can do is to take the traceback out of stderr.
"""

from __future__ import annotations

_HEAD = b"Traceback (most recent call last):"
_LAST = b"KeyboardInterrupt"


class Sieve:
    """Takes tracebacks of Ctrl-C out of the stderr of one rank."""

    def __init__(self) -> None:
        self.is_on = False  # True after Ctrl-C; until then everything passes
        self.taken = b""  # the last traceback that was taken out
        self._begun: list[bytes] = []  # the lines so far of a traceback without its last line

    def sift(self, text: bytes) -> bytes:
        """Return what to show of these whole lines, and of the lines that were held back before."""
        if not self.is_on:
            return text
        shown: list[bytes] = []
        for line in text.splitlines(keepends=True):
            if line.rstrip() == _HEAD:
                shown += self._begun
                self._begun = [line]
            elif not self._begun:
                shown.append(line)
            else:
                self._begun.append(line)
                if not line.startswith(b"  "):
                    shown += self._ended(line)
        return b"".join(shown)

    def rest(self) -> bytes:
        """Return the unfinished traceback of a rank that has ended."""
        text, self._begun = b"".join(self._begun), []
        return text

    def _ended(self, line: bytes) -> list[bytes]:
        text, self._begun = self._begun, []
        if not line.startswith(_LAST):
            return text
        self.taken = b"".join(text)
        return []
