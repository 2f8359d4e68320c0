"""What an exception of others says, so that it can be told to other processes."""

from __future__ import annotations

LONGEST_TEXT = 20_000  # characters; a report of two texts fits into an empty pipe


def text_of(error: BaseException) -> str:
    """Return what an exception says: of bounded length, and nothing that UTF-8 cannot encode."""
    try:
        text = str(error)
    except BaseException as failure:  # a __str__ of others may raise anything, SystemExit too
        text = f"<str() raised {type(failure).__name__}>"
    return cut(text)


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text that has at most so many characters; what was cut says how much was cut.

    A lone surrogate, which stands for a byte of a file name that is no text, becomes its number.
    """
    head = text[:longest].encode(errors="backslashreplace").decode()
    if len(text) <= longest and len(head) <= longest:
        return head
    kept = longest - len(_remark(len(text)))
    return head[:kept] + _remark(len(text) - kept)


def _remark(count: int) -> str:
    return f"... ({count} more characters)"
