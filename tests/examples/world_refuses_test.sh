#!/usr/bin/env bash
# Who cannot join is told why within 5 seconds, with both values where two differ, and the run that was bothered goes on as if nothing had
# been. Places that cannot be listened on are refused with their name. Two jobs with untouched defaults never meet.
# Usage: world_refuses_test.sh PROGRAM
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
tiny_config llama 1000000 >long.toml
tiny_config llama 40 >short.toml

# refused NAME CODE PATTERN... -- COMMAND...: it ends with this code within 5 s (or $limit ms) and its errors match all patterns.
refused() {
  local name=$1 wanted=$2 code=0 began took p
  local -a patterns=()
  shift 2
  while [ "$1" != -- ]; do patterns+=("$1"); shift; done
  shift
  began=$(milliseconds)
  timeout -k 1 20 "$@" >"$name.out" 2>"$name.err" || code=$?
  took=$(($(milliseconds) - began))
  [ "$code" -eq "$wanted" ] || fail "$name ended with $code, not $wanted: $(cat "$name.out" "$name.err")"
  [ "$took" -le "${limit:-5000}" ] || fail "$name took $took ms: $(cat "$name.err")"
  for p in "${patterns[@]}"; do grep -q -- "$p" "$name.err" || fail "$name: no \"$p\" in: $(cat "$name.err")"; done
  [ -z "${VERBOSE:-}" ] || { echo "$name: $took ms"; cat "$name.err"; }
}
train() { local run=$1; shift; "$program" train "$@" --run-dir "$run"; }
port_of() { sed -n 's/^ *"port": \([0-9]*\),*$/\1/p' "$1/address"; }
run_of() { sed -n 's/^ *"run": "\([0-9a-f]*\)",*$/\1/p' "$1/run.json"; }

# --- a job that is bothered ---
train alone short.toml --quiet
"$program" train long.toml --run-dir busy --workers 2 >busy.out 2>busy.err &
busy=$!
started+=("$busy")
until_steps busy 3 "$busy"
port=$(port_of busy)

refused taken-port 74 "127.0.0.1:$port" -- "$program" train short.toml --run-dir taken --quiet --comm.listen="127.0.0.1:$port"
refused unknown-card 78 '"nowhere0"' 'lo (' -- "$program" train short.toml --run-dir card --quiet --comm.interfaces=nowhere0

# A copy of its directory is what somebody has who does not belong to it: same address, and one thing is different.
copy() { mkdir "$1"; cp -r busy/run.json busy/address busy/secret busy/config.toml "$1"; }
join() { echo "$program" worker "$1/config.toml" --run-dir "$1" --world 2 --name worker-1 --quiet; }

copy stranger
head -c 64 /dev/zero | tr '\0' 7 >stranger/secret
refused wrong-secret 78 "127.0.0.1:$port" 'secret' -- $(join stranger)

copy other-run
sed -i "s/$(run_of busy)/0123456789abcdef/" other-run/run.json other-run/address
refused other-run 78 "$(run_of busy)" '0123456789abcdef' -- $(join other-run)

copy other-config
sed -i 's/^lr = .*/lr = 0.02/' other-config/config.toml
refused other-config 78 'config' -- $(join other-config)

copy nobody
sed -i "s/\"port\": $port/\"port\": 1/" nobody/address
sed -i 's/^init_timeout_seconds = .*/init_timeout_seconds = 2.0/' nobody/config.toml
refused nobody 69 '127.0.0.1:1 ' 'refused' -- $(join nobody)

# A worker that listens and does nothing more.
mkdir silent
"$program" worker busy/config.toml --run-dir silent --world 2 --name worker-0 --quiet 2>silent.err &
silent=$!
started+=("$silent")
until [ -s silent/address ]; do kill -0 "$silent" || fail "$(cat silent.err)"; sleep 0.01; done
kill -STOP "$silent"
mkdir listener && cp silent/run.json silent/address silent/secret busy/config.toml listener
sed -i -e 's/^init_timeout_seconds = .*/init_timeout_seconds = 1.0/' -e 's/^handshake_seconds = .*/handshake_seconds = 2.0/' listener/config.toml
limit=10000  # it is asked three times
refused silent 69 "127.0.0.1:$(port_of silent)" 'nothing was heard' -- $(join listener)
kill -KILL "$silent"

# --- nothing of that has changed the job ---
"$program" stop busy >/dev/null
code=0
wait "$busy" || code=$?
[ "$code" -eq 75 ] || fail "the bothered job ended with $code: $(cat busy.err)"
[ "$(grep -c '"generation"' busy/events.jsonl)" -ge 1 ] || fail 'no generation was recorded'
[ "$(report busy generations)" = 1 ] || fail "the bothered job had $(report busy generations) generations"
[ "$(report busy steps_redone)" = 0 ] || fail 'the bothered job did steps again'
at=$(wc -l <busy/steps.jsonl)
train straight long.toml --quiet >straight.out 2>&1 &
straight=$!
started+=("$straight")
until_steps straight "$at" "$straight"
"$program" stop straight >/dev/null
wait "$straight" || true
"$program" diff busy straight | grep -q "same bits in steps 1 to $at" || fail 'the bothered job has other bits'
[ "$(grep -c 'refused somebody' busy.err)" -ge 3 ] || fail "the job does not say who came: $(cat busy.err)"

# --- two jobs with untouched defaults at the same moment ---
train first short.toml --workers 2 --quiet &
first=$!
train second short.toml --workers 3 --quiet &
second=$!
started+=("$first" "$second")
wait "$first" || fail 'the first of two jobs failed'
wait "$second" || fail 'the second of two jobs failed'
started=()
same_bits alone first
same_bits alone second
[ "$(port_of first)" != "$(port_of second)" ] || fail 'both jobs had one port'
[ "$(report first world_max) $(report second world_max)" = '2 3' ] || fail 'the jobs have met'
echo 'all refused in time, nobody disturbed'
