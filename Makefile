# The main targets are `make run` and `make test`; `make help` lists all targets.
# They need Python 3.11 or later. PYTHON=... names an interpreter other than `python3`.

PYTHON ?= python3
VENV ?= .venv
PY = $(VENV)/bin/python
# Hashes pin every file. Only wheels are used: building one would fetch tools without a hash.
PINNED = --quiet --disable-pip-version-check --require-hashes --only-binary :all:
INSTALL = $(PY) -m pip install $(PINNED)
LOCK = $(VENV)/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-strip-extras --custom-compile-command "make lock"

# Programs start much faster with compiled files, and the tests start thousands of programs.
unexport PYTHONDONTWRITEBYTECODE

# The benchmark: the number of rounds, the seconds of a run, and the size of large bodies in MB.
ROUNDS ?= 5
bench: SECONDS ?= 2
MEGABYTES ?= 512

# The minutes of the soak and the siege, the seeds of the simulation, the seconds of each fuzz target.
MINUTES ?= 10
SEEDS ?= 200
fuzz: SECONDS ?= 60

# The folder of the compiled modules, and the tests that run there.
COMPILED = $(VENV)/compiled
COMPILED_TESTS ?= tests/gateway/proxy tests/gateway/observe tests/gateway/http tests/gateway/conversion/formats $(addprefix tests/gateway/live/test_,\
	faults.py faults_kept.py limits.py logs.py streaming.py unfinished_heads.py other_bodies.py)
# The environments of all tests; see the stamps below.
ENVIRONMENTS = test compile bench page clients $(if $(shell command -v npm),node)
# The program helm: the installed one, or one that Go builds.
HELM ?= $(or $(shell command -v helm),$(abspath $(VENV))/helm)
# PLAIN=yes runs the benchmark without the compiled gateway, and so without a compiler.
PLAIN ?=

.PHONY: help run verify test lint types tests test-slow test-compose test-chart test-packages test-fleet test-telemetry test-page test-clients test-front environments chaos soak simulate siege corpus audit fuzz compiled test-compiled bench generate lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/run.stamp ## start the four programs; Ctrl-C ends them
	@exec $(PY) stack/run.py

verify: $(VENV)/verify.stamp ## verify the conversions of gateway.yaml while the backends run
	@exec $(PY) -m gateway verify

test: lint ## run lint, types and the fast tests
	@$(MAKE) --no-print-directory --jobs 2 types tests
	@echo "make test: lint, types and tests have passed; make test-slow runs the slow tests."

lint: $(VENV)/test.stamp ## check style and format
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(VENV)/test.stamp ## check types
	$(PY) -m mypy

# The tests start hundreds of programs, which share compiled files. With worksteal, one worker runs
# most files as a whole, so that the shared programs of a file are started once.
tests test-slow: export PYTHONDONTWRITEBYTECODE =

# The number of test processes: more than the cores, since many tests wait.
tests: WORKERS ?= 6
test-slow test-compiled: WORKERS ?= 3

