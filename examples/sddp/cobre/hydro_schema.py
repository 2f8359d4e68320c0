"""What Cobre's files say about hydros, as declarations."""

from case.fields import Field

from cobre.schema import (
    AMOUNT,
    ANYTHING,
    BUS,
    HYDRO,
    LIFE,
    PRICE,
    START,
    TEXT,
    Integer,
    List,
    Number,
    Object,
    ordered,
)

TURBINE = "min_turbined_m3s", "max_turbined_m3s", "min_generation_mw", "max_generation_mw"
LEAST = TURBINE[::2]
GROUP_BOUNDS = dict.fromkeys(TURBINE, AMOUNT)
STORAGE = "min_storage_hm3", "max_storage_hm3"
OUTFLOW = "min_outflow_m3s", "max_outflow_m3s"
WITHDRAWN = "water_withdrawal_m3s"
BOUNDS = dict.fromkeys((*TURBINE, *STORAGE, *OUTFLOW), AMOUNT) | {WITHDRAWN: Number()}
WITHDRAWAL = "water_withdrawal_violation_cost"
PRICES = (  # prices in penalties.json; most of them may also be given for a hydro or a stage
    "spillage_cost", "turbined_violation_below_cost", "outflow_violation_below_cost",
    "outflow_violation_above_cost", "generation_violation_below_cost", "diversion_cost",
    "storage_violation_below_cost", "filling_target_violation_cost", "evaporation_violation_cost",
)  # fmt: skip
BY_SIGN = (
    "water_withdrawal_violation_pos_cost", "water_withdrawal_violation_neg_cost",
    "evaporation_violation_pos_cost", "evaporation_violation_neg_cost",
)  # fmt: skip
NEGATIVE = "inflow_nonnegativity_cost"
FPHA = "fpha_turbined_cost"
USUAL_PRICES = Object(
    dict.fromkeys((*PRICES, WITHDRAWAL), PRICE),
    optional=dict.fromkeys((*BY_SIGN, NEGATIVE), PRICE),
    new={"turbined_cost": AMOUNT},
    old={FPHA: AMOUNT},
)
OWN_PRICES = Object(
    optional=dict.fromkeys((*PRICES, WITHDRAWAL, NEGATIVE, "turbined_cost"), AMOUNT),
    old={FPHA: AMOUNT},
)
STAGE_PRICES = dict.fromkeys((*PRICES, *BY_SIGN, NEGATIVE), PRICE) | {FPHA: AMOUNT}
FEATURES = {
    "evaporation": "evaporation",
    "diversion": "diversion channels",
    "filling": "reservoirs that are being filled",
    "travel_time_hours": "travel times of water",
}
HEADS = (  # these say how a head results; a constant productivity needs no head
    "tailrace", "hydraulic_losses", "efficiency", "specific_productivity_mw_per_m3s_per_m",
)  # fmt: skip
_LIMITS = dict.fromkeys(TURBINE, AMOUNT)
_IN_ORDER = ordered((TURBINE[0], TURBINE[1]), (TURBINE[2], TURBINE[3]))
GROUP = Object({"id": Integer(), "name": TEXT, "bus_id": BUS, **_LIMITS}, rule=_IN_ORDER)


def _check_ways(field: Field) -> None:
    """Raise `CaseError` if water flows in a circle."""
    hydros = field.items()
    below = {f.value["id"]: f.value.get("downstream_id") for f in hydros}
    for hydro in hydros:
        way = hydro.value["id"]
        for _ in hydros:
            way = below.get(way)
        if way is not None:
            raise hydro.get("downstream_id").error("a way to the sea, not a circle")


HYDRO_ENTRY = Object(
    {
        "id": Integer(),
        "name": TEXT,
        "reservoir": Object(dict.fromkeys(STORAGE, AMOUNT), rule=ordered(STORAGE)),
        "outflow": Object(
            {OUTFLOW[0]: AMOUNT}, optional={OUTFLOW[1]: AMOUNT}, rule=ordered(OUTFLOW)
        ),
        "generation": Object(
            {"model": TEXT, **_LIMITS}, old={"productivity_mw_per_m3s": AMOUNT}, rule=_IN_ORDER
        ),
    },
    optional={
        "downstream_id": HYDRO,
        "penalties": OWN_PRICES,
        **LIFE,
        **dict.fromkeys(HEADS, ANYTHING),
    },
    new={**START, "unit_groups": List(GROUP, key=("id",), least=1)},
    old={"bus_id": BUS},
    features=FEATURES,
)
HYDROS = Object({"hydros": List(HYDRO_ENTRY, key=("id",), defines="hydro", rule=_check_ways)})
VOLUMES = List(Object({"hydro_id": HYDRO, "value_hm3": AMOUNT}), key=("hydro_id",))
INITIAL = Object(
    {"storage": VOLUMES, "filling_storage": List(ANYTHING)},
    # Flows before the first stage matter only if inflows depend on past inflows.
    optional={"past_inflows": ANYTHING, "recent_observations": ANYTHING},
    features={
        "filling_storage": FEATURES["filling"],
        "past_defluences": FEATURES["travel_time_hours"],
        "past_anticipated_commitments": "thermal plants that are dispatched ahead",
    },
)
