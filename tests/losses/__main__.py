"""Train again and again while ranks are killed, and compare the cuts with an undisturbed training.

    python -m tests.losses --way survive --trainings 100 --seed 1

Prints a table with a row for each way: how many trainings ended with the cuts of the undisturbed
training, and how long after a kill the remaining or restarted ranks printed the line that follows
their first collective. If a training ends with other cuts or none, all of its output is shown.
"""

import argparse
import random
import statistics
import tempfile

from tests.losses.training import RANKS, WAYS, Training, undisturbed

HEADER = (
    "| way | trainings | ranks lost | same cuts | seconds to go on: least | median | most |\n"
    "|---|---|---|---|---|---|---|"
)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.losses")
    parser.add_argument("--way", choices=WAYS, action="append", help="default: all")
    parser.add_argument("--trainings", type=int, default=10, help="of each way")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rows, misses, expected = [], 0, undisturbed()
    for way in chosen.way or WAYS:
        lost, same, delays = 0, 0, []
        for number in range(chosen.trainings):
            seed = f"{way} {chosen.seed + number}"
            times = random.Random(seed).randrange(1, RANKS)
            with tempfile.TemporaryDirectory() as folder:
                outcome = Training(way, folder, seed).run(times)
            is_same = (outcome.code, outcome.cuts_sha256) == (0, expected)
            lost, same = lost + outcome.struck, same + is_same
            delays += outcome.delays_s
            told = " ".join(f"{delay:.2f}" for delay in outcome.delays_s)
            print(f"{seed}: {outcome.struck} ranks lost, same {is_same}, {told} s", flush=True)
            if not is_same:
                misses += 1
                print(f"exit code {outcome.code}\n{outcome.said}", flush=True)
        times = [min(delays), statistics.median(delays), max(delays)] if delays else []
        shown = " | ".join(f"{time:.2f}" for time in times)
        rows.append(f"| `{way}` | {chosen.trainings} | {lost} | {same} | {shown} |")
    print("\n".join([HEADER, *rows]))
    return misses


if __name__ == "__main__":
    raise SystemExit(min(main(), 1))
