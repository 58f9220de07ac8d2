#!/usr/bin/env bash
# A world of four real workers that are struck at named points of the protocol, one after the other: killed there by themselves, or frozen
# until the others have gone on. Every point has to be come by, and at the end the run has the bits of one worker that nobody disturbs.
# Usage: crash_sweep_test.sh PROGRAM CRASH_SWEEP
#   CASES=all       all cases, some minutes; else a dozen
#   CASE=TEXT       of all cases those with the text in their names: "commit-sent:2"
#   VERBOSE=1       a line for each case
set -euo pipefail

program=$(readlink -f -- "$1") sweep=$(readlink -f -- "$2")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
tiny_config llama 1000000 | sed "s,^freq = 10,freq = 500," >run.toml
settings=(--set fault_tolerance.backups=2 --set fault_tolerance.suspect_ms=500 --set fault_tolerance.evict_ms=1500
  --set fault_tolerance.max_restarts=-1 --set fault_tolerance.restart_window_seconds=0.5)

"$program" train run.toml --run-dir run --workers 4 --quiet --orders "$work/orders" "${settings[@]}" 2>run.err &
launcher=$!
started+=("$launcher")
until_steps run 1 "$launcher"
"$sweep" run "$work/orders" "$launcher" "${CASES:-few}" >cases || fail "$(cat cases run.err)
$(tail -n 6 run/events.jsonl)"
"$program" stop run >/dev/null
code=0
wait "$launcher" || code=$?
[ "$code" -eq 75 ] || fail "the run ended with $code, not 75: $(cat run.err)"
[ "$(report run committed_steps_lost)" = 0 ] || fail "$(report run committed_steps_lost) committed steps are lost"
plans=$(report run generations) redone=$(report run steps_redone)
# It goes on to its last step, and so does one worker that does all of them.
ends_as_alone run 10 --workers 2
cat cases
echo "the same bits in $(report run steps) steps, $plans plans, $redone steps redone"
