"""Functions that make a call, and return the exception that the call raises."""


def met(call, *args, **keywords):
    """Return the exception that a call raises, or None."""
    try:
        call(*args, **keywords)
    except BaseException as error:
        return error
    return None


def raises(error, call, *args, **keywords):
    """Return the exception that a call raises; fail unless it is of the given class."""
    caught = met(call, *args, **keywords)
    if caught is None:
        raise AssertionError(f"{call} did not raise {error}")
    if not isinstance(caught, error):
        raise caught
    return caught
