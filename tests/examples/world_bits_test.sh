#!/usr/bin/env bash
# One answer, however many workers give it: worlds of 1 to 7, with 1 and 2 threads and 0 to 2 backups, both families, have the hashes and
# losses of the one worker alone. FULL=1 tries all of them (72 worlds); else a part in which each number occurs.
# Usage: world_bits_test.sh PROGRAM
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"

worlds='1:2:0 2:1:1 3:2:2 4:1:0 6:1:2 7:1:1'
if [ "${FULL:-0}" = 1 ]; then
  worlds=''
  for workers in 1 2 3 4 6 7; do for threads in 1 2; do for backups in 0 1 2; do worlds+=" $workers:$threads:$backups"; done; done; done
fi

tried=0
for family in llama gpt2; do
  tiny_config "$family" 12 >"$family.toml"
  "$program" train "$family.toml" --run-dir "$family-alone" --quiet
  [ "$(wc -l <"$family-alone/steps.jsonl")" -eq 12 ] || fail "$family alone has not 12 steps"
  [ "$(report "$family-alone" val_loss)" != null ] || fail "$family alone was not validated"
  for world in $worlds; do
    IFS=: read -r workers threads backups <<<"$world"
    run=$family-$workers-$threads-$backups
    "$program" train "$family.toml" --run-dir "$run" --workers "$workers" --compute.threads="$threads" \
      --fault_tolerance.backups="$backups" --quiet 2>"$run.err" || fail "$run ended with $?: $(cat "$run.err")"
    [ ! -s "$run.err" ] || fail "$run is not quiet: $(cat "$run.err")"
    [ "$(report "$run" world_max)" = "$workers" ] || fail "$run was no world of $workers"
    [ "$(report "$run" steps_redone)" = 0 ] || fail "$run did steps again"
    [ "$(wc -l <"$run/steps.jsonl")" -eq 12 ] || fail "$run has not 12 steps"
    same_bits "$family-alone" "$run"
    rm -rf -- "$run"
    tried=$((tried + 1))
  done
done
[ "$(hashes llama-alone)" != "$(hashes gpt2-alone)" ] || fail 'both families have one hash'
echo "$tried worlds, one answer"
