#!/usr/bin/env bash
# One of three workers gets 30 % of its time for a while. It is named by its own work, in an event, in a line and in a metric, and not
# those who wait for it; nobody is evicted; and when it is let go the word is taken back.
# Usage: world_slow_test.sh PROGRAM
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
# Steps long enough to be slowed down within each of them.
tiny_config llama 1000000 | sed 's/^hidden_size = .*/hidden_size = 96/; s/^intermediate_size = .*/intermediate_size = 256/; s/^seq_len = .*/seq_len = 64/; s/^freq = .*/freq = 1000000/' >run.toml

in_events() { grep "\"event\": *\"straggler\"" run/events.jsonl 2>/dev/null | grep "\"over\": *$1" || true; }
# until_told OVER SECONDS
until_told() {
  local until=$(($(milliseconds) + $2 * 1000))
  while [ -z "$(in_events "$1")" ]; do
    kill -0 "$launcher" 2>/dev/null || fail "the run ended: $(cat run.err)"
    [ "$(milliseconds)" -le "$until" ] || fail "nothing is told (over: $1) after $2 s and $(wc -l <run/steps.jsonl) steps: $("$program" status run)"
    sleep 0.1
  done
}

"$program" train run.toml --run-dir run --workers 3 --quiet 2>run.err &
launcher=$!
started+=("$launcher")
until_steps run 12 "$launcher"
slow=$(worker_named "$launcher" worker-1)
[ -n "$slow" ] || fail "worker-1 has no process"
(while kill -STOP "$slow" 2>/dev/null; do sleep 0.07; kill -CONT "$slow" 2>/dev/null || break; sleep 0.03; done) &
brake=$!
started+=("$brake")
from=$(wc -l <run/steps.jsonl)
until_told false 100
told=$(in_events false | head -n 1)
grep -q '"member": *"worker-1"' <<<"$told" || fail "another one is named: $told"
echo "named $(($(sed 's/.*"step": *\([0-9]*\).*/\1/' <<<"$told") - from)) steps after it was slowed down: $(sed 's/.*"reason": *"\([^"]*\)".*/\1/' <<<"$told")"
grep -q 'worker-1 is slow' run/logs/worker-0.log || fail "no line says that worker-1 is slow"
port=$(sed -n 's/.*"http_port": *\([0-9]*\).*/\1/p' run/address)
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
grep '^troupe_member_slowdown_ratio' <&3 >ratios || fail "there is no metric"
exec 3>&-
[ "$(sort -t' ' -k2,2g ratios | tail -n 1 | sed 's/.*member="\([0-9]*\)".*/\1/')" = 1 ] || fail "the metric names another one: $(cat ratios)"
kill "$brake" 2>/dev/null || true
wait "$brake" 2>/dev/null || true
kill -CONT "$slow"
until_told true 60
! grep -q '"event": *"member_lost"' run/events.jsonl || fail "somebody was evicted: $(grep member_lost run/events.jsonl)"
[ "$(worker_named "$launcher" worker-1)" = "$slow" ] || fail "worker-1 is another process"
code=0
"$program" stop run >/dev/null
wait "$launcher" || code=$?
[ "$code" -eq 75 ] || fail "the run ended with $code: $(cat run.err)"
echo "the slow worker was named by its own work, and the word was taken back; nobody was evicted"
