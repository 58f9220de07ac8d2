#!/usr/bin/env bash
# Faults that workers do to themselves and to their links when they are told to, on real processes; the same scenarios in simulated worlds;
# and a user's own run with faults in it.
# Usage: chaos_kinds_test.sh SOURCE_DIRECTORY PROGRAM SCENARIO_OR_CONFIG...
set -euo pipefail

source_dir=$1 program=$2
shift 2
source "$source_dir/tests/examples/tiny_world.sh"
ln -s "$source_dir/docs" docs
cp "$@" .

# run CODE WORDS COMMAND...: it ends with the code, and says the words.
run() {
  local wanted=$1 words=$2 code=0
  shift 2
  "$program" "$@" >out 2>err || code=$?
  [ "$code" -eq "$wanted" ] || fail "$* ended with $code, not $wanted: $(cat out err)"
  grep -qF -- "$words" out err || fail "$* does not say \"$words\": $(cat out err)"
}
scenario() { run 0 "$2" chaos "$1.toml" --run-dir "runs/$1"; }

scenario hang 'its compute thread stands still'
scenario exit-and-throw 'an exception in the rank at'
scenario nan-in-a-gradient 'in step 15 is no number'
grep '"step":15,' runs/nan-in-a-gradient/steps.jsonl | grep -q '"skipped":true' || fail "step 15 was not skipped"
scenario cut-and-heal '900 steps and weights_hash'
scenario lossy-links '150 steps and weights_hash'

# A point that only a worker sees.
sed 's/^at_step = 20/at_step = 20\nat_point = "applied"/' kill-a-worker.toml >at-a-point.toml
scenario at-a-point 'kills itself'

# What cannot be, is said before the start.
sed 's/share = 0.05 }/plane = "bulk" }/' lossy-links.toml >lost-bulk.toml
run 78 'does not happen to bulk messages' chaos lost-bulk.toml
sed 's/actor = "rank"/actor = "rnak"/' exit-and-throw.toml >no-actor.toml
run 78 'did you mean rank' chaos no-actor.toml
run 78 'sim mode cannot do nan' simulate nan-in-a-gradient.toml
run 64 '--members says nothing beside' simulate hang.toml --members 3

# In virtual time.
for s in kill-a-worker kill-the-coordinator freeze-and-thaw hang exit-and-throw cut-and-heal lossy-links; do
  run 0 'checks found nothing wrong' simulate "$s.toml" --seeds 1
done
sed 's/^members          = 4/members          = 3/' hang.toml >wrong.toml
run 1 'm' simulate wrong.toml

# One's own run.
sed 's/^name .*/name = "own-hang"/' hang.toml >own-hang.toml
run 0 'own-hang: PASS' train tiny.toml --run-dir runs/mine --quiet --chaos own-hang.toml
grep -q '"verdict": "pass"' runs/mine/chaos.json || fail "chaos.json has no verdict"
grep -q '"fault":"hangs","number":1,"kind":"hang"' runs/mine/chaos/faults.jsonl || fail "the fault is in no record: $(cat runs/mine/chaos/*.jsonl)"
run 78 '--workers says 2' train tiny.toml --run-dir runs/other --workers 2 --chaos hang.toml
run 73 'holds a run already' train tiny.toml --run-dir runs/mine --chaos hang.toml
run 0 '--chaos' train --help
if "$program" train --help | grep -q -- --orders; then fail "what is for chaos alone is shown to people"; fi
echo "every kind happened, was proven, and cost no bit"
