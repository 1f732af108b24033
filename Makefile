# Everything a newcomer needs, from a fresh checkout, with only python3 (3.11 or newer), make and git:
# each target first builds .venv from the locked versions, once, and again only when the lock, pyproject.toml,
# the Python asked for or the checkout's place changes.
#
# All paths are relative and every tool is started as `.venv/bin/python -m tool`: make cannot name a target in a folder
# with a space in its name, and neither can the first line of an installed script name its interpreter.

PYTHON ?= python3
ARGS ?=
RUN := .venv/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check
LOCK := requirements/dev.lock
READY := .venv/.ready

# The environment holds exactly what the lock says; a PYTHONPATH of the caller's would put other code before it.
unexport PYTHONPATH PYTHONHOME
# Every worker and child process of the tests would otherwise compile every source file again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test test-long test-adapters reproduce quick bench coverage demo docs paper format lock clean rebuild
.DELETE_ON_ERROR:

help:
	@echo 'driftbandit: bandits for rewards that change over time'
	@echo
	@echo '  make test        lint, format, types, tests and the examples in docstrings'
	@echo '  make test-long   the other tests: all policies compiled, whole studies, several processes'
	@echo '  make test-adapters   the adapters, with the newest libraries that can be installed, in build/adapters'
	@echo '  make reproduce   the experiments of the paper, with figures, into build/paper'
	@echo '  make quick       the same in short: fewer runs, to see that everything works'
	@echo '  make bench       speed on this machine, next to plain NumPy, C and other libraries'
	@echo '  make docs        the site, into build/site/index.html'
	@echo '  make paper       the short paper on DriftTS and DriftLinTS, its numbers filled in, into build/drift.pdf'
	@echo '  make demo        a service fed by environments that drift, with a page to watch it'
	@echo '  make coverage    which lines of interpreted code the tests reach, into build/coverage/index.html'
	@echo '  make format      put the code into the house format, mend what lint can, list the policies, write reference pages'
	@echo '  make lock        choose new versions for $(LOCK)'
	@echo '  make clean       remove .venv, build and every cache'
	@echo
	@echo 'The first call builds .venv from $(LOCK), which takes about a minute; later calls start at once.'
	@echo
	@echo '  make test PYTHON=python3.12             with another Python'
	@echo '  make test ARGS="-k bandit -x"            pass words on: here to pytest, see pytest --help'
	@echo '  make reproduce ARGS="--help"            or to the command, to see what it offers'

test: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest -n 2 --dist loadfile -m 'not long' $(ARGS)

test-long: $(READY)
	$(RUN) -m pytest -n 2 --dist worksteal -m long $(ARGS)

# Not part of the lock: LiteLLM brings 60 packages, and the adapters are to work with what users install today.
ADAPTERS := build/adapters/bin/python
test-adapters:
	test -x $(ADAPTERS) || $(PYTHON) -m venv build/adapters
	$(ADAPTERS) -m pip --disable-pip-version-check install -qq --upgrade --upgrade-strategy eager \
	    -e '.[river,openfeature,litellm,gymnasium,serve,client]' hypothesis platformdirs polars pyarrow pytest
	$(ADAPTERS) -m pip --disable-pip-version-check list | grep -iE '^(river|openfeature-sdk|litellm|gymnasium) '
	$(ADAPTERS) -m pytest -p no:cacheprovider tests/adapters $(ARGS)

reproduce: $(READY)
	$(RUN) -m driftbandit reproduce --out build/paper $(ARGS)

quick: $(READY)
	$(RUN) -m driftbandit reproduce --quick --out build/quick $(ARGS)

bench: $(READY)
	$(RUN) -m benchmarks.speed $(ARGS)

# Compiled code is invisible to coverage, so this plays everything interpreted that can be.
coverage: $(READY)
	$(RUN) -m coverage run --source src/driftbandit -m pytest -q -p no:xdist -m 'not long' $(ARGS)
	$(RUN) -m coverage html -d build/coverage
	$(RUN) -m coverage report --skip-covered | tail -40

# -W: a warning is an error, a broken link among them.
docs: $(READY)
	$(RUN) -m sphinx -q -W --keep-going -b html -d build/docs/doctrees docs build/site $(ARGS)
	@echo 'The site is build/site/index.html'

# pandoc and typst are not part of the lock: they take 250 MB, and nothing else needs them.
PAPER := build/paper-tools/bin/python
paper: $(READY)
	test -x $(PAPER) || $(PYTHON) -m venv build/paper-tools
	$(PAPER) -m pip --disable-pip-version-check install -qq -r requirements/paper.txt
	$(RUN) -m tools.paper --out build/drift
	$(PAPER) tools/paper_pdf.py build/drift/drift.md build/drift.pdf
	@echo 'The paper is build/drift.pdf'

demo: $(READY)
	$(RUN) -m driftbandit demo $(ARGS)

format: $(READY)
	$(RUN) tools/exports.py
	$(RUN) -m tools.site.committed
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# One version of each package for all our Pythons, so that all of them draw the same figures; hashes, so that an
# install anywhere gets these very files. uv only writes the file: plain pip reads it.
lock: $(READY)
	$(PIP) install -qq uv
	$(RUN) -m uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --fork-strategy fewest \
	    --generate-hashes --upgrade --quiet --no-python-downloads --custom-compile-command 'make lock' --output-file $(LOCK)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment ---------------------------------------------------------------------------------------------

# Where an environment stands and which Python made it. A moved or copied checkout still names its old place in the
# editable install, and would quietly test the code there.
IDENTITY = import os, sys; print(os.getcwd(), sys.version.split()[0])
MADE := $(shell cat .venv/.identity 2>/dev/null)
ifneq ($(MADE),)
# Only a PYTHON given by the caller changes the environment; without one, any environment we made will do.
ifeq ($(origin PYTHON),file)
WANTED := $(shell $(RUN) -c '$(IDENTITY)' 2>/dev/null)
else
WANTED := $(shell $(PYTHON) -c '$(IDENTITY)' 2>/dev/null)
endif
ifneq ($(MADE),$(WANTED))
.venv/.identity: rebuild
endif
endif
rebuild:

# Some systems split pip's installer from Python; there a pip outside can still fill the environment.
.venv/.identity:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo \
	    'driftbandit needs Python 3.11 or newer, and "$(PYTHON)" is not that; name one, as in: make $(MAKECMDGOALS) PYTHON=python3.12' >&2; exit 1; }
	@echo 'Building .venv with $(PYTHON) ...'
	@rm -rf .venv
	@if $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then $(PYTHON) -m venv .venv; \
	elif $(PYTHON) -c 'import pip, venv' 2>/dev/null; then \
	    $(PYTHON) -m venv --without-pip .venv && $(PYTHON) -m pip --python $(RUN) install -qq pip; \
	else \
	    echo 'driftbandit needs the venv and ensurepip modules of Python, which $(PYTHON) lacks;' \
	        'on Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; \
	fi
	@$(RUN) -c '$(IDENTITY)' > $@

.venv/.locked: .venv/.identity $(LOCK)
	@echo 'Installing the versions in $(LOCK) ...'
	@$(PIP) install -qq --require-hashes --only-binary :all: -r $(LOCK)
	@touch $@

$(READY): .venv/.locked pyproject.toml
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch $@
