"""Mutants of the JSON files: plants, buses, lines, prices, volumes, stages, configuration."""

from tests.examples.cobre_changes import (
    GENERATION,
    GROUP,
    HYDRO,
    LINE,
    LOAD,
    MODELS,
    PLAIN,
    REFUSED,
    SPAN,
    STAGE,
    STEPS,
    THERMAL,
    VOLUME,
    Mutant,
    again,
    out,
    part,
    text,
    transitions,
)
from tests.examples.cobre_variants import edit

MUTANTS = {
    # Hydros, thermal plants, buses, lines.
    "negative_least_flow": Mutant(
        part(*GENERATION, min_turbined_m3s=-5.0), REFUSED,
        "system/hydros.json: hydros[0].generation.min_turbined_m3s: found -5.0",
    ),
    "most_outflow_below_least": Mutant(
        part(*HYDRO, "outflow", min_outflow_m3s=50.0, max_outflow_m3s=5.0), REFUSED,
        "system/hydros.json: hydros[0].outflow.min_outflow_m3s: found 50.0, expected at most",
    ),
    "most_volume_below_least": Mutant(
        part(*HYDRO, "reservoir", min_storage_hm3=500.0), REFUSED,
        "system/hydros.json: hydros[0].reservoir.min_storage_hm3: found 500.0",
    ),
    "group_below_its_hydro": Mutant(
        part(*GENERATION, min_turbined_m3s=5.0), REFUSED,
        "system/hydros.json: hydros[0].unit_groups[0].min_turbined_m3s: found 0.0",
    ),
    "group_of_unknown_bus": Mutant(
        part(*GROUP, bus_id=9), REFUSED, "hydros[0].unit_groups[0].bus_id: found 9"
    ),
    "no_groups": Mutant(
        part(*HYDRO, unit_groups=[]), REFUSED, "hydros[0].unit_groups: found a list of 0"
    ),
    "water_in_a_circle": Mutant(
        part("system/hydros", "hydros", 3, downstream_id=0), REFUSED,
        "system/hydros.json: hydros[0].downstream_id: found 2, expected a way to the sea",
    ),
    "hydro_twice": Mutant(
        part("system/hydros", "hydros", 1, id=0), REFUSED,
        "system/hydros.json: hydros[1].id: found 0, expected what no other entry has",
    ),
    "old_field": Mutant(
        part(*GENERATION, productivity_mw_per_m3s=1.0), REFUSED,
        "the field hydros.generation.productivity_mw_per_m3s of system/hydros.json",
    ),
    "no_start": Mutant(
        out(*HYDRO, "operational_start_date"), REFUSED,
        "system/hydros.json: hydros[0].operational_start_date: found nothing",
    ),
    "productivity_twice": Mutant(
        again(MODELS, "production_models", 0), REFUSED,
        f"{MODELS}.json: production_models[4].hydro_id: found 0, expected what no other entry has",
    ),
    "productivity_of_unknown_hydro": Mutant(
        again(MODELS, "production_models", 0, hydro_id=9), REFUSED,
        f"{MODELS}.json: production_models[4].hydro_id: found 9",
    ),
    "productivity_in_some_stages": Mutant(
        part(*SPAN, end_stage_id=2), REFUSED,
        f"{MODELS}.json: hydro_id 0, stage_id 3: found no productivity_mw_per_m3s",
    ),
    "most_power_of_thermal_below_least": Mutant(
        part(*THERMAL, "generation", min_mw=500.0), REFUSED,
        "system/thermals.json: thermals[1].generation.min_mw: found 500.0, expected at most",
    ),
    "thermal_of_no_bus": Mutant(
        part(*THERMAL, bus_id=None), REFUSED, "system/thermals.json: thermals[1].bus_id: found null"
    ),
    "unknown_null_field": Mutant(
        part(*THERMAL, colour=None), REFUSED, "the field thermals.colour of system/thermals.json"
    ),
    "negative_number": Mutant(part(*THERMAL, id=-1), PLAIN, None),
    "deficit_with_an_end": Mutant(
        part("penalties", "bus", deficit_segments=[{"depth_mw": 5.0, "cost": 3.0}]), REFUSED,
        "penalties.json: bus.deficit_segments[0].depth_mw: found 5.0, expected null",
    ),
    "deficit_that_falls": Mutant(
        again(*STEPS, 0, cost=3.0), REFUSED,
        "system/buses.json: buses[0].deficit_segments[1].cost: found 3.0, expected more than",
    ),
    "bus_without_demand": Mutant(
        again("system/buses", "buses", 0, id=1), REFUSED,
        f"{LOAD}.parquet: bus_id 1, stage_id 0: found no row",
    ),
    "line_to_itself": Mutant(
        part("system/lines", lines=[LINE]), REFUSED,
        "system/lines.json: lines[0].target_bus_id: found 0, expected another bus",
    ),
    "no_price": Mutant(
        out("penalties", "hydro", "diversion_cost"), REFUSED,
        "penalties.json: hydro.diversion_cost: found nothing",
    ),
    "price_of_zero": Mutant(
        part("penalties", "bus", excess_cost=0.0), REFUSED,
        "penalties.json: bus.excess_cost: found 0.0, expected more than 0",
    ),
    "field_twice": Mutant(
        text("penalties.json", '"excess_cost"', '"excess_cost": 1.0, "excess_cost"'), REFUSED,
        "penalties.json: the file: found no valid JSON (excess_cost is given twice",
    ),
    "name_that_is_no_text": Mutant(
        part(*THERMAL, name="\ud800"), REFUSED, "system/thermals.json: thermals[1].name: found"
    ),
    # Volumes and stages.
    "volume_twice": Mutant(
        again(*VOLUME), REFUSED,
        "initial_conditions.json: storage[4].hydro_id: found 0, expected what no other entry has",
    ),
    "volume_of_unknown_hydro": Mutant(
        again(*VOLUME, hydro_id=99), PLAIN,
        "initial_conditions.json: storage[4].hydro_id: found 99, expected the number of a hydro",
    ),
    "volume_above_the_most": Mutant(
        part(*VOLUME, value_hm3=5000.0), 25351.918906293075,
        "initial_conditions.json: storage[0].value_hm3: found 5000.0, expected at most 203.201",
    ),
    "no_volume": Mutant(
        out(*VOLUME), 83153.69373718137, "expected a hydro with a volume in initial_conditions.json"
    ),
    "stage_twice": Mutant(
        part(*STAGE, id=0), REFUSED,
        "stages.json: stages[1].id: found 0, expected what no other entry has",
    ),
    "end_before_start": Mutant(
        part("stages", "stages", 0, end_date="1999-01-01"), REFUSED,
        'stages.json: stages[0].end_date: found "1999-01-01", expected after start_date',
    ),
    "stage_of_no_days": Mutant(
        part(*STAGE, start_date="2000-03-01"), REFUSED,
        'stages.json: stages[1].end_date: found "2000-03-01", expected after start_date',
    ),
    "date_in_another_form": Mutant(
        part(*STAGE, start_date="20000201"), REFUSED, 'stages[1].start_date: found "20000201"'
    ),
    "stages_in_another_order": Mutant(
        lambda folder: edit(folder, "stages", lambda c: c["stages"].reverse()), PLAIN, None
    ),
    "block_of_no_hours": Mutant(
        part(*STAGE, "blocks", 0, hours=0.0), REFUSED, "stages[1].blocks[0].hours: found 0.0"
    ),
    "transition_of_unknown_stage": Mutant(
        part(
            "stages", "policy_graph",
            transitions=[{"source_id": 9, "target_id": 1, "probability": 1.0}],
        ), REFUSED, "stages.json: policy_graph.transitions[0].source_id: found 9",
    ),
    "transition_of_half": Mutant(transitions(probability=0.5), REFUSED, "a policy graph with"),
    "no_selection": Mutant(
        out("config", "training", "selection"), REFUSED,
        "config.json: training.selection: found nothing, expected this field: it is required",
    ),
}  # fmt: skip
