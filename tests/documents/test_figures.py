"""In prose, a number with a unit is a limit of the code, or a size of a recorded benchmark.

On a design page any other number is allowed too, if the same section names the command that has
measured it. In tables, and in parts that a program fills, all numbers are allowed.
"""

import re
import tomllib
from pathlib import Path

import pytest
from cobre_kernels.collective.seeing import journal
from cobre_kernels.collective.waiting import patience
from cobre_kernels.machine import copy
from cobre_kernels.nodes import allreduce, waiting
from cobre_kernels.nodes import lanes as lane_kernels
from cobre_kernels.shm import allreduce as shm_allreduce
from cobre_kernels.shm import reading, slot, ways
from cobre_kernels.tcp.progress import control

from bench.ranks.work import POINT, SDDP_BYTES, STAGES, TRAJECTORIES
from bench.report.data import RECORDED
from cobre_comm import TcpConfig, config
from cobre_comm.arguments import slow_path
from cobre_comm.backends.nodes import configs, lanes
from cobre_comm.backends.shm import buffers
from cobre_comm.backends.tcp.rendezvous import coordinator
from cobre_comm.backends.wait_times import SPIN_BETWEEN_NODES_US
from cobre_comm.check import large_calls
from cobre_comm.contract import work
from cobre_comm.processes import environment, escalation, restarts
from cobre_comm.system import running_time

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
KIB, MIB = 2**10, 2**20

UNIT = (
    r"(?:ns|µs|us|ms|s|seconds?|minutes?|hours?|[kKMGT]i?B|[kMG]b/s"
    r"|times (?:as|the time)|of (?:\w+ )?\w+'s time)"
)
FIGURE = re.compile(rf"(?<![\w.*-])\d[\d.,]*(?: (?:to|and|or) \d[\d.,]*)? {UNIT}(?![\w*-])(?:/s)?")
# What is no prose: parts that a program fills, fenced blocks, rows of tables, spans of code.
NO_PROSE = re.compile(
    r"<!-- site$.*?-->|<!-- .*?<!-- (?:[\w-]+ )?ends? -->|^```.*?^```|^\|.*?$|`[^`\n]+`",
    re.DOTALL | re.MULTILINE,
)
A_RUN = re.compile(r"`(?:python -m )?bench[./]|`make [a-z]|`python -m tests\.|of the tag `v")
TCP = TcpConfig(rank=0, size=1)
# Limits in the code, in the words of prose.
LIMITS = {
    f"{TCP.timeout_s:g} s",
    # the waits after which a line names a late rank
    *(f"{config.LATE_S * factor:g} s" for factor in (1, 2, 4)),
    f"{escalation.GRACE_S:g} s",
    f"{escalation.CULPRIT_S:g} s",
    f"{escalation.CULPRIT_OVER_MPI_S:g} s",
    *(f"{restarts.FIRST_PAUSE_S * factor:g} s" for factor in (1, 2, 4)),
    f"{restarts.AT_ONCE_S:g} s",
    f"{restarts.LONGEST_PAUSE_S:g} s",
    f"{int(environment.CONNECT_TIMEOUT_MS) / 60_000:g} minutes",
    f"{running_time.TICK_S * 1e3:g} ms",
    f"{running_time.STALL_S:g} s",
    f"{waiting.ANSWER_NS / 1e9:g} s",
    f"{waiting.REPORT_NS / 1e9:g} s",
    f"{control.EXPLANATION_MS / 1e3:g} s",
    f"{SPIN_BETWEEN_NODES_US:g} µs",
    *(f"{patience.FIRST_NAP_NS * factor / 1e3:g} us" for factor in (1, 2)),
    f"{patience.LONGEST_NAP_NS / 1e6:g} ms",
    f"{lanes.LEADER_MBPS / 1000:g} Gb/s",
    f"{lane_kernels.LEAST_SHARE_BYTES // KIB} KiB",
    f"{allreduce.GATHER_BYTES // KIB} KiB",
    f"{coordinator.EAGER_BYTES // KIB} KiB",
    f"{coordinator.FAR_EAGER_BYTES // KIB} KiB",
    f"{copy.SHORT_BYTES // KIB} KiB",
    f"{copy.STREAM_BYTES // MIB} MiB",
    f"{slot.STREAMED_BYTES // KIB} to {slot.TIMED_FILL_BYTES // KIB} KiB",
    f"{shm_allreduce.HALVES_BYTES // KIB} KiB",
    f"{shm_allreduce.HALF_BYTES // KIB} KiB",
    f"{(1 << ways.LEAST_SHIFT) // KIB} KiB",
    f"{reading.PIECE_BYTES // MIB} MiB",
    f"{large_calls.RECEIVED_BYTES // MIB} MiB",
    f"{configs.STAGING_BYTES // MIB} MiB",
    f"{buffers.ALL_BUFFERS_BYTES // MIB} MiB",
    f"{buffers.SHARED_CAST_BYTES // MIB} MiB",
    f"{buffers.CACHED_CAST_BYTES // KIB} KiB",
    f"{buffers.LARGEST_BUFFER_BYTES // 3 // MIB} MiB",  # the size of a slot
    f"{SDDP_BYTES / 1e6:.0f} MB",
    f"{STAGES * TRAJECTORIES * POINT * 8 / 1e6:.0f} MB",
}
# Sizes in the names of recorded rows, and the cables over which runs were recorded.
SIZES = {
    size.replace("gbit", " Gb/s")
    for path in RECORDED.glob("*.json")
    for size in re.findall(r"\d[\d.]* (?:[kKM]i?B|[MG]b/s)|\d+gbit", path.read_text())
}


