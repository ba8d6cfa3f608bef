# The verbs of this project. `make demo` and `make test` need Python 3.11 or newer, a C++ compiler and make; the rest they
# install into .venv, from PyPI (and from Debian's packages where Python's own venv or headers are missing).
# `make test-all` installs programs of others, too (scripts/install_peers.sh).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported: most modules of the dependencies are never imported.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
DEMO := demo
DOCKER ?= docker

NATIVE_SOURCES := CMakeLists.txt pyproject.toml $(shell find simd -name '*.cpp' -o -name '*.hpp')
TESTS ?= tests swsearch
# One more than there are processors, because some tests wait: for a signal, a lock or another process.
JOBS ?= $(shell expr $$(nproc) + 1)
# ORDER=random runs the tests in a random order, SEED=7 in the same one again.
ORDER ?=
SEED ?= $(shell date +%s)

CAMPAIGN_MINUTES ?= 60
CAMPAIGN_JOBS ?= 2

# The commands and the tests start hundreds of processes, each of which would compile all its sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo serve test test-all run-tests test-gpu check-packages coverage images lint bench docs docs-links install clean campaign mutants peers

$(VENV)/.created: scripts/create_venv.sh
	PYTHON=$(PYTHON) sh scripts/create_venv.sh $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created $(NATIVE_SOURCES)
	@echo 'Installing the requirements and compiling the C++ of the CPU engine, which takes a minute or two …'
	$(PIP_INSTALL) --editable .
	@touch $@

# What an extra needs beside the program: without the program itself, whose C++ would be compiled again.
INSTALL_EXTRAS = $(BIN)/python scripts/requirements.py $(1) > $(VENV)/extras.txt && $(PIP_INSTALL) --requirement $(VENV)/extras.txt

$(VENV)/.installed-test: $(VENV)/.installed
	@echo 'Installing what the tests need …'
	$(call INSTALL_EXTRAS,docs test)
	@touch $@

install: $(VENV)/.installed

# Index real sequences, search them, print the hits, and print them again from the store. Protein first, then DNA.
demo: $(VENV)/.installed
	@echo 'Indexing real proteins and a real genome, and searching them …'
	rm -rf $(DEMO) && mkdir $(DEMO)
	$(BIN)/swsearch engines
	$(BIN)/swsearch index data/proteins.fasta.gz -o $(DEMO)/proteins.db
	$(BIN)/swsearch query data/queries.fasta $(DEMO)/proteins.db --top 5 --store $(DEMO)/hits.sqlite
	$(BIN)/swsearch index data/lambda_phage.fasta -o $(DEMO)/lambda.db
	$(BIN)/swsearch query data/lambda_reads.fastq $(DEMO)/lambda.db --format blast6 --store $(DEMO)/hits.sqlite
	$(BIN)/swsearch runs list --store $(DEMO)/hits.sqlite
	$(BIN)/swsearch report 1 --store $(DEMO)/hits.sqlite --format tsv | head -n 4
	@echo
	@echo 'Done. Try next:'
	@echo '  $(BIN)/swsearch query data/queries.fasta $(DEMO)/proteins.db --format pairwise'
	@echo '  $(BIN)/swsearch query YOUR_QUERIES.fasta YOUR_PROTEINS.fasta.gz'
	@echo '  make serve    (the same in a browser)'

$(VENV)/.installed-service: $(VENV)/.installed
	$(call INSTALL_EXTRAS,service)
	@touch $@

$(DEMO)/%.db: | $(VENV)/.installed
	mkdir -p $(DEMO)
	$(BIN)/swsearch index $(SOURCE) -o $@

$(DEMO)/proteins.db: SOURCE = data/proteins.fasta.gz
$(DEMO)/lambda.db: SOURCE = data/lambda_phage.fasta

# The search service on the databases of the demo, at http://127.0.0.1:8765. Ctrl-C stops it.
serve: $(VENV)/.installed-service $(DEMO)/proteins.db $(DEMO)/lambda.db
	$(BIN)/swsearch serve $(DEMO)/proteins.db $(DEMO)/lambda.db --store $(DEMO)/hits.sqlite

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/lint_arithmetic.py
	$(BIN)/python scripts/house.py
	$(BIN)/hadolint --config .hadolint.yaml Dockerfile
	sh scripts/check_cuda_format.sh $(BIN)/clang-format

