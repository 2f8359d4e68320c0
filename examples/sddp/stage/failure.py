"""The error of a stage problem that has no solution, or for which no solution was found."""

import numpy as np
from simplex.dual import INFEASIBLE
from simplex.solve import ATTEMPTS, LAST_RESORT

LEFT = "equations", "bounds", "reduced costs", "objective"
"""Names of the entries of `Lp.measure`."""


def describe_failure(outcome: int, left: np.ndarray) -> tuple[str, str]:
    """Return the predicate of the error's sentence, and the end of the sentence."""
    if outcome == INFEASIBLE:
        return "has no feasible dispatch", ""
    errors = ", ".join(f"{name} {value:.1e}" for name, value in zip(LEFT, left, strict=True))
    return "could not be solved", (
        "; the solver failed, which says nothing against the data: "
        f"it started {', '.join(ATTEMPTS)}, all that again without cuts that are nearly alike, "
        f"and was still off, relatively, by: {errors}, "
        f"where {LAST_RESORT:.0e} would have been accepted"
    )
