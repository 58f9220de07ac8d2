#!/usr/bin/env bash
# A run may be stopped and go on with another number of workers: 3, then 2, then 1, and it has the bits of one worker that was never
# stopped. What a world saves is, file by file, what one worker saves.
# Usage: world_resumes_test.sh PROGRAM
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
steps=300
tiny_config llama $steps >run.toml

stop_in_the_middle() {  # WORKERS STEP
  local trainer code=0
  "$program" train run.toml --run-dir stopped --workers "$1" --quiet 2>stopped.err &
  trainer=$!
  started+=("$trainer")
  until_steps stopped "$2" "$trainer"
  "$program" stop stopped >/dev/null
  wait "$trainer" || code=$?
  started=()
  [ "$code" -eq 75 ] || fail "a world of $1 that was stopped ended with $code, not 75: $(cat stopped.err)"
  [ "$(wc -l <stopped/steps.jsonl)" -lt $steps ] || fail "a world of $1 was not stopped before its end"
}
stop_in_the_middle 3 30
stop_in_the_middle 2 100
"$program" train run.toml --run-dir stopped --quiet || fail "the run could not be resumed by one worker"
worlds=$(grep -o '"world":[0-9]*' stopped/steps.jsonl | uniq | tr -dc '0-9\n' | tr '\n' ' ')
[ "$worlds" = '3 2 1 ' ] || fail "the run had worlds of $worlds, not 3, 2 and 1"

"$program" train run.toml --run-dir straight --quiet
same_bits straight stopped
[ "$(report stopped steps_redone)" = 0 ] || fail 'the stopped run did steps again'

# Manifests say whose they are and what was before; everything else is the same.
what_is_saved() { sed -e '/"run_id":/d' -e '/"check":/d' -e '/"history": \[/,/\]/d' "$1/manifest.json"; }
same_files() {  # FOLDER FOLDER
  local name tensors=0
  [ "$(ls "$1")" = "$(ls "$2")" ] || fail "$2 has other files than $1"
  for name in $(ls "$1"); do
    [ "$name" = manifest.json ] && continue
    cmp "$1/$name" "$2/$name" || fail "$name of $2 differs"
    tensors=$((tensors + 1))
  done
  [ "$tensors" -gt 3 ] || fail "$1 has $tensors files of tensors"
  [ "$(what_is_saved "$1")" = "$(what_is_saved "$2")" ] || fail "$(diff <(what_is_saved "$1") <(what_is_saved "$2"))"
}
"$program" train run.toml --run-dir one --training.steps=12 --quiet
"$program" train run.toml --run-dir three --training.steps=12 --workers 3 --quiet
same_files one/checkpoints/step-00000012 three/checkpoints/step-00000012
same_files "straight/checkpoints/step-$(printf %08d $steps)" "stopped/checkpoints/step-$(printf %08d $steps)"
echo 'stopped and resumed by 3, 2 and 1: the same bits, the same files'