# Programs of others, with which tests compare. What cannot be installed fails the tests that need it.
$(VENV)/.peers: $(VENV)/.installed-test tests/peers.py scripts/install_peers.sh scripts/install_clients.sh scripts/install_snakemake.sh
	sh scripts/install_peers.sh $(BIN)/python
	sh scripts/install_clients.sh $(BIN)/pip
	sh scripts/install_snakemake.sh $(BIN)/python $(VENV)/snakemake
	@touch $@

PYTEST = pytest -n $(JOBS) --dist worksteal $(if $(filter random,$(ORDER)),--order-seed $(SEED))

# Every commit: the checks of `lint` and, beside them, the tests that need no other program and little time.
test: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory --jobs 2 lint run-tests

run-tests: $(VENV)/.installed-test
	$(BIN)/$(PYTEST) -m 'not thorough and not gpu and not packages' $(TESTS)

# Before a merge: all other tests without a GPU. A missing program is a failure.
test-all: $(VENV)/.installed-test $(VENV)/.peers
	SWSEARCH_PEERS=required $(BIN)/$(PYTEST) -m 'thorough and not gpu and not packages' $(TESTS)

$(VENV)/.installed-packaging: $(VENV)/.created scripts/install_packaging_tools.sh
	sh scripts/install_packaging_tools.sh $(BIN)/python $(VENV)/packaging
	@touch $@

# The lines and branches of swsearch/ that the tests without a GPU execute; fails below the share that pyproject.toml
# states. The page is build/coverage/html/index.html.
coverage: $(VENV)/.installed-test $(VENV)/.peers
	rm -rf build/coverage
	SWSEARCH_PEERS=required $(BIN)/coverage run -m $(PYTEST) -m 'not gpu and not packages' $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --directory build/coverage/html
	$(BIN)/coverage report

# Builds and tries what a release publishes (docs/development/release.md); about twenty minutes.
check-packages: $(VENV)/.installed-test $(VENV)/.installed-packaging
	$(BIN)/pytest -m packages -rs --durations 0 tests/packaging

# The images of Docker; DOCKER=podman builds them with Podman.
images:
	for target in cpu cuda service; do $(DOCKER) build --target $$target --tag swsearch:$$target . || exit 1; done

# Kills, full disks, signals, damage, and random pairs against other programs, for an hour; each trial is a test.
# Atheris leads one of the tests; where its wheel does not fit this Python, that test says so.
campaign: $(VENV)/.peers $(VENV)/.installed-test
	-$(PIP_INSTALL) --only-binary :all: 'atheris>=3'
	$(BIN)/pytest -q -n $(CAMPAIGN_JOBS) --dist worksteal --campaign $(CAMPAIGN_MINUTES) $(CAMPAIGN_OPTIONS) \
		-o tmp_path_retention_policy=failed -m campaign tests/campaign

# The faults of tests/mutants/mutations.txt, each of which a test must find.
mutants: $(VENV)/.peers $(VENV)/.installed-test
	$(BIN)/python -m tests.mutants

build/peers/proteins.fasta: $(VENV)/.peers scripts/swissprot.sh
	mkdir -p build/peers
	sh scripts/swissprot.sh $@ build/peers/queries.fasta

# Whole searches beside blastp, phmmer, ssearch36, DIAMOND and MMseqs2, on the proteins of Swiss-Prot; about half an hour.
peers: $(VENV)/.installed-test build/peers/proteins.fasta
	$(BIN)/python benchmarks/benchmark_peers.py build/peers/queries.fasta build/peers/proteins.fasta --out build/peers/peers.json

# On a machine with an NVIDIA GPU.
test-gpu: $(VENV)/.installed-test
	$(call INSTALL_EXTRAS,cuda)
	$(BIN)/pytest -m gpu $$(grep -rl 'mark\.gpu' --include=test_*.py tests)

bench: $(VENV)/.installed-test
	$(call INSTALL_EXTRAS,bench)
	$(BIN)/python benchmarks/benchmark_cpu.py

$(VENV)/.installed-docs: $(VENV)/.installed
	$(call INSTALL_EXTRAS,docs)
	@touch $@

# The documentation site, in build/site/html. A warning or a link without a target is an error.
docs: $(VENV)/.installed-docs
	$(BIN)/python docs/site/build.py

# Follow the site's links to other sites. Needs the network.
docs-links: $(VENV)/.installed-docs
	$(BIN)/python docs/site/build.py --links

clean:
	rm -rf $(VENV) build $(DEMO)
