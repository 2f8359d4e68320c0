import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

BEFORE, AFTER, MARK = "#0072b2", "#e69f00", "#d55e00"

folder, picture = Path(sys.argv[1]), sys.argv[2]
events = [e for path in folder.glob("*.json") for e in json.loads(path.read_text())]
calls = [e for e in events if e["ph"] == "X" and not e["name"].startswith("wait")]
failed = [e for e in events if "(failed)" in e["name"]]
loss = min(e["ts"] for e in failed)
ranks = {e["pid"] for e in events}
figure, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
for e in calls:
    if abs(e["ts"] - loss) < 4e5:
        colour = BEFORE if e["tid"] == 0 else AFTER  # the communicator
        axes.barh(e["pid"], max(e["dur"], 2e3) / 1e3, left=(e["ts"] - loss) / 1e3, height=0.6,
                  color=colour)  # fmt: skip
for e in failed:
    axes.plot((e["ts"] - loss) / 1e3, e["pid"], "x", color=MARK)
for rank in ranks - {e["pid"] for e in failed}:
    axes.text(5, rank, "killed", color=MARK, va="center")
axes.set(
    xlabel="milliseconds", yticks=sorted(ranks), yticklabels=[f"rank {r}" for r in sorted(ranks)]
)
axes.invert_yaxis()
for name, colour in (("before the loss", BEFORE), ("among the survivors", AFTER)):
    axes.barh(0, 0, color=colour, label=name)
axes.plot([], [], "x", color=MARK, label="CollectiveFailed")
axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.25))
figure.savefig(picture)
