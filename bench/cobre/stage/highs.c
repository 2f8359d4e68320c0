/* Solve one stage problem at many points by HiGHS: what `python -m bench.cobre.stage` runs.

       highs PROBLEM VALUES all|lazy TOLERANCE

   PROBLEM is what `draws.write_program` writes; the objectives of all draws go to VALUES. With
   `all` every cut is a row. With `lazy` the cut that is violated most is added, until no cut is
   violated. Slack cuts are deleted at each new point, because our solver begins a point without
   them, and when slack cuts become many, as in examples/sddp/stage/solve.py. Every solve starts
   from the basis of the solve before.
   Prints a JSON of thread time and counts. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interfaces/highs_c_api.h"

enum { BLOCK = 128, SPARE = 8 };
static const double VIOLATED = 1e-9, ZERO = 1e-12;

static struct {
  HighsInt columns, rows, entries, hydros, cuts, openings, draws;
  double *cost, *lower, *upper;  /* of the columns */
  HighsInt *start, *index;       /* base rows, row by row */
  double *value;
  double *low, *row;             /* cuts as rows: low[c] <= row[c] . (volumes, theta) */
  double *coef;                  /* the same cuts as in the pool: (hydros + 1, cuts) */
  double *level;                 /* (draws, rows) right-hand sides */
} program;

static void *highs;
static HighsInt *key, *status, *leaving, *leading; /* key: the cuts that are rows, in order */
static char *present;
static HighsInt added;
static double *x;
static long pivots, runs, failures;

static void check(int right, const char *what) {
  if (!right) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
  }
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  check(memory != NULL, "calloc");
  return memory;
}

static void *take(FILE *file, size_t count, size_t size) {
  void *memory = allocate(count, size);
  check(fread(memory, size, count, file) == count, "reading the problem");
  return memory;
}

static void read_program(const char *path) {
  FILE *file = fopen(path, "rb");
  check(file != NULL, path);
  check(fread(&program, sizeof(HighsInt), 7, file) == 7, "reading the sizes");
  size_t n = program.columns, m = program.rows, e = program.entries;
  size_t cuts = program.cuts, width = program.hydros + 1;
  program.cost = take(file, n, sizeof(double));
  program.lower = take(file, n, sizeof(double));
  program.upper = take(file, n, sizeof(double));
  program.start = take(file, m + 1, sizeof(HighsInt));
  program.index = take(file, e, sizeof(HighsInt));
  program.value = take(file, e, sizeof(double));
  program.low = take(file, cuts, sizeof(double));
  program.row = take(file, cuts * width, sizeof(double));
  program.coef = take(file, cuts * width, sizeof(double));
  program.level = take(file, program.draws * m, sizeof(double));
  fclose(file);
  key = allocate(cuts, sizeof(HighsInt));
  leaving = allocate(cuts, sizeof(HighsInt));
  status = allocate(n + m + cuts, sizeof(HighsInt));
  leading = allocate(width, sizeof(HighsInt));
  present = allocate(cuts, 1);
  x = allocate(n, sizeof(double));
  for (size_t j = 0; j < width; j++) leading[j] = j;
}

static void add_cut(HighsInt c) {
  HighsInt width = program.hydros + 1;
  const double *row = program.row + (size_t)c * width;
  check(Highs_addRow(highs, program.low[c], Highs_getInfinity(highs), width, leading, row) >= 0,
        "Highs_addRow");
  key[added++] = c;
  present[c] = 1;
}

static void open_highs(double tolerance) {
  highs = Highs_create();
  Highs_setBoolOptionValue(highs, "output_flag", 0);
  int set = Highs_setStringOptionValue(highs, "solver", "simplex") == 0 &&
            Highs_setStringOptionValue(highs, "presolve", "off") == 0 &&
            Highs_setStringOptionValue(highs, "parallel", "off") == 0 &&
            Highs_setIntOptionValue(highs, "threads", 1) == 0 &&
            Highs_setIntOptionValue(highs, "simplex_strategy", 1) == 0 &&
            /* HiGHS is fastest with these two values: it neither scales nor perturbs costs. */
            Highs_setIntOptionValue(highs, "simplex_scale_strategy", 0) == 0 &&
            Highs_setDoubleOptionValue(highs, "dual_simplex_cost_perturbation_multiplier", 0.0) ==
                0 &&
            Highs_setDoubleOptionValue(highs, "primal_feasibility_tolerance", tolerance) == 0 &&
            Highs_setDoubleOptionValue(highs, "dual_feasibility_tolerance", tolerance) == 0;
  check(set, "setting an option");
  check(Highs_passLp(highs, program.columns, program.rows, program.entries,
                     kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0.0, program.cost,
                     program.lower, program.upper, program.level, program.level, program.start,
                     program.index, program.value) >= 0,
        "Highs_passLp");
}

