"""The convergence plot."""

from pathlib import Path

import numpy as np
from training.run import Training


def save_plot(training: Training, path: Path) -> None:
    """Draw bound, simulated cost with its 95 % band and known optimum to `path`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    trace = training.trace
    x = np.arange(1, len(trace) + 1)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    mean, half = trace["mean"], trace["half_width"]
    axes.fill_between(x, mean - half, mean + half, color="tab:orange", alpha=0.25, linewidth=0)
    axes.plot(x, mean, color="tab:orange", linewidth=0.8, label="simulated, ± 95 %")
    axes.plot(x, trace["lower_bound"], color="tab:blue", label="lower bound")
    if training.case.known is not None:
        name = "known bound" if training.case.known_is_bound else "known optimum"
        axes.axhline(training.case.known, color="black", linestyle="--", linewidth=0.8, label=name)
    axes.set_xlabel("iteration")
    axes.set_ylabel("expected cost")
    axes.set_title(f"{training.case.name} ({training.backend}, {training.ranks} ranks)")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
