# `make help` lists the targets. Needs Python 3.11 or newer with pip, and make; the rest goes into .venv.
.POSIX:
.NOTPARALLEL:

PYTHON = python3
PIP_FLAGS =
WORKERS = 2
GAMES = 10000
DEMO = runs/demo
RUN = runs/long/best

VENV = .venv
PY = $(VENV)/bin/python
STAMP = $(VENV)/installed.stamp
BENCH_STAMP = $(VENV)/installed-bench.stamp

# Worked out anew for each command, since it depends on the sources and on numba's settings: see tests/_numba_cache.py.
CACHE = NUMBA_CACHE_DIR="$$($(PY) tests/_numba_cache.py)"
# One thread each for torch: the tests already run in $(WORKERS) processes.
PYTEST = OMP_NUM_THREADS=1 $(PY) -m pytest
PARALLEL = -n $(WORKERS) --dist worksteal
# Without what needs more than `make install` brings.
HERE = not interop and not browser

DEMO_TRAIN = train.py --preset demo --out $(DEMO)
DEMO_FIELD = evaluate.py ppo:$(DEMO) greedy random
DEMO_RANDOM = $(DEMO_FIELD) --against random --out $(DEMO)/report
DEMO_GREEDY = $(DEMO_FIELD) --against greedy-v1 --out $(DEMO)/report-vs-greedy

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

install: $(STAMP) ## set up .venv with everything that the gates need

$(STAMP): pyproject.toml constraints.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e ".[dev]"
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(PY) -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e ".[dev,bench]"
	touch $@

# The gates

test: lint types test-nojit test-bounds test-all wheel-test ## every gate, as CI runs it (within 15 minutes on two cores)
	@echo "make test: all gates passed"

test-fast: lint types warm ## lint, types and the tests not marked slow (under 90 s)
	$(PYTEST) $(PARALLEL) -m "not slow and $(HERE)"

lint: $(STAMP) ## ruff: rules and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(STAMP) ## mypy --strict on dnfh_env and agents
	$(PY) -m mypy --strict

warm: $(STAMP) ## compile the kernels once, so that the test processes find them on disk
	$(CACHE) $(PY) tests/smoke.py

test-nojit: $(STAMP) ## the small suites as plain Python, with the JIT off
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(PARALLEL) -m "small and $(HERE)"

test-bounds: $(STAMP) ## the small suites compiled with bounds checks
	NUMBA_BOUNDSCHECK=1 $(PYTEST) $(PARALLEL) -m "small and $(HERE)"

test-all: warm ## all tests, with the notebooks on small budgets
	DNFH_NOTEBOOK_BUDGET=small $(PYTEST) $(PARALLEL) -m "$(HERE)" --durations=15

wheel-test: $(STAMP) ## build the wheel, install it alone elsewhere, play a game with it
	$(PY) tests/check_wheel.py

# Heavier checks, run by hand

mutants: $(STAMP) ## break the rules on purpose, one edit at a time, and see that a test fails each time
	$(PY) tests/mutants.py

interop: $(BENCH_STAMP) ## compare the engine with OpenSpiel's hearts, and run the peers of the bench
	$(PYTEST) -m interop

coverage-test: $(STAMP) ## check that intervals hold what they promise, on made-up scores and on 2 million blocks
	$(CACHE) $(PY) benchmarks/interval_coverage.py

test-browser: $(STAMP) ## look at the report's page in headless Chromium; installs Debian's if there is none
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		{ apt-get update && apt-get install -y --no-install-recommends chromium; }
	$(PYTEST) -m browser

differential: $(STAMP) ## compare the engine with the oracle over GAMES=10000 games
	DNFH_DIFFERENTIAL_GAMES=$(GAMES) $(PYTEST) -s -o faulthandler_timeout=0 tests/test_differential.py

notebooks: $(STAMP) ## run the notebooks with their full budgets
	DNFH_NOTEBOOK_BUDGET=full $(PY) -m pytest tests/test_notebooks.py

bench: $(BENCH_STAMP) ## measure speed beside the peers (about six minutes on two idle cores)
	$(CACHE) $(PY) benchmarks/run.py

bench-instructions: $(STAMP) ## count instructions a decision; needs valgrind
	$(CACHE) $(PY) benchmarks/instructions.py

bench-learning: $(STAMP) ## measure learning speed beside stock MaskablePPO
	$(CACHE) $(PY) benchmarks/learning.py

suites: $(STAMP) ## make the tactical suites anew (some ten minutes); the files come out the same
	$(CACHE) $(PY) benchmarks/make_suites.py
	$(CACHE) $(PY) benchmarks/make_endings.py

measure-luck: $(STAMP) ## measure by what factors luck control narrows intervals
	$(CACHE) $(PY) benchmarks/fit_hand_value.py --measure

strength: $(STAMP) ## measure the bots' strength against what is asked of them (some forty minutes on two idle cores)
	$(CACHE) $(PY) benchmarks/strength.py

weights: $(STAMP) ## put the policy of RUN=runs/long/best into the package, as the agent "learned"
	$(PY) benchmarks/ship_weights.py $(RUN)

# Everyday

demo: $(STAMP) ## train for about three minutes, evaluate, and say where the reports are
	rm -rf $(DEMO)
	$(CACHE) $(PY) $(DEMO_TRAIN)
	$(CACHE) $(PY) $(DEMO_RANDOM)
	$(CACHE) $(PY) $(DEMO_GREEDY)
	@echo "Reports: $(DEMO)/report and $(DEMO)/report-vs-greedy"

format: $(STAMP) ## let ruff fix and format the code
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean: ## remove caches and build output (.venv, runs and results stay)
	rm -rf build dist *.egg-info .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find dnfh_env agents tests benchmarks notebooks -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help install test test-fast lint types warm test-nojit test-bounds test-all wheel-test mutants interop \
	coverage-test test-browser differential notebooks bench bench-instructions bench-learning suites measure-luck strength weights demo format clean
