"""Energy per water of the hydros of a case of Cobre's, in MW per m3/s."""

import numpy as np
from case.fields import CaseError, Field

from cobre.folder import at
from cobre.schema import AMOUNT, ANYTHING, COUNT, HYDRO, TEXT, Integer, List, Object, ordered
from cobre.study import Study

FPHA = "FPHA"
HEADS = "productivities that follow from heads"
# the field in 0.5, then the field in 0.18
VALUES = "productivity_override", "productivity_mw_per_m3s"
FILE = "system/hydro_production_models.json"
_ENTRY = {
    "optional": {VALUES[1]: AMOUNT, "fpha_config": ANYTHING},
    "old": {VALUES[0]: AMOUNT},
    "features": {"reference_volume": HEADS},
}
SPAN = Object(
    {"start_stage_id": Integer(), "model": TEXT},
    rule=ordered(("start_stage_id", "end_stage_id")),
    **_ENTRY | {"optional": _ENTRY["optional"] | {"end_stage_id": Integer()}},
)
SEASON = Object({"season_id": COUNT, "model": TEXT}, **_ENTRY)
MODELS = Object(
    {
        "production_models": List(
            Object(
                {"hydro_id": HYDRO, "selection_mode": TEXT},
                optional={
                    "stage_ranges": List(SPAN),
                    "seasons": List(SEASON, key=("season_id",)),
                    "default_model": TEXT,
                },
            ),
            key=("hydro_id",),
        )
    },
    features={"fpha_plane_reduction": FPHA},
)


class Production:
    """The productivity of each hydro, from the hydro's own entry or from the models beside it."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.models: dict[int, Field] = {}
        if study.folder.has(FILE):
            for field in study.folder.json(FILE, MODELS).get("production_models").items():
                self.models[field.value["hydro_id"]] = field

    def usual(self, field: Field) -> np.ndarray:
        """Return the productivity [T] with which Cobre computes the least power of a hydro.

        If the hydro has a productivity of its own, Cobre uses that, whatever the models say.
        """
        own = at(field.get("generation"), "productivity_mw_per_m3s")
        return self.of(field) if own is None else np.full(len(self.study.stages.ids), own.number())

    def of(self, field: Field) -> np.ndarray:
        """Return the productivity [T] of a hydro; note as lacking any that is not constant."""
        folder, stages = self.study.folder, self.study.stages
        generation = field.get("generation")
        own = at(generation, "productivity_mw_per_m3s")
        model = self.models.get(field.value["id"])
        if model is None:
            self._check_model(field, generation.get("model").text())
            values = [own] * len(stages.ids)
        else:
            values = [self._entry(field, model, t) or own for t in range(len(stages.ids))]
        if None in values and FPHA not in folder.lacked:
            if folder.is_new and not folder.lacked:
                raise CaseError(
                    f"{folder.name}/{FILE}",
                    f"hydro_id {field.value['id']}, stage_id {stages.ids[values.index(None)]}",
                    f"no {VALUES[1]}", "one for every hydro and stage",
                )  # fmt: skip
            folder.lack(HEADS)
        return np.array([0.0 if v is None else v.number() for v in values])

    def _entry(self, field: Field, model: Field, t: int) -> Field | None:
        """Return the productivity that a hydro's model has in stage t, or None."""
        stage, season = self.study.stages.ids[t], self.study.stages.seasons[t]
        mode = model.get("selection_mode").text()
        if mode == "stage_ranges":
            for entry in model.get("stage_ranges").items():
                last = at(entry, "end_stage_id")
                if entry.value["start_stage_id"] <= stage and (last is None or stage <= last.value):
                    return self._value(field, entry)
            return None
        if mode != "seasonal":
            self.study.folder.lack(f"the selection mode {mode}")
            return None
        for entry in model.get("seasons").items():
            if entry.value["season_id"] == season:
                return self._value(field, entry)
        self._check_model(field, model.get("default_model").text())
        return None

    def _value(self, field: Field, entry: Field) -> Field | None:
        """Return the productivity that an entry of a model has, or None."""
        self._check_model(field, entry.get("model").text())
        return at(entry, VALUES[0]) or at(entry, VALUES[1])

    def _check_model(self, field: Field, model: str) -> None:
        """Note as lacking every model but that of a constant productivity.

        Cobre 0.5 solves a linearized head with the constant productivity of the hydro, so this
        model is lacking only for 0.18, where hydros have unit groups.
        """
        if model == "fpha":
            self.study.folder.lack(FPHA)
        elif model == "linearized_head":
            self.study.folder.lack_if({HEADS: field.has("unit_groups")})
        elif model != "constant_productivity":
            self.study.folder.lack(f"the generation model {model}")
