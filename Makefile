# make crawl SEED=URL CONTACT=you@example.org    crawl a site; without SEED: a small computed web on this machine
# make test | test-long                          the tests, six minutes on two cores | those of some seconds each: clusters, crashes
# make simulate                                  500 whole crawls on a seeded machine, with crashes, lying peers and lost power
# make fuzz SECONDS=600                          fuzzers: links, URLs, robots, bodies, headers, XML, messages, the HTTP interface
# make lint | check                              style, format and strict types | lint and test
#
# Needs Python 3.11 or 3.12 and a package registry; no root. The environment is .venv here, from the hash-pinned locks;
# it is brought up to date when a lock or pyproject.toml changed, and only then.
#
# ARGS passes more options:  make crawl SEED=... CONTACT=... ARGS="--max-pages 500 --scope domain"
#                            make test ARGS="tests/opic -x"
# PYTHON chooses an interpreter: 3.11 or 3.12, for which plyvel has wheels.

PYTHON ?= $(shell for python in python3.11 python3.12 python3; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
# An environment that was made in another folder, by another Python, or only in part, runs nothing: it goes, and is made
# anew.
SOUND = grep -qsF '$(CURDIR)/$(VENV)/bin/python' $(VENV)/bin/pip && $(VENV)/bin/python -c '$(SUITS)' 2>/dev/null
SUITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))
ifeq ($(filter help clean,$(or $(MAKECMDGOALS),crawl))$(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),)
ifneq ($(shell test ! -d $(VENV) || { $(SOUND); } || { rm -rf $(VENV); echo stale; }),)
$(info The environment $(VENV) was of another folder, another Python or not complete: it is made anew)
endif
endif
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --require-hashes
# Two workers a core, for many tests wait: for disks, clocks and other processes. A worker that has nothing
# left to do takes tests from the others: no order may be relied upon.
WORKERS := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
PYTEST := $(VENV)/bin/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal
# The folder itself, not a copy of it; the build backend comes out of the lock, so nothing is fetched that is not pinned.
INSTALL_XYRO := $(PIP) install --quiet --no-deps --no-build-isolation --editable .

# $(call quoted,WORDS): each word as one word of the shell, whatever is in it.
quoted = $(foreach word,$(1),'$(subst ','\'',$(word))')
contact = $(if $(value CONTACT),--contact $(call quoted,$(value CONTACT)))

.PHONY: help env dev crawl test test-long simulate fuzz lint check lock clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

env: $(VENV)/.runs
dev: $(VENV)/.develops

crawl: $(VENV)/.runs
ifeq ($(strip $(value SEED)),)
	$(VENV)/bin/xyro lab demo $(ARGS)
else
	$(VENV)/bin/xyro crawl $(call quoted,$(value SEED)) $(contact) $(ARGS)
endif

test: $(VENV)/.develops
	$(PYTEST) -m 'not long' $(ARGS)

test-long: $(VENV)/.develops
	$(PYTEST) -m long $(ARGS)

simulate: $(VENV)/.develops
	$(VENV)/bin/xyro lab simulate $(ARGS)

SECONDS := 60
fuzz: $(VENV)/.develops
	$(VENV)/bin/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

lint: $(VENV)/.develops
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

check: lint test

$(VENV)/bin/python:
	@$(if $(PYTHON),$(PYTHON) -c '$(SUITS)',false) || { \
		echo 'No Python 3.11 or 3.12 here ('$$($(or $(PYTHON),python3) --version 2>&1 || echo no Python)').' \
			'Install one, or name it: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@echo 'Making the environment $(VENV) with $(PYTHON)'
	@$(PYTHON) -m venv $(VENV)

# Two stamps: crawling needs a third of what testing needs, and whoever came to crawl should not wait for the rest.
$(VENV)/.runs: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo 'Installing the packages of $<: half a minute, the first time'
	@$(INSTALL) -r $<
	@$(INSTALL_XYRO)
	@touch $@

$(VENV)/.develops: requirements-dev.lock pyproject.toml | $(VENV)/bin/python
	@echo 'Installing the packages of $<: half a minute, the first time'
	@$(INSTALL) -r $<
	@$(INSTALL_XYRO)
	@touch $@ $(VENV)/.runs

# The locks, anew: the newest versions that pyproject.toml admits, with the hashes of all files the registry has of them.
UV := uv==0.13.9
LOCK := uv pip compile --quiet --no-config --no-cache --upgrade --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
BUILD_REQUIRES := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")

lock: | $(VENV)/bin/python
	@set -e; tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	$(VENV)/bin/python -m venv "$$tools"; "$$tools/bin/pip" install --quiet $(UV); PATH="$$tools/bin:$$PATH"; \
	build_requires() { $(VENV)/bin/python -c '$(BUILD_REQUIRES)'; }; \
	build_requires | $(LOCK) --output-file requirements.lock --extra cluster pyproject.toml -; \
	build_requires | $(LOCK) --output-file requirements-dev.lock --extra dev --constraints requirements.lock pyproject.toml -

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