def strange_figures(text, of_a_design):
    """Return the figures in the prose of a page that should be in a table, or be removed."""
    found = []
    for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        if of_a_design and A_RUN.search(section):
            continue
        prose = " ".join(NO_PROSE.sub("\n", section).split())
        found += [f for f in FIGURE.findall(prose) if f not in LIMITS | SIZES]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_has_no_figure_of_a_run(page):
    assert strange_figures(page.read_text(), page.parent.name == "design") == []


@pytest.mark.parametrize(
    "figure",
    [
        "1.7 µs",
        "0.38 ms",
        "12 to 14 s",
        "3.5 GB/s",
        "1.3 times as",
        "0.3 of Open MPI's time",
        "46 MB",
        "7 minutes",
    ],
)
def test_a_planted_figure_is_found(figure):
    for page in (ROOT / "README.md", DOCS / "start.md", DOCS / "design" / "waiting.md"):
        planted = (
            f"{page.read_text()}\n\n## Cost\n\nIt takes {figure.replace(' ', chr(10), 1)} fast.\n"
        )
        assert strange_figures(planted, page.parent.name == "design") == [figure]
    row, fence = f"| cost | {figure} |\n", f"```\n{figure}\n```\n"
    assert strange_figures(row + fence, of_a_design=False) == []


def test_limits_are_those_of_the_code():
    page = (DOCS / "howto" / "will-it-work.md").read_text()
    rows = dict(re.findall(r"^\| (.+?) \| (.+) \|$", page.partition("## Limits")[2], re.MULTILINE))
    sharers = buffers.ALL_BUFFERS_BYTES // buffers.SMALLEST_BUFFER_BYTES
    kib, mib = buffers.SMALLEST_BUFFER_BYTES // KIB, buffers.LARGEST_BUFFER_BYTES // MIB
    needs = {each.partition(">=")[0]: each for each in PROJECT["dependencies"]}
    [lowest, beyond] = re.findall(r"0\.(\d+)", needs["numba"])
    integers = slow_path.REDUCIBLE.removeprefix("use ").partition(", float32")[0]
    for row, words in {
        "ranks of a job": f"{config.MAX_RANKS:,}",
        "items of a work": f"2**{work.LARGEST_COUNT.bit_length() - 1}",
        "phases": f"{journal.PHASES}, with names of at most {journal.NAME_BYTES} bytes",
        "dtypes of `allreduce`": integers.replace("..", " to "),
        "collective buffers on one machine": f"{kib} KiB to {mib} MiB a rank; "
        f"{buffers.ALL_BUFFERS_BYTES // MIB} MiB in all up to {sharers} ranks",
        "a wait": f"{TCP.timeout_s:g} s in a collective, "
        f"{TCP.connect_timeout_ms / 1000:g} s while ranks meet",
        "Python": PROJECT["requires-python"].removeprefix(">="),
        "numba, NumPy": f"0.{lowest} to 0.{int(beyond) - 1}; {needs['numpy'][7:]} or later",
        "MPI, if any": PROJECT["optional-dependencies"]["mpi"][0].replace(">=", " ") + " or later",
    }.items():
        assert words in rows[row]
