"""Mutants of the tables of statistics, openings and bounds by stage, and of factors of demand."""

import math

import pyarrow as pa

from tests.examples.cobre_changes import (
    ALL,
    FACTORS,
    GROUP_BOUNDS,
    HYDRO_BOUNDS,
    INFLOW,
    LOAD,
    NAN,
    NOISE,
    PLAIN,
    PRICED,
    REFUSED,
    THERMAL_BOUNDS,
    Mutant,
    bounds,
    cell,
    column,
    dropped,
    factors,
    group_bounds,
    new,
    part,
    several,
    table,
    without,
)

MUTANTS = {
    # Tables of statistics and openings.
    "mean_column_missing": Mutant(
        without(INFLOW, "mean_m3s"), REFUSED, f"{INFLOW}.parquet: mean_m3s: found nothing"
    ),
    "std_column_missing": Mutant(
        without(INFLOW, "std_m3s"), REFUSED, f"{INFLOW}.parquet: std_m3s: found nothing"
    ),
    "unknown_hydro": Mutant(
        column(INFLOW, "hydro_id", lambda ids: [h or 9 for h in ids]), REFUSED,
        f"{INFLOW}.parquet: hydro_id[0]: found 9, expected the number of a hydro",
    ),
    "unknown_stage": Mutant(
        column(INFLOW, "stage_id", lambda ids: [72 if t == 2 else t for t in ids]), REFUSED,
        f"{INFLOW}.parquet: stage_id[2]: found 72, expected the number of a stage",
    ),
    "row_twice": Mutant(
        table(INFLOW, lambda each: [*each, each[0] | {"mean_m3s": 500.0}]), 13994.694300662804,
        f"{INFLOW}.parquet: hydro_id[20], stage_id[20]: found 0 and 0, expected what no other",
    ),
    "row_missing": Mutant(
        table(INFLOW, lambda each: each[:-1]), REFUSED,
        f"{INFLOW}.parquet: hydro_id 3, stage_id 4: found no row",
    ),
    "null_std": Mutant(
        cell(INFLOW, "std_m3s", 0, None), PLAIN, f"{INFLOW}.parquet: std_m3s[0]: found null"
    ),
    "negative_std": Mutant(
        cell(INFLOW, "std_m3s", 0, -1.0), REFUSED, f"{INFLOW}.parquet: std_m3s[0]: found -1.0"
    ),
    "infinite_mean": Mutant(
        cell(INFLOW, "mean_m3s", 1, math.inf), REFUSED,
        f"{INFLOW}.parquet: mean_m3s[1]: found inf",
    ),
    "null_hydro": Mutant(
        cell(INFLOW, "hydro_id", 1, None), PLAIN, f"{INFLOW}.parquet: hydro_id[1]: found null"
    ),
    "hydro_as_int64": Mutant(
        column(INFLOW, "hydro_id", list, pa.int64()), REFUSED,
        f"{INFLOW}.parquet: hydro_id: found a column of int64, expected one of int32",
    ),
    "mean_as_float32": Mutant(
        column(INFLOW, "mean_m3s", list, pa.float32()), REFUSED,
        f"{INFLOW}.parquet: mean_m3s: found a column of float, expected one of double",
    ),
    "row_of_no_stage": Mutant(
        table(INFLOW, lambda each: [*each, each[0] | {"stage_id": 77}]), PLAIN,
        f"{INFLOW}.parquet: stage_id[20]: found 77",
    ),
    "rows_in_another_order": Mutant(table(INFLOW, lambda each: each[::-1]), PLAIN, None),
    "no_rows": Mutant(table(INFLOW, lambda each: []), 865610.7310999995, None),
    "no_inflows": Mutant(dropped(f"{INFLOW}.parquet"), 865610.7310999995, None),
    "load_row_missing": Mutant(
        table(LOAD, lambda each: each[:2] + each[3:]), REFUSED,
        f"{LOAD}.parquet: bus_id 0, stage_id 2: found no row",
    ),
    "load_std_column_missing": Mutant(
        without(LOAD, "std_mw"), REFUSED, f"{LOAD}.parquet: std_mw: found nothing"
    ),
    "load_of_unknown_bus": Mutant(
        table(LOAD, lambda each: [*each, each[0] | {"bus_id": 7}]), REFUSED,
        f"{LOAD}.parquet: bus_id[5]: found 7, expected the number of a bus",
    ),
    "load_twice": Mutant(
        table(LOAD, lambda each: [*each, each[0] | {"mean_mw": 5.0}]), PLAIN,
        f"{LOAD}.parquet: bus_id[5], stage_id[5]: found 0 and 0",
    ),
    "null_load": Mutant(
        cell(LOAD, "mean_mw", 1, None), 60451.62317739459,
        f"{LOAD}.parquet: mean_mw[1]: found null, expected a number",
    ),
    "negative_load": Mutant(
        cell(LOAD, "mean_mw", 1, -5.0), 73131.62394175435,
        f"{LOAD}.parquet: mean_mw[1]: found -5.0, expected at least 0",
    ),
    "fewer_openings": Mutant(
        part("stages", "stages", 2, num_openings=2), REFUSED,
        f"{NOISE}.parquet: opening_index, stage_id 2: found 3 openings, expected 2",
    ),
    "more_openings": Mutant(
        part("stages", "stages", 2, num_openings=9), REFUSED,
        f"{NOISE}.parquet: opening_index, stage_id 2: found 3 openings, expected 9",
    ),
    "nan_noise": Mutant(
        cell(NOISE, "value", 3, NAN), REFUSED, f"{NOISE}.parquet: value[3]: found nan"
    ),
    "null_noise": Mutant(
        cell(NOISE, "value", 3, None), 58169.3270946968, f"{NOISE}.parquet: value[3]: found null"
    ),
    "noise_missing": Mutant(
        table(NOISE, lambda each: each[:5] + each[6:]), REFUSED,
        f"{NOISE}.parquet: stage_id 0, opening_index 1, entity_index 1: found no row",
    ),
    "noise_twice": Mutant(
        table(NOISE, lambda each: [*each, each[0]]), REFUSED,
        f"{NOISE}.parquet: stage_id[60], opening_index[60], entity_index[60]: found 0 and 0 and 0",
    ),
    "noise_of_an_entity_twice": Mutant(
        cell(NOISE, "entity_index", 1, 0), PLAIN,
        f"{NOISE}.parquet: stage_id[1], opening_index[1], entity_index[1]: found 0 and 0 and 0",
    ),
    "noise_in_another_order": Mutant(table(NOISE, lambda each: each[::-1]), PLAIN, None),
    "noise_as_int64": Mutant(
        column(NOISE, "value", lambda values: list(map(int, values)), pa.int64()), REFUSED,
        f"{NOISE}.parquet: value: found a column of int64",
    ),
    "no_noise": Mutant(
        dropped(f"{NOISE}.parquet"), REFUSED,
        'config.json: training.scenario_source.openings.source: found "file"',
    ),
    "factor_of_unknown_bus": Mutant(
        factors(bus=9), REFUSED, f"{FACTORS}.json: load_factors[0].bus_id: found 9"
    ),
    "factor_of_unknown_block": Mutant(
        factors(block=3), REFUSED,
        f"{FACTORS}.json: load_factors[0].block_factors[0].block_id: found 3",
    ),
    "factor_twice": Mutant(
        factors(times=2), REFUSED,
        f"{FACTORS}.json: load_factors[1].bus_id, load_factors[1].stage_id: found 0 and 0",
    ),
    "factor_of_nothing": Mutant(
        factors(factor=0.0), REFUSED,
        f"{FACTORS}.json: load_factors[0].block_factors[0].factor: found 0.0",
    ),
    "factor": Mutant(factors(), 128654.38501343998, None),
    # Bounds by stage.
    "bound_of_unknown_hydro": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", hydro_id=[9], max_turbined_m3s=[5.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: hydro_id[0]: found 9, expected the number of a hydro",
    ),
    "bound_in_unknown_stage": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=[9], max_turbined_m3s=[5.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: stage_id[0]: found 9, expected the number of a stage",
    ),
    "bound_twice": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=[1, 1], max_turbined_m3s=[5.0, 6.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: hydro_id[1], stage_id[1]: found 0 and 1",
    ),
    "bound_above_the_declared": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", max_turbined_m3s=[100.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: max_turbined_m3s of hydro_id 0, stage_id 1: found 100",
    ),
    "bound_in_null_stage": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=[None], max_turbined_m3s=[5.0]), 59653.83872929268,
        f"{HYDRO_BOUNDS}.parquet: stage_id[0]: found null",
    ),
    "null_bound": Mutant(bounds(HYDRO_BOUNDS, "hydro", max_turbined_m3s=[None]), PLAIN, None),
    "bounds_of_turbine": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", stage_id=ALL, max_turbined_m3s=[5.0] * 5),
        97286.08793552923, None,
    ),
    "least_flow_of_hydro_by_stage": Mutant(
        several(PRICED, bounds(HYDRO_BOUNDS, "hydro", stage_id=ALL, min_turbined_m3s=[60.0] * 5)),
        PLAIN, None,
    ),
    "least_flow_of_group_by_stage": Mutant(
        several(PRICED, group_bounds(ALL, min_turbined_m3s=60.0)), 4574391.36217368, None
    ),
    "bound_of_unknown_group": Mutant(
        new(
            GROUP_BOUNDS, hydro_id=[0], hydro_unit_group_id=[3], stage_id=[1],
            min_turbined_m3s=[5.0],
        ), REFUSED,
        f"{GROUP_BOUNDS}.parquet: hydro_unit_group_id of hydro_id 0, stage_id 1: found 3",
    ),
    "bound_of_group_twice": Mutant(
        group_bounds([1, 1], min_turbined_m3s=5.0), REFUSED,
        f"{GROUP_BOUNDS}.parquet: hydro_id[1], stage_id[1], hydro_unit_group_id[1]: found 0 and 1",
    ),
    "most_storage_below_least": Mutant(
        bounds(HYDRO_BOUNDS, "hydro", min_storage_hm3=[500.0]), REFUSED,
        f"{HYDRO_BOUNDS}.parquet: min_storage_hm3 of hydro_id 0, stage_id 1: found 500",
    ),
    "most_power_below_least": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", min_generation_mw=[50.0], max_generation_mw=[5.0]),
        REFUSED,
        f"{THERMAL_BOUNDS}.parquet: min_generation_mw of thermal_id 0, stage_id 1: found 50, "
        "expected at most max_generation_mw, 5",
    ),
    "negative_cost_by_stage": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", cost_per_mwh=[-5.0]), REFUSED,
        f"{THERMAL_BOUNDS}.parquet: cost_per_mwh[0]: found -5.0",
    ),
    "bound_of_unknown_thermal": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", thermal_id=[9], cost_per_mwh=[5.0]), REFUSED,
        f"{THERMAL_BOUNDS}.parquet: thermal_id[0]: found 9",
    ),
    "more_power_by_stage": Mutant(
        bounds(THERMAL_BOUNDS, "thermal", max_generation_mw=[200.0]), 51405.56556702827, None
    ),
    "price_of_unknown_bus": Mutant(
        bounds("constraints/penalty_overrides_bus", "bus", bus_id=[5], excess_cost=[36.0]),
        REFUSED, "penalty_overrides_bus.parquet: bus_id[0]: found 5",
    ),
}  # fmt: skip
