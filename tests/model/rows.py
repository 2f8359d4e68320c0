"""The rows of the protocol of leaders, in the language of the model: ``model/rows.pml``.

python -m tests.model.rows writes the file.
"""

import pathlib

from cobre_kernels.nodes import protocol

PATH = pathlib.Path(__file__).parents[2] / "model" / "rows.pml"
HEAD = """\
/* The rows of kernels/cobre_kernels/nodes/protocol.py, written by `python -m tests.model.rows`. A
 * test compares the two.
 */
"""


def _names(first, count):
    """Return the names of ``count`` numbers of the protocol, in the order of the numbers."""
    names = list(vars(protocol))
    return names[names.index(first) :][:count]


STATES = _names("OUTSIDE", len(protocol.STATES))
EVENTS = _names("NODE_IS_IN", len(protocol.EVENTS))


def promela():
    """Return the text of the file."""
    lines = [f"#define {name} {getattr(protocol, name)}" for name in (*STATES, *EVENTS)]
    lines += [f"#define NOTHING {2**8 - 1}", "", "/* Where an event leads, or NOTHING. */"]
    leads = "NOTHING"
    for row in reversed(protocol.ROWS):
        event = EVENTS[row.event]
        for state in reversed(row.states):
            name, following = STATES[state], STATES[state if row.next is None else row.next]
            leads = f"((s) == {name} && (e) == {event} -> {following} : \\\n    {leads})"
    lines.append(f"#define LEADS(s, e) \\\n    {leads}")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(promela())
