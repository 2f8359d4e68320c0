"""What `config.json` says about the problem; how Cobre solves it is not read."""

from dataclasses import dataclass

from case.fields import Field

from cobre.folder import Folder, at

METHODS = "none", "truncation", "penalty", "truncation_with_penalty"
TRAINING = {  # how Cobre trains
    "enabled", "forward_passes", "selection", "stopping_rules", "stopping_mode", "cut_formulation",
    "forward_pass", "cut_selection", "solver", "parallelism", "tree_seed", "scenario_source",
}  # fmt: skip
OPENINGS = "scenarios/noise_openings.parquet"


@dataclass(frozen=True)
class Config:
    """What becomes of negative inflows, and where openings come from.

    Negative inflows may be cut off, and water may be bought. Openings are given, or `seed` draws.
    """

    truncated: bool
    bought: bool
    given: bool
    seed: int


def read_config(folder: Folder) -> Config:
    """Return the configuration; sampling other than from openings is taken down."""
    root = folder.json("config.json")
    # Outputs and simulations, and models fitted to a history, which is lacked by its own name.
    apart = {"simulation", "exports", "upper_bound_evaluation", "estimation"}
    folder.known(root, {"training", "modeling", "policy", *apart})
    method = _read_method(folder, root)
    _check_policy(folder, root)
    training = root.get("training")
    folder.known(training, TRAINING)
    seed, source, given = at(training, "tree_seed"), at(training, "scenario_source"), True
    if source is not None:
        folder.known(source, {"seed", "inflow", "load", "ncs", "openings", "historical_years"})
        _check_schemes(folder, source)
        seed = seed or at(source, "seed")
    if training.has("selection"):  # 0.18 takes the openings of a file only if it is told so
        openings = None if source is None else at(source, "openings")
        given = openings is not None and openings.get("source").value == "file"
        folder.lack_if({"a file of openings that are not used": folder.has(OPENINGS) and not given})
    return Config(
        truncated=method.startswith("truncation"),
        bought=method.endswith("penalty"),
        given=given and folder.has(OPENINGS),
        seed=0 if seed is None else abs(int(seed.number())),
    )


def _read_method(folder: Folder, root: Field) -> str:
    """Return the method by which inflows are kept from being negative."""
    modeling = at(root, "modeling")
    if modeling is None:
        return "penalty"
    folder.known(modeling, {"inflow_non_negativity", "cost_scale_factor"})
    inflow = at(modeling, "inflow_non_negativity")
    if inflow is None:
        return "penalty"
    folder.known(inflow, {"method", "penalty_cost"})  # Cobre takes the price of penalties.json
    method = at(inflow, "method")
    if method is None:
        return "penalty"
    if method.value not in METHODS:
        raise method.error("one of " + ", ".join(METHODS))
    return method.text()


def _check_policy(folder: Folder, root: Field) -> None:
    """Take down a policy that training starts from, or that follows the last stage."""
    policy = at(root, "policy")
    if policy is None:
        return
    folder.known(
        policy,
        {"path", "mode", "validate_compatibility", "checkpointing"},
        {"boundary": "costs after the last stage"},
    )
    mode = at(policy, "mode")
    folder.lack_if({"a policy to start from": mode is not None and mode.value != "fresh"})


def _check_schemes(folder: Folder, source: Field) -> None:
    """Take down scenarios that training does not sample from the openings."""
    folder.lack_if({"historical scenarios": at(source, "historical_years") is not None})
    for name in ("inflow", "load", "ncs"):
        entry = at(source, name)
        if entry is not None:
            folder.known(entry, {"scheme"})
            scheme = entry.get("scheme").text()
            if scheme != "in_sample":
                folder.lack(f"{scheme.replace('_', '-')} scenarios")
