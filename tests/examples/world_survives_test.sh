#!/usr/bin/env bash
# A run outlives its workers: SIGKILL, again and again and at moments drawn from a seed, SIGSTOP for longer and for shorter than anybody
# waits, workers that a person adds, and one that takes another's place. Each time it goes on with the bits of one worker alone that
# nobody disturbs, does at most the step under way again, loses no committed step, and has as many workers as before.
# Usage: world_survives_test.sh PROGRAM [PART...]
#   PART            grow, kill, coordinator, freeze, replace or busy; all of them if none is named
#   BUSY_S=5        so long four other processes a core only turn
#   KILLS=6         so many kills (coordinator: a third), COORDINATOR=1: of the coordinator only
#   SEED            draws victims and moments; printed
#   VERBOSE=1       a line for each fault
set -euo pipefail

program=$(readlink -f -- "$1")
shift
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
kills=${KILLS:-6}
seed=${SEED:-$(date +%s)}
RANDOM=$((seed % 32768))
echo "seed $seed"
tiny_config llama 1000000 >run.toml
# Slots that are emptied again and again are filled again at once.
calm=(--set fault_tolerance.max_restarts=-1 --set fault_tolerance.restart_window_seconds=0.5)

tell() { [ -z "${VERBOSE:-}" ] || echo "$*"; }
process_of() { worker_named "$launcher" "$1"; }

begin() {  # RUN WORKERS
  run=$1
  "$program" train run.toml --run-dir "$run" --workers "$2" --quiet "${calm[@]}" 2>"$run.err" &
  launcher=$!
  started+=("$launcher")
}
# whole RUN WORKERS: waits until so many compute steps under the newest plan, and every block has its copy.
whole() {
  local until=$(($(milliseconds) + 20000)) last plan
  while true; do
    last=$(tail -n 1 "$1/steps.jsonl" 2>/dev/null) || last=''
    plan=$(newest_plan "$1") || plan=''
    if [[ $last == *"\"world\":$2,"* && $last == *"\"generation\":$(of_plan "$1" plan),"* ]] && ! grep -q '"backups":\[\]' "$plan"; then
      return 0
    fi
    kill -0 "$launcher" 2>/dev/null || fail "$1 ended too early and was not whole with $2 workers: $(cat "$1.err")
$last
$(basename "$plan"): $(sed -n '/"reason"/p; /"primary"/p' "$plan")"
    [ "$(milliseconds)" -le "$until" ] || fail "$1 is not whole with $2 workers after 20 s: $(cat "$1.err")
$last
$(basename "$plan"): $(sed -n '/"reason"/p; /"primary"/p' "$plan")"
    sleep 0.02
  done
}
# ended RUN REDONE: told to stop it saves, goes on to its last step, and has everything that one worker alone has.
ended() {
  local code=0
  "$program" stop "$1" >/dev/null
  for _ in $(seq 1000); do kill -0 "$launcher" 2>/dev/null || break; sleep 0.02; done
  ! kill -0 "$launcher" 2>/dev/null || fail "$1 was told to stop and goes on after 20 s: $(cat "$1.err")
$(tail -n 2 "$1/events.jsonl")"
  wait "$launcher" || code=$?
  [ "$code" -eq 75 ] || fail "$1 ended with $code, not 75: $(cat "$1.err")"
  [ "$(report "$1" committed_steps_lost)" = 0 ] || fail "$1 lost $(report "$1" committed_steps_lost) committed steps"
  redone=$(report "$1" steps_redone) plans=$(report "$1" generations)
  [ "$redone" -le "$2" ] || fail "$1 did $redone steps again, after $2 losses"
  [ "$(report "$1" world_max)" = 4 ] || fail "$1 had at most $(report "$1" world_max) workers"
  ends_as_alone "$1" 10 --workers 2
  [ "$(report "$1" exit)" = 0 ] || fail "$1: exit $(report "$1" exit) in report.json"
}
# distribution RUN EVENT KEY: of the numbers that these events have.
distribution() {
  grep "\"event\": *\"$2\"" "$1/events.jsonl" | sed -n "s/.*\"$3\": *\([0-9.e+-]*\).*/\1/p" | LC_ALL=C sort -g |
    LC_ALL=C awk -v name="$3" '{ v[NR] = $1 } END {
      if (NR == 0) { printf "  %-12s none\n", name; exit }
      p50 = v[int((NR + 1) / 2)]; p99 = v[int(NR * 0.99 + 0.999999)]
      printf "  %-12s p50 %.1f  p99 %.1f  max %.1f ms (%d)\n", name, p50, p99, v[NR], NR }'
}

