#!/usr/bin/env bash
# The example's config with a tiny model: a run that is stopped and resumed has the bits of one that was not.
# Usage: stop_and_resume_test.sh REPOSITORY PROGRAM
set -euo pipefail

root=$1 program=$2
work=$(mktemp -d)
cd -- "$work"
trainer=''
trap 'if [ -n "$trainer" ]; then kill "$trainer" 2>/dev/null || true; wait "$trainer" || true; fi; rm -rf -- "$work"' EXIT
fail() { echo "$*"; cat stopped.log 2>/dev/null || true; exit 1; }

"$root/examples/fortunes_text.sh" text
train() {
  "$program" train "$root/examples/quickstart.toml" --run-dir "$1" \
    --set "data.sources[0].path=$work/text/train.txt" --set "validation.path=$work/text/valid.txt" \
    --model.hidden_size=32 --model.intermediate_size=64 --model.num_hidden_layers=1 \
    --model.num_attention_heads=2 --model.num_key_value_heads=1 --training.seq_len=32 \
    --training.global_batch_size=4 --training.steps=2000 --validation.freq=500 --validation.steps=2
}

train straight >straight.log
[ "$(wc -l <straight/steps.jsonl)" -eq 2000 ] || fail 'the straight run has not 2000 steps'

train stopped >stopped.log 2>&1 &
trainer=$!
# Until it has begun; a trainer that ended instead is seen below by its exit code.
while [ ! -s stopped/steps.jsonl ] && kill -0 "$trainer" 2>/dev/null; do sleep 0.01; done

code=0
train stopped >second.log 2>&1 || code=$?
[ "$code" -eq 73 ] || fail "a second start on a directory that is in use ended with $code: $(cat second.log)"

"$program" stop stopped
code=0
wait "$trainer" || code=$?
trainer=''
[ "$code" -eq 75 ] || fail "the stopped run ended with $code, not 75"
steps=$(wc -l <stopped/steps.jsonl)
[ "$steps" -gt 0 ] && [ "$steps" -lt 2000 ] || fail "the stopped run has $steps steps"
"$program" stop stopped 2>&1 | grep -q 'nothing runs' || fail 'stop does not say that nothing runs'

train stopped >>stopped.log 2>&1 || fail 'the stopped run could not be resumed'
"$program" diff straight stopped | tee difference
grep -q 'same bits' difference || fail "stopped at step $steps and resumed, the run has other bits"
