"""Give every number a process of its own: one that crashes or hangs costs only its number."""

import multiprocessing
import os
import time
from multiprocessing import connection
from pathlib import Path


def answer(ask, number, writer):
    """Send what `ask` returns for a number; what HiGHS prints is dropped."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
    writer.send(ask(number))


def ask_each(ask, numbers, workers, limit_s):
    """Yield every number with its answer, or with a sentence about how its process ended."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(reversed(numbers)), {}
    while waiting or running:
        while waiting and len(running) < workers:
            number = waiting.pop()
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=answer, args=(ask, number, writer))
            process.start()
            writer.close()
            running[reader] = number, process, time.monotonic() + limit_s
        ready = connection.wait(list(running), timeout=1.0)
        late = [each for each in running if time.monotonic() > running[each][2]]
        for reader in {*ready, *late}:
            number, process, _ = running.pop(reader)
            yield number, end(reader, process, reader in ready, limit_s)


def end(reader, process, is_ready, limit_s):
    """Return the answer of a process, or how it ended."""
    with reader:
        if not is_ready:
            process.kill()
            process.join()
            return f"no answer within {limit_s:.0f} s"
        try:
            told = reader.recv()
        except EOFError:
            told = None
        process.join()
        return told or f"no answer: its process ended with {process.exitcode}"
