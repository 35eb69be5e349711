#!/usr/bin/env bash
# Thirty command lines that users have, run by the code in ROOT; prints one line for each: exit
# status, and digests of what it left. Two revisions must print the same:
#
#     tests/same_commands.sh /path/to/old > old.txt; tests/same_commands.sh . > new.txt; diff old.txt new.txt
#
# ROOT needs an environment in ROOT/.venv whose `adapter-bert` runs the code of ROOT.
set -u
ROOT=$(cd "${1:-.}" && pwd)
HERE=$(cd "$(dirname "$0")" && pwd)
OLD=$HERE/golden/written_before
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
cp -r "$OLD/base" "$OLD/mrpc" "$OLD/table" "$OLD/squad" .
export PYTHONPATH=$ROOT TF_ENABLE_ONEDNN_OPTS=0 TF_CPP_MIN_LOG_LEVEL=3
PY=$ROOT/.venv/bin/python
CLASSIFY="$PY $ROOT/run_classifier.py"
SQUAD="$PY $ROOT/run_squad.py"
BERT="--vocab_file=base/vocab.txt --bert_config_file=base/bert_config.json --init_checkpoint=base/bert_model.ckpt"
MRPC="--task_name=MRPC --data_dir=mrpc $BERT --max_seq_length=16 --train_batch_size=8 --learning_rate=1e-2"
QUESTIONS="--max_seq_length=24 --max_query_length=8 --doc_stride=4 --train_batch_size=4 $BERT"
TABLE="--task_name=tsv --data_dir=table $BERT --max_seq_length=16 --train_batch_size=8"

# Digest of a folder: names of files, weights, results, predictions; without times, paths, versions.
digest() {
  $PY - "$@" <<'PYTHON'
import hashlib, json, pathlib, sys
KEEP = (".safetensors", ".tsv", "eval_results.txt", "test_metrics.txt", "predictions.json",
        "null_odds.json", "sweep.csv", ".csv", ".jsonl")
result = hashlib.sha256()
for folder in map(pathlib.Path, sys.argv[1:]):
    for path in sorted(p for p in folder.rglob("*") if p.is_file()) if folder.is_dir() else [folder]:
        name = path.relative_to(folder).as_posix() if folder.is_dir() else path.name
        if name.startswith(("features/", "checkpoints/")) or "tfevents" in name or ".lock" in name:
            continue
        result.update(f"{name}\n".encode())
        if not path.exists() or name.endswith(("metrics.jsonl", "ledger.jsonl")):
            continue
        if name.endswith("sweep.csv"):
            rows = [line.split(",") for line in path.read_text().splitlines()]
            kept = [i for i, cell in enumerate(rows[0]) if "second" not in cell]
            result.update(repr([[row[i] for i in kept] for row in rows]).encode())
        elif name.endswith(KEEP):
            result.update(path.read_bytes())
        elif name.endswith("adapter_config.json"):
            config = json.loads(path.read_text())
            result.update(json.dumps([config.get(k) for k in ("task", "labels", "adapter", "tuning",
                "metric", "run", "global_step", "inputs", "head")], sort_keys=True).encode())
print(result.hexdigest()[:16])
PYTHON
}

# run NAME FOLDER... -- COMMAND: prints the name, the exit status and the digest of the folders.
run() {
  local name=$1 folders=(); shift
  while [ "$1" != -- ]; do folders+=("$1"); shift; done; shift
  "$@" > "$WORK/log" 2>&1
  local status=$?
  printf '%-28s %3d  %s\n' "$name" "$status" "$(digest "${folders[@]}")"
  if [ -n "${VERBOSE:-}" ]; then tail -3 "$WORK/log"; fi
}

