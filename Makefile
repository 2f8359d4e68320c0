# Two commands are enough on a fresh machine with Python 3.11 or later: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
BEGUN := $(shell date +%s)
CASE ?= examples/sddp/cases/gen_h4_t5_k3.json

DOCS_VENV ?= .venv-docs
COBRE_VENV ?= .venv-cobre
# cobre-python has wheels for Python 3.12 and later.
COBRE_PYTHON ?= $(shell command -v python3.12 || command -v python3.13 || command -v python3)
DOCS := $(DOCS_VENV)/bin

# How many tests run at a time. Ranks often wait: three tests keep two cores busy. The longest ones have
# limits that are meant for two.
WORKERS ?= 3
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder
# Ranks load what they import as bytecode, whatever the surroundings say.
export PYTHONDONTWRITEBYTECODE :=

FAULTS ?= 5000
SEED ?= 1
CASES ?= 500

.PHONY: demo demo-large quick test test-all test-costs campaign wild wild-cobre check pages pages-run docs docs-external release-check places model bench bench-short bench-tcp bench-mpi bench-growth bench-hosts bench-lanes bench-cobre bench-stage clean

# An editable install builds no wheel: it needs nothing of what makes the machine code of one.
EDITABLE = $(BIN)/python -m pip install --quiet --no-build-isolation --editable
# Of packages for tests and examples few modules are imported: each is compiled when it is.
LAZILY = $(BIN)/python -m pip install --quiet --no-compile --no-build-isolation --editable
$(VENV)/.package: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cobre_comm needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	@echo "installing numba, NumPy and this package into $(VENV): some ten seconds, and the download"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet hatchling editables
	@$(EDITABLE) .
	@touch $@

$(VENV)/.examples: $(VENV)/.package
	@echo "installing matplotlib and rich into $(VENV)"
	@nice -n 5 $(LAZILY) '.[examples]'
	@touch $@

$(VENV)/.test: $(VENV)/.package
	$(LAZILY) '.[test]'
	touch $(VENV)/.examples $@

$(VENV)/.dev: $(VENV)/.test
	$(EDITABLE) '.[dev]'
	touch $@

# What benchmarks measure beside ours. Files of Intel's wheel have the names of MPICH's: its own folder.
$(VENV)/.peers: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet numba-mpi
	test "$$(uname -sm)" != "Linux x86_64" || $(BIN)/python -m pip install --quiet --prefix $(VENV)/impi --ignore-installed impi-rt || echo "impi-rt cannot be installed: benchmarks leave Intel MPI out"
	touch $@

# The example is the longest of the three, and one process compiles it: the others leave it a core.
demo: $(VENV)/.package  ## train the reference SDDP policy on 4 processes over shared memory, then a larger case on 1 and on all cores
	@$(MAKE) --silent --no-print-directory --jobs 3 compile-example compile-kernels $(VENV)/.examples
	@$(BIN)/python examples/sddp/demo.py demo --case $(CASE)
	@echo "demo took $$(( $$(date +%s) - $(BEGUN) )) s; plot: demo/convergence.png, numbers: demo/result.json"

.PHONY: compile-example compile-kernels
compile-example: $(VENV)/.package
	@$(BIN)/python examples/sddp/ahead.py $(AHEAD)
compile-kernels: $(VENV)/.package
	@nice -n 5 $(BIN)/cobre-comm compile > /dev/null

LARGE = demo/large.json
demo-large: $(VENV)/.examples  ## train a case of 160 hydros, 100 thermals, 120 stages and 20 openings for some minutes on 2 processes
	@mkdir -p demo
	$(BIN)/python examples/sddp/generate.py $(LARGE) --hydros 160 --thermals 100 --stages 120 --openings 20 --seed 1
	@start=$$(date +%s); \
	$(BIN)/cobre-comm run -n 2 --backend shm examples/sddp/train.py $(LARGE) --iterations 20 --forward-passes 8 --checkpoint demo/large.ckpt && \
	echo "demo-large took $$(( $$(date +%s) - start )) s; it goes on from demo/large.ckpt: train.py --iterations 40"

quick: $(VENV)/.test  ## every collective, backend and caller once, the launcher, the example
	$(PYTEST) -m quick

# Which tests a run has: tests/rungs.py.
test: $(VENV)/.package  ## every promise on every backend, from Python and from @njit
	@$(MAKE) --silent --no-print-directory --jobs 3 compile-example AHEAD=--local compile-kernels $(VENV)/.test
	$(PYTEST) -m "not slow"

test-all: WORKERS = 2
test-all: $(VENV)/.test  ## every three values together, every planted fault, long runs: over an hour
	$(PYTEST)

test-costs: $(VENV)/.test  ## the seconds of CPU of each test of `make test` and of CI, beside the last ones: tests/costs/README.md
	$(PYTEST) -m "not slowest" -p tests.costs.plugin --costs build/costs.json
	$(BIN)/python -m tests.costs build/costs.json

campaign: $(VENV)/.test  ## thousands of faults in real jobs, in about an hour: docs/faults.md
	$(BIN)/python -m tests.campaign --faults $(FAULTS) --seed $(SEED) --page docs/faults.md
	$(BIN)/python -m tests.campaign.shrink --faults 2000 --seed $(SEED)

wild: $(VENV)/.test  ## hundreds of odd cases of the SDDP example, judged beside HiGHS, in some ten minutes
	$(BIN)/python -m tests.wild --cases $(CASES) --json build/wild.json

