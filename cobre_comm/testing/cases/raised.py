"""What a call raises."""


def met(call, *args, **keywords):
    """Return what a call raises, or None."""
    try:
        call(*args, **keywords)
    except BaseException as error:
        return error
    return None


def raises(error, call, *args):
    """Return what a call raises, which must be of that class."""
    caught = met(call, *args)
    if caught is None:
        raise AssertionError(f"{call} did not raise {error}")
    if not isinstance(caught, error):
        raise caught
    return caught
