# The two that matter are `make run` and `make test`; `make help` lists the others.
# All need Python 3.11 or newer and nothing else: PYTHON=... names one that is not `python3`.

PYTHON ?= python3
VENV ?= .venv
PY = $(VENV)/bin/python
# Hashes pin every file. Wheels only: building one would fetch tools that no hash pins.
PINNED = --quiet --disable-pip-version-check --require-hashes --only-binary :all:
INSTALL = $(PY) -m pip install $(PINNED)
LOCK = $(VENV)/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-strip-extras --custom-compile-command "make lock"

# A program starts much faster from compiled files, and the tests start thousands.
unexport PYTHONDONTWRITEBYTECODE

# How often the benchmark measures, for how many seconds each time, and how large large bodies are.
ROUNDS ?= 5
bench: SECONDS ?= 2
MEGABYTES ?= 512

# How long the soak and the siege run, and the fuzzer at each target.
MINUTES ?= 10
SEEDS ?= 200
fuzz: SECONDS ?= 60

# Where the compiled modules are, and which tests are run there.
COMPILED = $(VENV)/compiled
COMPILED_TESTS ?= tests/gateway/proxy tests/gateway/observe tests/gateway/http tests/gateway/conversion/formats $(addprefix tests/gateway/live/test_,\
	faults.py faults_kept.py limits.py logs.py streaming.py unfinished_heads.py other_bodies.py)
# What all tests need; see the stamps below.
ENVIRONMENTS = test compile bench page clients $(if $(shell command -v npm),node)
# The program helm: that of the machine, or one that go builds from its module.
HELM ?= $(or $(shell command -v helm),$(abspath $(VENV))/helm)
# Whether the benchmark goes without the compiled gateway, and so without a compiler: PLAIN=yes.
PLAIN ?=

.PHONY: help run verify test lint types tests test-slow test-compose test-chart test-packages test-fleet test-telemetry test-page test-clients test-front environments chaos soak simulate siege corpus audit fuzz compiled test-compiled bench generate lock clean

help: ## list what make can do here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/run.stamp ## start the four programs; Ctrl-C ends them
	@exec $(PY) stack/run.py

verify: $(VENV)/verify.stamp ## prove the conversions of gateway.yaml, with the backends up
	@exec $(PY) -m gateway verify

test: lint types tests ## check what can be checked in minutes: lint, types, tests
	@echo "make test: lint, types and tests are good; make test-slow runs the slow ones."

lint: $(VENV)/test.stamp ## check style and format
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(VENV)/test.stamp ## check types
	$(PY) -m mypy

# The tests start programs by the hundred; none is to compile its modules anew. With worksteal most
# files are run by one worker each, so that what the tests of a file share is started once.
tests test-slow: export PYTHONDONTWRITEBYTECODE =

# Processes that run tests side by side: more than there are cores, since many tests wait.
tests: WORKERS ?= 4
test-slow test-compiled: WORKERS ?= 3