run adapter_bert_readme out1 -- $CLASSIFY $MRPC --do_train=true --do_eval=true --do_predict=true --num_train_epochs=2 --output_dir=out1
run again out1 -- $CLASSIFY $MRPC --do_train=true --do_eval=true --do_predict=true --num_train_epochs=2 --output_dir=out1
run other_flags_refused out1 -- $CLASSIFY $MRPC --do_train --num_train_epochs=1 --seed=4 --output_dir=out1
run base_model out2 -- $CLASSIFY --task_name=mrpc --data_dir=mrpc --base_model=base --max_seq_length=16 --train_batch_size=8 --do_train --do_eval --num_train_epochs=1 --adapter=pfeiffer --output_dir=out2
run size_and_layers out3 -- $CLASSIFY $MRPC --do_train --num_train_epochs=1 --adapter_size=3 --adapter_layers=1 --adapter_init_scale=0.1 --output_dir=out3
run full out4 -- $CLASSIFY $MRPC --do_train --do_eval --num_train_epochs=1 --tuning=full --output_dir=out4
run top_k out5 -- $CLASSIFY $MRPC --do_train --num_train_epochs=1 --tuning=top_k --top_k=1 --output_dir=out5
run layer_norm_original out6 -- $CLASSIFY $MRPC --do_train --num_train_epochs=1 --tuning=layer_norm --optimizer=adapter_bert --output_dir=out6
run best_weights out7 -- $CLASSIFY $MRPC --do_train --do_eval --num_train_epochs=3 --eval_every_steps=2 --keep=best --patience=2 --output_dir=out7
run accumulation out8 -- $CLASSIFY $MRPC --do_train --num_train_epochs=2 --gradient_accumulation_steps=2 --warmup_proportion=0.5 --weight_decay=0 --dropout=0 --output_dir=out8
run frozen_layers out9 -- $CLASSIFY $MRPC --do_train --num_train_epochs=1 --frozen_layers=1 --cache_frozen --output_dir=out9
run evaluate_elsewhere out10 -- $CLASSIFY $MRPC --do_eval --do_predict --adapter_dir=out1/adapter --output_dir=out10
run init_from out11 -- $CLASSIFY $MRPC --do_train --num_train_epochs=1 --init_from=out1/adapter --output_dir=out11
run table_classes out12 -- $CLASSIFY $TABLE --text_a_column=text --label_column=kind --do_train --do_eval --num_train_epochs=1 --output_dir=out12
run table_scores out27 -- $CLASSIFY $TABLE --text_a_column=text --label_column=1 --regression --do_train --do_eval --num_train_epochs=1 --output_dir=out27
run a_dry_run out13 -- $CLASSIFY $MRPC --do_train --dry_run --output_dir=out13
printf 'do_train: true\ndo_eval: true\ntask_name: MRPC\ndata_dir: mrpc\nbase_model: base\nmax_seq_length: 16\ntrain_batch_size: 8\nnum_train_epochs: 1\n' > flat.yaml
run yaml out14 -- $CLASSIFY --config=flat.yaml --seed=2 --output_dir=out14
run repeat_run_json out15 -- $CLASSIFY --config=out14/run.json --output_dir=out15
run unknown_flag_in_yaml out14 -- $CLASSIFY --config=flat.yaml --sead=2 --output_dir=out16
run trials out17 -- $CLASSIFY $MRPC --do_train --do_eval --num_train_epochs=1 --num_trials=2 --output_dir=out17
printf 'learning_rate: [1e-3, 1e-2]\nadapter_size: [2]\n' > grid.yaml
run sweep out18 -- $CLASSIFY $MRPC --do_train --do_eval --do_predict --num_train_epochs=1 --sweep=grid.yaml --output_dir=out18
run folds out19 -- $CLASSIFY $MRPC --do_train --do_eval --num_train_epochs=1 --folds=2 --output_dir=out19
run squad out20 -- $SQUAD $QUESTIONS --train_file=squad/train.json --predict_file=squad/dev.json --do_train --do_predict --num_train_epochs=1 --output_dir=out20
run squad_2_evaluated out21 -- $SQUAD $QUESTIONS --train_file=squad/train_2.json --predict_file=squad/dev_2.json --version_2_with_negative --do_train --do_eval --do_predict --num_train_epochs=1 --output_dir=out21
run one_question out20/adapter -- $SQUAD --base_model=base --adapter_dir=out20/adapter --do_predict --question=who --context="the cat sat" --output_dir=out22
run console_classify out23 -- "$ROOT/.venv/bin/adapter-bert" classify $MRPC --do_train --num_train_epochs=1 --tuning=head --output_dir=out23
run console_predict answers.tsv -- "$ROOT/.venv/bin/adapter-bert" predict --adapter_dir=out1/adapter --base_model=base --predict_file=mrpc/test.tsv --output=answers.tsv
run module_predict answers.jsonl -- $PY -m adapter_bert_tf.predict --adapter_dir=out1/adapter --base_model=base --predict_file=mrpc/test.tsv --output=answers.jsonl
run module_store out24 -- $PY -m adapter_bert_tf.store average out17/seed=*/adapter --output=out24
run module_serving served -- $PY -m adapter_bert_tf.serving first=out1/adapter second=out2/adapter --output=served --base_model=base
run module_analysis out25 -- $PY -m adapter_bert_tf.analysis ablation $MRPC --adapter_dir=out1/adapter --output_dir=out25
run export out26 -- $CLASSIFY $MRPC --do_export --adapter_dir=out1/adapter --output_dir=out26
