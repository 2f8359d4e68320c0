"""Texts of exceptions, made fit to be sent to other processes."""

from __future__ import annotations

LONGEST_TEXT = 20_000  # characters; so a report with two texts fits into an empty pipe


def text_of(error: BaseException) -> str:
    """Return the text of an exception, of bounded length, in characters that UTF-8 can encode."""
    try:
        text = str(error)
    except BaseException as failure:  # a __str__ of others may raise anything, even SystemExit
        text = f"<str() raised {type(failure).__name__}>"
    return cut(text)


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Cut a text to at most ``longest`` characters; say at its end how many were cut.

    A lone surrogate, which Python makes of an odd byte in a file name, becomes an escape sequence.
    """
    head = text[:longest].encode(errors="backslashreplace").decode()
    if len(text) <= longest and len(head) <= longest:
        return head
    kept = longest - len(_remark(len(text)))
    return head[:kept] + _remark(len(text) - kept)


def _remark(count: int) -> str:
    return f"... ({count} more characters)"
