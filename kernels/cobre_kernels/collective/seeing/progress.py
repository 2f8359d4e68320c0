"""The numbers that a program has last reported while it runs, such as its bounds, by name.

The numbers lie in shared memory, which a process makes with its first report. That process alone
writes to it; ``cobre-comm status`` reads it at any time. Order of the stores of a report:
``begun``, then the values in the row of the report, and last the ``number`` of the row. All stores
are releases, and all loads are acquires. A row is whole if it has the number of the report that
belongs there, and if ``begun``, loaded after the row, is ahead of that number by less than a whole
ring of rows: then no word of a later report can have been read. When a series gets a name, the name
is stored before ``named`` counts the series.

``cobre_comm/journal/progress.py`` writes and reads these records word by word, through
``machine/access.py``. Reports are rare, so they need no kernel of their own.
"""

from cobre_kernels.collective.seeing.journal import LETTERS, NAME_WORDS
from cobre_kernels.machine.record import Record, own_rows, shared

PROGRESS_MAGIC = 0x3147525045524243  # "CBREPRG1", little-endian
REPORTS = 512  # a power of two
SERIES_ROWS = 8

QUANTITY = Record(
    "Quantity",
    "A number of a report; shared, written by the process that reports.",
    bits=shared("the bits of a float64"),
)

REPORT = Record(
    "Report",
    "The numbers of one report; shared, written by the process that reports.",
    number=shared("number of the report, from 1 on; stored last"),
    noted_ns=shared("the monotonic clock when the report was noted"),
    values=own_rows(QUANTITY, "a number for each series; NaN: not reported", SERIES_ROWS),
)

SERIES = Record(
    "Series",
    "The name of a series: of numbers that are reported again and again.",
    name=own_rows(LETTERS, "the name, with zeros behind it", NAME_WORDS),
)

PROGRESS = Record(
    "Progress",
    "What a process has reported; shared, written by that process.",
    magic=shared("PROGRESS_MAGIC, stored when pid is valid"),
    pid=shared("process id in its own PID namespace"),
    begun=shared("number of the last report that has begun"),
    named=shared("how many series have names"),
    series=own_rows(SERIES, "the series, each with its name", SERIES_ROWS),
    reports=own_rows(REPORT, "the last reports; report n is in row n modulo REPORTS", REPORTS),
)