kill_again_and_again() {  # RUN KILLS COORDINATOR_ONLY
  local run=$1 n victim process names until
  begin "$run" 4
  for n in $(seq "$2"); do
    whole "$run" 4
    sleep "0.$(printf %03d $((RANDOM % 400)))"
    victim=$(coordinator_of "$run")
    if [ "$3" != 1 ]; then names=($(names_in_plan "$run")) && victim=${names[$((RANDOM % ${#names[@]}))]}; fi
    process=$(process_of "$victim")
    [ -n "$process" ] || fail "$run: $victim has no process before kill $n: $(cat "$run.err")"
    kill -KILL "$process"
    tell "$run: kill $n of $victim (process $process) after step $(wc -l <"$run/steps.jsonl"), coordinator $(coordinator_of "$run")"
    until=$(($(milliseconds) + 20000))
    until [ "$(in_events "$run" recovered)" -ge "$n" ]; do
      kill -0 "$launcher" 2>/dev/null || fail "$run ended after kill $n: $(cat "$run.err")"
      [ "$(milliseconds)" -le "$until" ] || fail "$run: nothing is committed 20 s after kill $n, of $victim: $(cat "$run.err")
$(tail -n 4 "$run/events.jsonl")"
      sleep 0.02
    done
  done
  whole "$run" 4
  tell "$run: whole again in step $(wc -l <"$run/steps.jsonl")"
  ended "$run" "$2"
  [ "$(in_events "$run" recovered)" -eq "$2" ] || fail "$run recovered $(in_events "$run" recovered) times from $2 kills"
  echo "$run: $2 kills, $plans plans, $redone steps redone, the same bits in $(report "$run" steps) steps"
  distribution "$run" member_lost detect_ms
  distribution "$run" recovered unblock_ms
  distribution "$run" recovered recover_ms
}

stand_still() {  # RUN
  local run=$1 victim process plan who how_long lost=0
  begin "$run" 4
  for who in a-worker the-coordinator; do
    for how_long in 0.5 6; do
      whole "$run" 4
      victim=$(coordinator_of "$run")
      if [ "$who" = a-worker ]; then victim=$(names_in_plan "$run" | grep -vx "$victim" | head -n 1); fi
      process=$(process_of "$victim")
      plan=$(of_plan "$run" plan)
      kill -STOP "$process"
      sleep "$how_long"
      kill -CONT "$process" 2>/dev/null || true
      tell "$run: $victim stood still for $how_long s"
      if [ "$how_long" = 0.5 ]; then
        sleep 0.3
        [ "$(of_plan "$run" plan)" = "$plan" ] || fail "$run: the plan changed as $victim stood still for half a second"
        [ "$(in_events "$run" member_lost)" -eq "$lost" ] || fail "$run: $victim is lost after half a second: $(grep member_lost "$run/events.jsonl")"
        continue
      fi
      lost=$((lost + 1))
      for _ in $(seq 500); do [ "$(process_of "$victim")" = "$process" ] || break; sleep 0.02; done
      [ "$(process_of "$victim")" != "$process" ] || fail "$run: the process of $victim that was evicted goes on: $(cat "$run.err")"
      [ "$(in_events "$run" member_lost)" -eq "$lost" ] || fail "$run: $(in_events "$run" member_lost) losses are told, not $lost"
      grep '"event": *"member_lost"' "$run/events.jsonl" | tail -n 1 | grep -q "\"$victim\"" || fail "$run does not tell that $victim is lost"
    done
  done
  whole "$run" 4
  ended "$run" "$lost"
  echo "$run: half a second changes nothing, after six another life goes on; $redone steps redone, the same bits"
  distribution "$run" recovered recover_ms
}

grow_by_hand() {  # RUN
  local run=$1 k code
  local -a added=()
  begin "$run" 2
  for k in 2 3; do
    whole "$run" "$k"
    "$program" worker "$run/config.toml" --run-dir "$run" --name "worker-$k" --quiet 2>"$run.$k.err" &
    added+=($!)
    started+=($!)
    whole "$run" $((k + 1))
    tell "$run: worker-$k computes from step $(wc -l <"$run/steps.jsonl") on"
  done
  [ "$(in_events "$run" member_lost)" -eq 0 ] || fail "$run lost somebody: $(grep member_lost "$run/events.jsonl")"
  worlds=$(grep -o '"world":[0-9]*' "$run/steps.jsonl" | uniq | tr -dc '0-9\n' | tr '\n' ' ')
  [ "$worlds" = '2 3 4 ' ] || fail "$run had worlds of $worlds, not of 2, 3 and 4"
  ended "$run" 0
  for k in 0 1; do
    code=0
    wait "${added[$k]}" || code=$?
    [ "$code" -eq 75 ] || fail "worker-$((k + 2)), which was added, ended with $code, not 75: $(cat "$run.$((k + 2)).err")"
  done
  echo "$run: worlds of ${worlds}the same bits"
}

# A process with the name of one that lives takes its place.
replace_one() {  # RUN
  local run=$1 former
  begin "$run" 4
  whole "$run" 4
  former=$(process_of worker-2)
  "$program" worker "$run/config.toml" --run-dir "$run" --name worker-2 --quiet 2>"$run.2.err" &
  started+=($!)
  for _ in $(seq 500); do kill -0 "$former" 2>/dev/null || break; sleep 0.02; done
  ! kill -0 "$former" 2>/dev/null || fail "$run: the process of worker-2 that another one has replaced goes on: $(cat "$run.err")"
  whole "$run" 4
  ended "$run" "$(in_events "$run" member_lost)"
  echo "$run: a newer process has replaced one that lived, $redone steps redone, the same bits"
}

# Slow is not dead: four processes a core that only turn, and nobody is given up.
crowded() {  # RUN
  local run=$1 k before
  local -a loops=()
  begin "$run" 4
  whole "$run" 4
  before=$(wc -l <"$run/steps.jsonl")
  for k in $(seq $((4 * $(nproc)))); do
    (while :; do :; done) &
    loops+=($!)
  done
  started+=("${loops[@]}")
  sleep "${BUSY_S:-5}"
  kill -KILL "${loops[@]}"
  wait "${loops[@]}" 2>/dev/null || true
  [ "$(in_events "$run" member_lost)" -eq 0 ] || fail "$run lost somebody on a busy machine: $(grep member_lost "$run/events.jsonl")"
  [ "$(wc -l <"$run/steps.jsonl")" -gt "$before" ] || fail "$run did no step on a busy machine"
  ended "$run" 0
  echo "$run: $((4 * $(nproc))) processes that only turn for ${BUSY_S:-5} s beside 4 workers: nobody given up, $redone steps redone, the same bits"
}

[ $# -gt 0 ] || { set -- grow kill coordinator freeze replace busy; [ "${COORDINATOR:-0}" != 1 ] || set -- coordinator; }
for part; do
  case $part in
    kill) kill_again_and_again kill "$kills" 0 ;;
    coordinator)
      n=$(((kills + 2) / 3))
      [ "${COORDINATOR:-0}" != 1 ] || n=$kills
      kill_again_and_again coordinator "$n" 1 ;;
    freeze) stand_still freeze ;;
    grow) grow_by_hand grow ;;
    replace) replace_one replace ;;
    busy) crowded busy ;;
    *) fail "there is no part $part" ;;
  esac
done