tests: $(VENV)/test.stamp ## run the other tests, many over real sockets
	$(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(VENV)/test.stamp ## run what takes long: load, kills, slow clients, the walk to the end of a version
	$(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal -m slow

test-compose: $(VENV)/test.stamp ## prove the Compose stacks; needs a Docker engine that runs
	$(PY) -m pytest tests/compose/prove*.py

test-chart: $(VENV)/test.stamp $(HELM) ## prove the Helm chart; needs helm, or go, which builds it
	HELM=$(HELM) $(PY) -m pytest tests/chart/prove_*.py

test-packages: $(VENV)/test.stamp ## prove the wheel on each Python that is here; needs a package index
	$(PY) -m pytest tests/packages/prove_*.py

test-fleet: $(VENV)/test.stamp $(VENV)/bench.stamp ## prove what runs on PostgreSQL; needs the programs of its server
	$(PY) -m pytest --numprocesses 2 tests/fleet/prove_*.py

test-telemetry: $(VENV)/test.stamp ## prove dashboard and alerts in Prometheus; needs prometheus and promtool
	$(PY) -m pytest tests/telemetry/prove_*.py

test-page: $(VENV)/page.stamp ## prove the operator's page in a browser; needs chromium, and PostgreSQL as test-fleet
	$(PY) -m pytest tests/page/prove_*.py

test-clients: $(VENV)/clients.stamp $(if $(shell command -v npm),$(VENV)/node.stamp) ## prove official clients; those in JavaScript need node and npm
	$(PY) -m pytest --numprocesses 2 --dist loadfile tests/clients/prove_*.py

test-front: $(VENV)/test.stamp $(VENV)/bench.stamp ## run the files of docs/front-proxy.md and docs/deploy.md; needs curl, and nginx for its file
	$(PY) -m pytest tests/front/prove_*.py

environments: $(ENVIRONMENTS:%=$(VENV)/%.stamp) ## install what all tests need

chaos: $(VENV)/test.stamp ## kill, suspend and cut off replicas and their database for MINUTES (10)
	CHAOS_MINUTES=$(MINUTES) $(PY) -m pytest tests/fleet/prove_chaos.py

soak: $(VENV)/test.stamp ## load, kill, restart and reload for MINUTES (10); Ctrl-C ends it early
	@exec $(PY) -m tests.soak --minutes $(MINUTES)

simulate: $(VENV)/test.stamp ## simulate cutovers of healthy and faulty services with SEEDS (200) each
	@exec $(PY) -m tests.gateway.rollout.simulate --seeds $(SEEDS)

siege: $(VENV)/test.stamp ## attack in every known way beside honest clients for MINUTES (10)
	@exec $(PY) -m tests.siege --minutes $(MINUTES)

corpus: $(VENV)/verify.stamp ## verify the real documents of a folder against themselves, CORPUS=folder
	@exec $(PY) -m tests.corpus.prove_corpus $(CORPUS)

audit: ## look all pinned packages up among known vulnerabilities; needs a package index
	@exec $(PYTHON) stack/audit.py $(VENV)/audit

fuzz: $(VENV)/fuzz.stamp ## fuzz what reads bytes of strangers, SECONDS (60) each
	@exec $(PY) -m tests.fuzz --seconds $(SECONDS)

# In a copy of the checkout, so that nothing compiled stands beside a source that is edited.
compiled: $(VENV)/compile.stamp ## make a wheel whose hot modules are compiled; needs a C compiler
	@rm -rf $(COMPILED) && mkdir -p $(COMPILED)/wheel
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp -d --parents -t $(COMPILED)
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-index --no-deps \
		--wheel-dir $(COMPILED)/wheel .
	@$(PY) stack/compile.py $(COMPILED)/wheel/*-none-any.whl $(COMPILED)/wheel 2>$(COMPILED)/compile.log || \
		{ tail -n 20 $(COMPILED)/compile.log >&2; \
		echo "It needs a C compiler and the headers of Python (Debian: gcc libc6-dev python3-dev)." >&2; exit 1; }
	@$(PY) -m zipfile -e $(COMPILED)/wheel/*-cp*.whl $(COMPILED)

test-compiled: compiled ## run the tests of the data path with the compiled modules
	@cd $(COMPILED) && exec $(abspath $(PY)) -m pytest --quiet --numprocesses $(WORKERS) --dist worksteal \
		-m "not slow" $(COMPILED_TESTS)

bench: $(VENV)/bench.stamp $(if $(PLAIN),,compiled) ## measure beside Envoy, Caddy, Traefik, nginx and HAProxy, within 12 minutes
	@exec $(PY) -m benchmarks $(if $(PLAIN),,--compiled $(abspath $(COMPILED))) \
		--rounds $(ROUNDS) --seconds $(SECONDS) --megabytes $(MEGABYTES)

generate: $(VENV)/run.stamp ## write the files that are derived from the code
	$(PY) -m stack.generate

lock: ## pin requirements/*.txt anew from requirements/*.in and pyproject.toml
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

clean: ## remove what make made (never users.db)
	rm -rf $(VENV) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .fuzz
	find . -name __pycache__ -prune -exec rm -rf {} +

# A stamp is written last, so an environment that was interrupted half-way is made anew.
$(VENV)/run.stamp: requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with PYTHON=..., $(PYTHON) is not." >&2; exit 1; }
	@echo "Setting up $(VENV), this once."
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

# The clients have an environment of their own: what they need must not replace what the gateway needs.
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
