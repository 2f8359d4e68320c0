import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

COLOURS = {"allgatherv": "#0072b2", "allgather": "#0072b2", "barrier": "#e69f00"}

folder, picture = Path(sys.argv[1]), sys.argv[2]
figure, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
files = sorted(folder.glob("*.rank-*.json"))
calls = {}
for rank, path in enumerate(files):
    events = json.loads(path.read_text())
    calls[rank] = [e for e in events if e["ph"] == "X" and e["name"].split("(")[0] in COLOURS]
start = min(e["ts"] for e in calls[0][-20:])
for rank, events in calls.items():
    for e in events:
        if e["ts"] >= start:
            axes.barh(rank, e["dur"] / 1e3, left=(e["ts"] - start) / 1e3, height=0.6,
                      color=COLOURS[e["name"].split("(")[0]])  # fmt: skip
axes.set(xlabel="milliseconds", yticks=range(len(files)), yticklabels=[f"rank {r}" for r in calls])
axes.invert_yaxis()
for name in ("allgatherv", "barrier"):
    axes.barh(0, 0, color=COLOURS[name], label=name)
axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.25))
figure.savefig(picture)