static int finds_optimum(void) {
  HighsInt count = 0;
  check(Highs_run(highs) >= 0, "Highs_run");
  Highs_getIntInfoValue(highs, "simplex_iteration_count", &count);
  pivots += count;
  runs++;
  return Highs_getModelStatus(highs) == kHighsModelStatusOptimal;
}

/* Solve from the last basis; if this finds no optimum, solve without a basis. */
static void run(void) {
  if (finds_optimum()) return;
  failures++;
  Highs_clearSolver(highs);
  check(finds_optimum(), "finding an optimum");
}

/* Return the cut that exceeds theta most, or -1: `highest_cut` of examples/sddp/stage/pool.py. */
static HighsInt most_violated(void) {
  HighsInt hydros = program.hydros, best = -1;
  double above = x[hydros] + VIOLATED * fabs(x[hydros]) + ZERO, value[BLOCK];
  for (HighsInt begin = 0; begin < program.cuts; begin += BLOCK) {
    HighsInt size = program.cuts - begin < BLOCK ? program.cuts - begin : BLOCK;
    const double *line = program.coef + (size_t)hydros * program.cuts + begin;
    memcpy(value, line, size * sizeof(double));
    for (HighsInt h = 0; h < hydros; h++) {
      line = program.coef + (size_t)h * program.cuts + begin;
      for (HighsInt c = 0; c < size; c++) value[c] += line[c] * x[h];
    }
    for (HighsInt c = 0; c < size; c++)
      if (value[c] > above) best = begin + c, above = value[c];
  }
  return best;
}

static void drop_slack_cuts(void) {
  HighsInt count = 0, kept = 0, *of_rows = status + program.columns;
  check(Highs_getBasis(highs, status, of_rows) >= 0, "Highs_getBasis");
  for (HighsInt i = 0; i < added; i++) {
    if (of_rows[program.rows + i] == kHighsBasisStatusBasic) {
      leaving[count++] = program.rows + i;
      present[key[i]] = 0;
    } else {
      key[kept++] = key[i];
    }
  }
  if (count) check(Highs_deleteRowsBySet(highs, count, leaving) >= 0, "Highs_deleteRowsBySet");
  added = kept;
}

static double solve(HighsInt draw, int lazy) {
  const double *level = program.level + (size_t)draw * program.rows;
  int next_point = draw % program.openings == 0;
  if (lazy && (next_point || added > program.hydros + SPARE)) drop_slack_cuts();
  check(Highs_changeRowsBoundsByRange(highs, 0, program.rows - 1, level, level) >= 0,
        "Highs_changeRowsBoundsByRange");
  run();
  while (lazy) {
    check(Highs_getSolution(highs, x, NULL, NULL, NULL) >= 0, "Highs_getSolution");
    HighsInt best = most_violated();
    if (best < 0 || present[best]) break; /* a row that is still violated: rounding */
    add_cut(best);
    run();
  }
  return Highs_getObjectiveValue(highs);
}

static double thread_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int argc, char **argv) {
  check(argc == 5, "highs PROBLEM VALUES all|lazy TOLERANCE");
  int lazy = strcmp(argv[3], "lazy") == 0;
  read_program(argv[1]);
  open_highs(atof(argv[4]));
  for (HighsInt c = 0; c < program.cuts && !lazy; c++) add_cut(c);
  double *values = allocate(program.draws, sizeof(double));
  solve(0, lazy); /* the first solve, which is cold, is not timed */
  pivots = runs = failures = 0;
  double begin = thread_s();
  for (HighsInt d = 0; d < program.draws; d++) values[d] = solve(d, lazy);
  double seconds = thread_s() - begin;
  FILE *file = fopen(argv[2], "wb");
  check(file != NULL, argv[2]);
  check(fwrite(values, sizeof(double), program.draws, file) == (size_t)program.draws, argv[2]);
  fclose(file);
  printf("{\"version\": \"%s\", \"seconds\": %.9f, \"pivots\": %ld, \"runs\": %ld, "
         "\"failures\": %ld}\n",
         Highs_version(), seconds, pivots, runs, failures);
  Highs_destroy(highs);
  return 0;
}