wild-cobre: $(VENV)/.test $(COBRE_VENV)/.cobre  ## twenty more, trained to convergence by Cobre too, and whether Cobre refuses what we refuse (needs Python 3.12)
	$(BIN)/python -m tests.wild --cases 0 --cobre $(COBRE_VENV)/bin/python --json build/wild-cobre.json

check: $(VENV)/.dev  ## formatting, lint, phrases, types, the direction of imports, and the files that GitHub reads
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python docs/check_phrases.py
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema -q --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff

# The environment of the site is its own. numba-mpi is what one tutorial moves a program away from.
$(DOCS_VENV)/.docs: pyproject.toml
	test -x $(DOCS)/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS)/python -m pip install --quiet hatchling editables
	$(DOCS)/python -m pip install --quiet --no-build-isolation --editable '.[docs]' numba-mpi
	touch $@

pages: $(VENV)/.dev  ## write anew what pages show of programs, docstrings and records: docs/refresh.py
	$(BIN)/python -m docs.refresh

pages-run: $(DOCS_VENV)/.docs  ## the same, and run the commands of the pages: what they print now
	$(DOCS)/python -m docs.refresh --run

docs: $(DOCS_VENV)/.docs  ## the site in build/docs/html: commands of pages are run, warnings are errors, links are checked
	$(DOCS)/python -m docs.refresh --run --check
	$(DOCS)/sphinx-build --quiet --fail-on-warning -d build/docs/doctrees docs build/docs/html
	$(DOCS)/python docs/check_links.py build/docs/html

docs-external: $(DOCS_VENV)/.docs  ## ask other servers whether the links of the site lead somewhere
	$(DOCS)/sphinx-build --quiet -b linkcheck -d build/docs/doctrees docs build/docs/external

release-check:  ## what a release must pass, of the last commit; python -m release STEP runs one step
	$(PYTHON) -m release

places: $(VENV)/.dev  ## where users run (Slurm, Dask, ...), set up in a scratch folder: docs/howto/places.md
	$(BIN)/python -m places --keep

place-%: $(VENV)/.dev  ## one of them: place-slurm, place-dask, ...
	$(BIN)/python -m places $* --keep

model:  ## search the models of the protocols (needs spin and a C compiler)
	$(PYTHON) model/check.py

bench: RUN = bench  ## the essentials beside Open MPI, MPICH and Intel MPI: bench/REPORT.md
bench-tcp: RUN = bench/cases/test_backends.py -k over_tcp --most 30  ## the tcp backend beside Open MPI over sockets: docs/benchmarks/tcp.md
bench-mpi: RUN = bench/cases/test_backends.py -k over_mpi --most 30  ## the mpi backend beside mpi4py and numba-mpi: docs/benchmarks/mpi.md
bench-growth: RUN = bench/studies/test_growth.py --rounds 12  ## from 2 to 16 cores: docs/benchmarks/growth.md
bench-hosts: RUN = bench/studies/test_hosts.py -k on_hosts --most 30 --rounds 15 --block 0.05  ## four hosts with cables of 1 Gb/s: docs/benchmarks/tcp.md (needs root)
bench-lanes: RUN = bench/studies/test_hosts.py -k leaders --most 30 --rounds 12 --block 0.05  ## one leader of a node, or several: docs/benchmarks/growth.md (needs root, and 16 cores)
# A run is added to the record of its name; pages show the median over the runs of a record.
bench bench-tcp bench-mpi bench-growth bench-hosts bench-lanes: $(VENV)/.peers
	@mkdir -p bench/results
	$(BIN)/python -m pytest $(RUN) --benchmark-quiet --benchmark-json=bench/results/$(RECORD).json
	$(BIN)/python -m bench.report bench/results/$(RECORD).json
RECORD = $(subst bench,essentials,$(@:bench-%=%))

bench-short: $(VENV)/.peers  ## what the targets judge, beside what is recorded
	@mkdir -p bench/results
	$(BIN)/python -m pytest bench --short --benchmark-quiet --benchmark-json=bench/results/short.json
	$(BIN)/python -m bench.compare bench/recorded/essentials.json bench/results/short.json

$(COBRE_VENV)/.cobre:
	test -x $(COBRE_VENV)/bin/python || $(COBRE_PYTHON) -m venv $(COBRE_VENV)
	$(COBRE_VENV)/bin/python -m pip install --quiet cobre-python==0.18 pyarrow highsbox==1.15.1
	touch $@

bench-cobre: $(VENV)/.test $(COBRE_VENV)/.cobre  ## the SDDP example beside Cobre, on the same cases and openings: docs/benchmarks/cobre.md (needs Python 3.12)
	@mkdir -p bench/results
	$(BIN)/python -m bench.cobre --python $(COBRE_VENV)/bin/python --out bench/results/cobre.json
	$(BIN)/python -m bench.cobre.page bench/results/cobre.json
	$(BIN)/python -m bench.report

bench-stage: $(VENV)/.test $(COBRE_VENV)/.cobre  ## one stage problem of the SDDP example beside HiGHS from C: docs/benchmarks/cobre.md (needs a C compiler)
	@mkdir -p bench/results
	$(BIN)/python -m bench.cobre.stage --python $(COBRE_VENV)/bin/python --out bench/results/stage.json
	$(BIN)/python -m bench.cobre.page bench/results/stage.json
	$(BIN)/python -m bench.report

clean:
	rm -rf $(VENV) $(DOCS_VENV) $(COBRE_VENV) demo bench/results build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
