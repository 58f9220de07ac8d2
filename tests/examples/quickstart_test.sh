#!/usr/bin/env bash
# The quickstart, shorter, in a place of its own and from another directory.
# Usage: quickstart_test.sh SCRIPT PROGRAM
set -euo pipefail

script=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
fail() { echo "$*"; exit 1; }

"$script" --program "$program" --out 'a place' --steps 600 --check | tee log

grep -q '^validation loss  *[0-9.]*' log || fail 'no validation loss was shown'
[ -s 'a place/quickstart/report.json' ] || fail 'no report was written'
[ "$(grep -c loss log)" -gt 5 ] || fail 'no progress was visible'
[ "$(wc -c <'a place/quickstart-sample.txt')" -gt 1000 ] || fail 'no sample was written'

[ "$(wc -l <'a place/quickstart/steps.jsonl')" -eq 600 ] || fail 'not every step was recorded'
for line in '^== a worker was killed with SIGKILL, after step 3[0-9][0-9]$' '^lost  *worker-3 (process [0-9]*)' '^noticed  *[^ ]' \
  '^went on  *step 3[0-9][0-9] was committed [0-9]* ms after that'; do
  [ "$(grep -c "$line" log)" -eq 1 ] || fail "not once said: $line"
done
[ "$(grep -c '"event": *"recovered"' 'a place/quickstart/events.jsonl')" -eq 1 ] || fail 'the run did not go on after a loss'
tail -n 1 'a place/quickstart/steps.jsonl' | grep -q '"world":4,' || fail 'the worker that was killed did not come back'

# The number of workers is no part of the recipe, nor is the loss of one.
for workers in 1 3; do
  "$script" --program "$program" --out "with $workers" --steps 60 --workers "$workers" >>log
  [ "$workers" = 1 ] || "$program" diff 'with 1/quickstart' "with $workers/quickstart" | grep -q 'same bits' ||
    fail "$workers workers trained other bits than one"
done

# The same command again finds the run finished, trains nothing and ends well.
"$script" --program "$program" --out 'a place' --steps 600 --check >again
if grep -q 'was killed' again; then fail 'a finished run was struck again'; fi
steps=$(wc -l <'a place/quickstart/steps.jsonl')
[ "$steps" -eq 600 ] || fail "the second start changed the records: $steps steps"

# What else a user does with a run.
report_loss=$(grep -o '"val_loss": *[0-9.e+-]*' 'a place/quickstart/report.json' | grep -o '[0-9.e+-]*$' | head -n 1)
"$program" eval 'a place/quickstart' --data 'a place/quickstart-text/valid.txt' --windows 80 | tee evaluated
LC_ALL=C awk -v want="$report_loss" '{ for (i = 1; i < NF; ++i) if ($i == "loss") got = $(i + 1) }
  END { d = got - want; exit !(got > 0 && d < 0.2 && d > -0.2) }' evaluated ||
  fail "eval is far from the validation loss $report_loss"
"$program" diff 'a place/quickstart' 'a place/quickstart' | grep -q 'same bits' || fail 'a run differs from itself'
"$program" --version | grep -q '^commit' || fail '--version names no commit'

# Mistakes are refused before anything is done.
for mistake in '--step 3' '--steps' "--program nowhere"; do
  # shellcheck disable=SC2086
  if "$script" $mistake >refused 2>&1; then fail "$mistake was accepted"; fi
  grep -q '^quickstart: ' refused || fail "$mistake: no reason was given"
done
