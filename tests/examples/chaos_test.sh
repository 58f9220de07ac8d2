#!/usr/bin/env bash
# The scenarios of examples/chaos as a user runs them, and some that must fail: a judge that cannot say no proves nothing.
# Usage: chaos_test.sh SOURCE_DIRECTORY PROGRAM SCENARIO_OR_CONFIG...
set -euo pipefail

source_dir=$1 program=$2
shift 2
source "$source_dir/tests/examples/tiny_world.sh"
ln -s "$source_dir/docs" docs
cp "$@" .

# chaos CODE SCENARIO [WORDS]: the command ends with the code, and says the words.
chaos() {
  local code=0
  "$program" chaos "$2.toml" --run-dir "runs/$2" >"$2.out" 2>"$2.err" || code=$?
  [ "$code" -eq "$1" ] || fail "$2 ended with $code, not $1: $(cat "$2.out" "$2.err")"
  grep -qF -- "${3:-}" "$2.out" "$2.err" || fail "$2 does not say \"$3\": $(cat "$2.out" "$2.err")"
}
# No worker of ours is left, nor a busy child.
nothing_left() {
  local p
  for p in /proc/[0-9]*; do
    if [ "$(readlink "$p/cwd")" = "$work" ] && [ "$(readlink "$p/exe")" = "$program" ]; then fail "$p was left"; fi
  done
}

chaos 0 kill-a-worker 'is gone'
grep -q '"verdict": "pass"' runs/kill-a-worker/chaos.json || fail "chaos.json has no verdict"
[ "$(ls -d runs/reference-* | wc -l)" -eq 1 ] || fail "there is not one undisturbed run"
chaos 0 kill-the-coordinator '200 steps and weights_hash'
chaos 0 freeze-and-thaw '60 steps and weights_hash'
chaos 0 churn 'churn: PASS (seed 20263'
chaos 0 drain 'ended with 0 and stands in no plan'
chaos 73 kill-a-worker 'holds a run already'
[ "$("$program" chaos freeze-and-thaw.toml --run-dir runs/again --json 2>/dev/null | grep -c '"verdict":"pass"')" -eq 1 ] ||
  fail "--json does not print one object"

# A wrong expectation, a fault whose moment never comes, a run that takes too long.
sed 's/^steps_lost .*/exit = 69/' kill-a-worker.toml >wrong-exit.toml
chaos 1 wrong-exit 'exit code 0, expected 69'
sed 's/^at_step = 20/on = "recovered"/' kill-a-worker.toml >never.toml
chaos 1 never 'did not happen: its moment never came'
sed -e 's/^lasts .*//' -e 's/^guard .*/guard = "4s"/' -e 's/^at_step  = 40/at_time = "1h"/' freeze-and-thaw.toml >too-long.toml
chaos 1 too-long 'the run was ended: it took longer than 4s'
# Both holders of a block at once are more than is promised: refused, so it did not happen.
sed 's/any-not:coordinator/all/' kill-a-worker.toml >too-much.toml
chaos 1 too-much 'would be without a holder'

# Ctrl-C while a worker stands still: everything ends, also that one.
sed -e 's/^lasts .*//' -e 's/^at_step  = 40/at_time = "1h"/' freeze-and-thaw.toml >stopped.toml
"$program" chaos stopped.toml --run-dir runs/stopped >stopped.out 2>stopped.err &
started+=($!)
until grep -q 'stands still' stopped.err; do kill -0 $! || fail "it ended early: $(cat stopped.err)"; sleep 0.01; done
code=0
kill -TERM $!
wait $! || code=$?
[ "$code" -eq 75 ] || fail "told to stop it ended with $code: $(cat stopped.err)"
nothing_left

# A member that was not there at the start.
{ sed -e '/^\[\[fault/,$d' -e 's/^members = 4/members = 2\nspares = 1/' kill-a-worker.toml
  printf '[[fault]]\nid = "more"\nkind = "join"\nat_step = 10\n[expect]\nmembers = 3\nsteps_redone = 0\n'; } >join.toml
chaos 0 join 'stands in the plan'
echo "scenarios pass and fail as they should"