tests: $(VENV)/test.stamp ## run the fast tests, many of them over real sockets
	$(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(VENV)/test.stamp ## run the slow tests: load, kills, slow clients, the retirement of a version
	$(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal -m slow

test-compose: $(VENV)/test.stamp ## test the Compose stacks; needs a running Docker engine
	$(PY) -m pytest tests/compose/prove*.py

test-chart: $(VENV)/test.stamp $(HELM) ## test the Helm chart; needs helm, or Go to build it
	HELM=$(HELM) $(PY) -m pytest tests/chart/prove_*.py

test-packages: $(VENV)/test.stamp ## test the wheel on each installed Python; needs a package index
	$(PY) -m pytest tests/packages/prove_*.py

test-fleet: $(VENV)/test.stamp $(VENV)/bench.stamp ## test fleets; needs a PostgreSQL server
	$(PY) -m pytest --numprocesses 2 tests/fleet/prove_*.py

test-telemetry: $(VENV)/test.stamp ## test the dashboard and the alerts; needs prometheus and promtool
	$(PY) -m pytest tests/telemetry/prove_*.py

test-page: $(VENV)/page.stamp ## test the operator's page in a browser; needs chromium and PostgreSQL
	$(PY) -m pytest tests/page/prove_*.py

test-clients: $(VENV)/clients.stamp $(if $(shell command -v npm),$(VENV)/node.stamp) ## test with official clients; those in JavaScript need node and npm
	$(PY) -m pytest --numprocesses 2 --dist loadfile tests/clients/prove_*.py

test-front: $(VENV)/test.stamp $(VENV)/bench.stamp ## run the files of docs/front-proxy.md and docs/deploy.md; needs curl and nginx
	$(PY) -m pytest tests/front/prove_*.py

environments: $(ENVIRONMENTS:%=$(VENV)/%.stamp) ## install the environments of all tests

chaos: $(VENV)/test.stamp ## kill, suspend and cut off replicas and their database for MINUTES (10)
	CHAOS_MINUTES=$(MINUTES) $(PY) -m pytest tests/fleet/prove_chaos.py

soak: $(VENV)/test.stamp ## load, kill, restart and reload for MINUTES (10); Ctrl-C ends it early
	@exec $(PY) -m tests.soak --minutes $(MINUTES)

simulate: $(VENV)/test.stamp ## simulate cutovers of healthy and faulty services, each with SEEDS (200)
	@exec $(PY) -m tests.gateway.rollout.simulate --seeds $(SEEDS)

siege: $(VENV)/test.stamp ## run all known attacks beside honest clients for MINUTES (10)
	@exec $(PY) -m tests.siege --minutes $(MINUTES)

corpus: $(VENV)/verify.stamp ## verify the real documents of a folder against themselves, CORPUS=folder
	@exec $(PY) -m tests.corpus.prove_corpus $(CORPUS)

audit: ## check all pinned packages for known vulnerabilities; needs a package index
	@exec $(PYTHON) stack/audit.py $(VENV)/audit

fuzz: $(VENV)/fuzz.stamp ## fuzz each parser of untrusted bytes for SECONDS (60)
	@exec $(PY) -m tests.fuzz --seconds $(SECONDS)

# A copy of the checkout is compiled, so that no compiled module lies beside an edited source.
compiled: $(VENV)/compile.stamp ## build a wheel with compiled modules; needs a C compiler
	@rm -rf $(COMPILED) && mkdir -p $(COMPILED)/wheel
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp -d --parents -t $(COMPILED)
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-index --no-deps \
		--wheel-dir $(COMPILED)/wheel .
	@$(PY) stack/compile.py $(COMPILED)/wheel/*-none-any.whl $(COMPILED)/wheel 2>$(COMPILED)/compile.log || \
		{ tail -n 20 $(COMPILED)/compile.log >&2; \
		echo "This needs a C compiler and the headers of Python (Debian: gcc libc6-dev python3-dev)." >&2; exit 1; }
	@$(PY) -m zipfile -e $(COMPILED)/wheel/*-cp*.whl $(COMPILED)

test-compiled: compiled ## run the tests of the data path with the compiled modules
	@cd $(COMPILED) && exec $(abspath $(PY)) -m pytest --quiet --numprocesses $(WORKERS) --dist worksteal \
		-m "not slow" $(COMPILED_TESTS)

bench: $(VENV)/bench.stamp $(if $(PLAIN),,compiled) ## measure beside Envoy, Caddy, Traefik, nginx and HAProxy, within 12 minutes
	@exec $(PY) -m benchmarks $(if $(PLAIN),,--compiled $(abspath $(COMPILED))) \
		--rounds $(ROUNDS) --seconds $(SECONDS) --megabytes $(MEGABYTES)

generate: $(VENV)/run.stamp ## write the files that are generated from the code
	$(PY) -m stack.generate

lock: ## update the pins in requirements/*.txt from requirements/*.in and pyproject.toml
	@$(PYTHON) -m venv --clear $(VENV)/uv
	@$(VENV)/uv/bin/python -m pip install $(PINNED) --requirement requirements/lock.txt
	$(LOCK) pyproject.toml --extra jwt --extra otlp requirements/run.in --output-file requirements/run.txt
	$(LOCK) requirements/build.in --output-file requirements/build.txt
	$(LOCK) requirements/test.in --output-file requirements/test.txt
	$(LOCK) requirements/compile.in --output-file requirements/compile.txt
	$(LOCK) requirements/verify.in --output-file requirements/verify.txt
	$(LOCK) requirements/bench.in --output-file requirements/bench.txt
	$(LOCK) requirements/fuzz.in --output-file requirements/fuzz.txt
	$(LOCK) requirements/page.in --output-file requirements/page.txt
	$(LOCK) requirements/clients.in --output-file requirements/clients.txt
	$(LOCK) requirements/clients-elasticsearch-7.in --output-file requirements/clients-elasticsearch-7.txt
	$(LOCK) requirements/clients-pygithub-1.in --output-file requirements/clients-pygithub-1.txt
	$(LOCK) requirements/clients-stripe-5.in --output-file requirements/clients-stripe-5.txt
	$(LOCK) requirements/audit.in --output-file requirements/audit.txt
	$(LOCK) requirements/lock.in --output-file requirements/lock.txt

clean: ## remove all files that make has created, but not users.db
	rm -rf $(VENV) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .fuzz
	find . -name __pycache__ -prune -exec rm -rf {} +

# A stamp is written last, so an incomplete environment is created again.
$(VENV)/run.stamp: requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11; name a later one with PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV). This happens only once."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(INSTALL) --requirement requirements/run.txt
	@touch $@

$(VENV)/verify.stamp: $(VENV)/run.stamp requirements/verify.txt
	@$(INSTALL) --requirement requirements/verify.txt
	@touch $@

$(VENV)/test.stamp: $(VENV)/verify.stamp requirements/test.txt requirements/build.txt
	@$(INSTALL) --requirement requirements/test.txt --requirement requirements/build.txt
	@touch $@

$(VENV)/compile.stamp: $(VENV)/test.stamp requirements/compile.txt
	@$(INSTALL) --requirement requirements/compile.txt
	@touch $@

$(VENV)/bench.stamp: $(VENV)/run.stamp requirements/bench.txt
	@$(INSTALL) --requirement requirements/bench.txt
	@touch $@

$(VENV)/page.stamp: $(VENV)/test.stamp requirements/page.txt
	@$(INSTALL) --requirement requirements/page.txt
	@touch $@

$(VENV)/fuzz.stamp: $(VENV)/test.stamp requirements/fuzz.txt
	@$(INSTALL) --requirement requirements/fuzz.txt
	@touch $@

$(abspath $(VENV))/helm:
	@GOBIN=$(abspath $(VENV)) go install helm.sh/helm/v3/cmd/helm@v3.22.0

# The clients have a separate environment, because their dependencies may conflict with the gateway's.
$(VENV)/clients.stamp: $(VENV)/test.stamp requirements/clients.txt requirements/clients-elasticsearch-7.txt requirements/clients-pygithub-1.txt requirements/clients-stripe-5.txt
	@$(PYTHON) -m venv --clear $(VENV)/clients
	@$(VENV)/clients/bin/python -m pip install $(PINNED) --requirement requirements/clients.txt
	@for client in elasticsearch-7 pygithub-1 stripe-5; do $(VENV)/clients/bin/python -m pip install $(PINNED) \
		--target $(VENV)/clients/$$client --requirement requirements/clients-$$client.txt || exit 1; done
	@touch $@

$(VENV)/node.stamp: $(VENV)/clients.stamp tests/clients/package.json tests/clients/package-lock.json
	@mkdir -p $(VENV)/clients/node
	@cp tests/clients/package.json tests/clients/package-lock.json $(VENV)/clients/node
	@npm ci --prefix $(VENV)/clients/node --silent --no-audit --no-fund --ignore-scripts
	@touch $@
