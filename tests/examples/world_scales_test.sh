#!/usr/bin/env bash
# A world grows and shrinks by command while it trains: 2, 3, 4, 1, 4 and 2 workers, again and again. Nobody is lost, no step is done
# again, a change takes hardly any time from the training, those that stay keep no more open than before, and the bits are those of one
# worker alone. Also: commands that make no sense, one after the other, on a run that stops; drained workers end with 0 and come
# back only by command; and a world below elastic.min_members waits, without work, until somebody comes.
# Usage: world_scales_test.sh PROGRAM [PART...]
#   PART            rounds, words, drain, leaver, wait; all of them if none is named
#   ROUNDS=2        so many rounds; 20 is the full form
#   CONFIG=FILE     trains this instead of a tiny model (rounds only); its bits are compared unless ALONE=0
#   LIMIT_MS=500    a pause may be as long, or one step; 50 is the aim, with a core for each worker
#   IDLE=1          as many % of a core may each process of a waiting world use
#   VERBOSE=1       a line for each change
set -euo pipefail

program=$(readlink -f -- "$1")
shift
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
rounds=${ROUNDS:-2}
limit_ms=${LIMIT_MS:-500}
tiny_config llama 1000000 >run.toml
calm=(--set fault_tolerance.max_restarts=-1 --set fault_tolerance.restart_window_seconds=0.5)

tell() { [ -z "${VERBOSE:-}" ] || echo "$*"; }
names() { names_in_plan "$1" | tr '\n' ' '; }

begin() {  # RUN WORKERS [OPTION...]
  run=$1
  local n=$2
  shift 2
  "$program" train "${CONFIG_FILE:-run.toml}" --run-dir "$run" --workers "$n" --quiet "${calm[@]}" "$@" 2>"$run.err" &
  launcher=$!
  started+=("$launcher")
}
show() { echo "$(tail -n 5 "$1.err")
$(tail -n 1 "$1/steps.jsonl" 2>/dev/null)
$(basename "$(newest_plan "$1")"): $(sed -n '/"reason"/p; /"name"/p' "$(newest_plan "$1")")"; }
# whole RUN WORKERS [STEPS]: waits until so many compute, every block has its copy, and STEPS more are committed then.
whole() {
  local until=$(($(milliseconds) + ${PATIENCE_MS:-30000})) last plan first=-1 n
  while true; do
    last=$(tail -n 1 "$1/steps.jsonl" 2>/dev/null) || last=''
    plan=$(newest_plan "$1") || plan=''
    n=$(grep -o '"plan": *[0-9]*' "$plan" 2>/dev/null | head -n 1 | tr -dc 0-9) || n=none
    if [[ $last == *"\"world\":$2,"* && $last == *"\"generation\":$n,"* ]] && { [ "$2" -eq 1 ] || ! grep -q '"backups":\[\]' "$plan"; }; then
      n=$(wc -l <"$1/steps.jsonl")
      [ "$first" -ge 0 ] || first=$n
      [ $((n - first)) -lt "${3:-0}" ] || return 0
    fi
    kill -0 "$launcher" 2>/dev/null || fail "$1 ended too early and was not whole with $2 workers: $(show "$1")"
    [ "$(milliseconds)" -le "$until" ] || fail "$1 is not whole with $2 workers: $(show "$1")"
    sleep 0.02
  done
}
# ended RUN: told to stop it saves, goes on for some steps, and has everything that one worker alone has.
ended() {
  local code=0
  "$program" stop "$1" >/dev/null
  for _ in $(seq 2000); do kill -0 "$launcher" 2>/dev/null || break; sleep 0.02; done
  ! kill -0 "$launcher" 2>/dev/null || fail "$1 was told to stop and goes on: $(show "$1")"
  wait "$launcher" || code=$?
  [ "$code" -eq 75 ] || fail "$1 ended with $code, not 75: $(cat "$1.err")"
  [ "$(report "$1" committed_steps_lost)" = 0 ] || fail "$1 lost $(report "$1" committed_steps_lost) committed steps"
  [ "$(report "$1" steps_redone)" = 0 ] || fail "$1 did $(report "$1" steps_redone) steps again"
  [ "$(in_events "$1" member_lost)" -eq 0 ] || fail "$1 lost somebody: $(grep member_lost "$1/events.jsonl")"
  [ -z "${CONFIG:-}" ] || [ "${ALONE:-1}" = 1 ] || return 0
  ends_as_alone "$1" 5 --workers 2
}

# pauses RUN: for each plan that followed another one without a restart: from the last commit before to the first one after, less the
# median step of the new plan (of all plans with as many workers, where it has under three). A line each: plan, world, pause, median [ms].
pauses() {
  sed -n 's/.*"world":\([0-9]*\),"generation":\([0-9]*\),.*"seconds":\([^,]*\),"mono":\([^}]*\)}.*/\2 \1 \3 \4/p' "$1/steps.jsonl" >rows
  # The first step of a plan begins with it, and the others are what it takes.
  awk '$1 != g { g = $1; next } { print $1, $2, $3 }' rows >steady
  LC_ALL=C sort -k1,1n -k3,3g steady | awk '$1 != g && n { print g, v[int((n + 1) / 2)], n; n = 0 } { g = $1; v[++n] = $3 }
    END { if (n) print g, v[int((n + 1) / 2)], n }' >of_plan
  LC_ALL=C sort -k2,2n -k3,3g steady | awk '$2 != w && n { print w, v[int((n + 1) / 2)]; n = 0 } { w = $2; v[++n] = $3 }
    END { if (n) print w, v[int((n + 1) / 2)] }' >of_world
  awk 'FILENAME == "of_plan" { if ($3 >= 3) plan[$1] = $2; next } FILENAME == "of_world" { world[$1] = $2; next }
    g != "" && $1 != g { m = ($1 in plan) ? plan[$1] : world[$2]; printf "%d %d %.1f %.1f\n", $1, $2, 1000 * ($4 - t - m), 1000 * m }
    { g = $1; t = $4 }' of_plan of_world rows
}

held() {  # PROCESS: open files, threads, shared segments, resident KiB
  echo "$(ls "/proc/$1/fd" | wc -l) $(ls "/proc/$1/task" | wc -l) $(grep -c 'SYSV\|/dev/shm\|memfd' "/proc/$1/maps" || true) $(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status")"
}
# grown WHO BEFORE AFTER STEPS: none of the four by more than 5 % (of few files or threads, by one). Who coordinates keeps the records
# of all steps in memory, some 80 bytes each, in a vector that doubles; that is no cost of a change.
grown() {
  local -a a=($2) b=($3)
  local i what=(files threads segments KiB) room
  for i in 0 1 2 3; do
    room=$((a[i] * 105 / 100))
    [ "$i" -ne 3 ] || room=$((room + $4 * 160 / 1024))
    [ "$i" -eq 3 ] || [ "$room" -gt "${a[i]}" ] || room=$((a[i] + 1))
    [ "${b[i]}" -le "$room" ] || fail "$1 has ${b[i]} ${what[i]}, and had ${a[i]} after round 2 (files, threads, segments, KiB: $2 -> $3)"
  done
  echo "  $1: files, threads, segments, KiB: $2 -> $3"
}

grow_and_shrink() {  # RUN ROUNDS
  local run=$1 n to from before_worker='' before_launcher='' steps_before=0 stays answer
  [ -z "${CONFIG:-}" ] || CONFIG_FILE=$(readlink -f -- "$CONFIG")
  begin "$run" 2
  whole "$run" 2 10
  stays=$(worker_named "$launcher" worker-0)
  from=2
  for n in $(seq "$2"); do
    for to in 3 4 1 4 2; do
      answer=$("$program" scale "$to" "$run") || fail "$run could not be scaled to $to in round $n: $(show "$run")"
      [[ $answer == "scaling $run from $from to $to worker"* ]] || fail "scale said: $answer"
      whole "$run" "$to" 10
      tell "round $n: $answer; in step $(wc -l <"$run/steps.jsonl")"
      from=$to
    done
    if [ "$n" -eq 2 ]; then
      before_worker=$(held "$stays") before_launcher=$(held "$launcher")
      steps_before=$(wc -l <"$run/steps.jsonl")
    fi
  done
  [ "$(worker_named "$launcher" worker-0)" = "$stays" ] || fail "$run: worker-0 is another process now"
  if [ "$2" -gt 2 ]; then
    grown worker-0 "$before_worker" "$(held "$stays")" $(($(wc -l <"$run/steps.jsonl") - steps_before))
    grown launcher "$before_launcher" "$(held "$launcher")" 0
  fi
  cp "$run/steps.jsonl" until-stop.jsonl
  ended "$run"
  mkdir -p paused && cp until-stop.jsonl paused/steps.jsonl
  pauses paused >"$run.pauses"
  LC_ALL=C sort -k3,3g "$run.pauses" | awk '{ v[NR] = $3; m[NR] = $4 } END {
    printf "  pause of %d plans: median %.1f  p90 %.1f  max %.1f ms\n", NR, v[int((NR + 1) / 2)], v[int(NR * 0.9 + 0.999999)], v[NR] }'
  awk -v limit="$limit_ms" '{ most = $4 > limit ? $4 : limit; if ($3 > most) { print "  plan " $1 " with " $2 " workers: a pause of " $3 " ms, a step takes " $4; bad = 1 } } END { exit bad }' "$run.pauses" ||
    fail "$run: pauses longer than a step and $limit_ms ms; see $run/traces"
  echo "$run: $2 rounds, $(wc -l <"$run.pauses") changes of plan, nobody lost, no step redone, the same bits in $(report "$run" steps) steps"
}

refuses() {  # CODE WORDS COMMAND...
  local code=0 words=$2 wanted=$1
  shift 2
  "$program" "$@" >answer 2>&1 || code=$?
  [ "$code" -eq "$wanted" ] || fail "troupe $* ended with $code, not $wanted: $(cat answer)"
  grep -q -- "$words" answer || fail "troupe $* does not say \"$words\": $(cat answer)"
}
words() {  # RUN: what cannot be is said, and a burst of commands ends where the last one says
  local run=$1 n
  begin "$run" 2 --set elastic.max_members=4
  whole "$run" 2
  refuses 64 'troupe stop' scale 0 "$run"
  refuses 64 'elastic.max_members = 4' scale 5 "$run"
  refuses 64 'no worker of this launcher' drain worker-7 "$run"
  refuses 64 'no worker of this launcher' drain elephant "$run"
  refuses 0 'at 2 workers already' scale 2 "$run"
  for n in 4 1 3 1 2 4 3; do "$program" scale "$n" "$run" >/dev/null; done
  whole "$run" 3 10
  [ "$(names "$run")" = 'worker-0 worker-1 worker-2 ' ] || fail "$run has $(names "$run")"
  "$program" stop "$run" >/dev/null
  local code=0
  "$program" scale 4 "$run" >answer 2>&1 || code=$?
  [ "$code" -eq 73 ] || fail "a run that stops took a command on: $code $(cat answer)"
  wait "$launcher" || true
  refuses 73 'no launcher' scale 2 "$run"
  echo "$run: commands that cannot be are refused in words, of many the last one counts"
}

drain() {  # RUN: the coordinator and another one, by the signal way and by the port
  local run=$1 who process
  begin "$run" 4
  whole "$run" 4
  for who in worker-2 "$(coordinator_of "$run")"; do
    process=$(worker_named "$launcher" "$who")
    [ "$("$program" drain "$who" "$run")" = "draining $run: $who leaves, $([ "$who" = worker-2 ] && echo 3 || echo 2) workers stay" ] || fail "drain of $who said something else"
    refuses 0 'leaving already\|left already' drain "$who" "$run"
    for _ in $(seq 1000); do kill -0 "$process" 2>/dev/null || break; sleep 0.02; done
    ! kill -0 "$process" 2>/dev/null || fail "$run: $who does not leave: $(show "$run")"
    for _ in $(seq 100); do ! grep -q "$who (process $process) has left" "$run.err" || break; sleep 0.02; done
    grep -q "$who (process $process) has left" "$run.err" || fail "$run: $who did not end with 0: $(cat "$run.err")"
  done
  whole "$run" 2 10
  case " $(names "$run")" in *" worker-2 "*) fail "$run has worker-2 again" ;; esac
  refuses 64 'last worker' drain worker-1 "$("$program" drain worker-3 "$run" >/dev/null; echo "$run")"
  whole "$run" 1 5
  # The address of the coordinator's port, as from another machine.
  local at
  at=$(sed -n 's/.*"http_port": *\([0-9]*\).*/127.0.0.1:\1/p' "$run/address")
  refuses 64 'secret' scale 4 "$at"
  "$program" scale 4 "$at" --secret "$run/secret" >/dev/null || fail "$run could not be scaled at its port"
  whole "$run" 4 10
  [ "$(names "$run")" = 'worker-0 worker-1 worker-2 worker-3 ' ] || fail "$run has $(names "$run")"
  ended "$run"
  echo "$run: drained workers end with 0, their slots stay empty until scale, also the coordinator's"
}

# A leaver that is killed on its way out is no loss that its launcher makes up for.
leaver() {  # RUN
  local run=$1 process
  begin "$run" 3
  whole "$run" 3
  process=$(worker_named "$launcher" worker-2)
  kill -STOP "$process"
  "$program" drain worker-2 "$run" >/dev/null
  kill -KILL "$process"
  for _ in $(seq 1000); do [ "$(names "$run")" != 'worker-0 worker-1 ' ] || break; sleep 0.02; done
  whole "$run" 2 20
  [ -z "$(worker_named "$launcher" worker-2)" ] || fail "$run: worker-2 was started again: $(cat "$run.err")"
  "$program" stop "$run" >/dev/null
  local code=0
  wait "$launcher" || code=$?
  [ "$code" -eq 75 ] || fail "$run ended with $code: $(cat "$run.err")"
  echo "$run: whoever is killed on its way out stays away"
}

ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat" 2>/dev/null || echo 0; }
wait_for_members() {  # RUN: 3 are needed, and worker-2 is not started again
  local run=$1 p n before=0 after=0 code=0
  "$program" train run.toml --run-dir "$run" --workers 3 --quiet --set fault_tolerance.max_restarts=0 --set elastic.min_members=3 2>"$run.err" &
  launcher=$!
  started+=("$launcher")
  whole "$run" 3
  refuses 64 'elastic.min_members = 3' scale 2 "$run"
  refuses 64 'elastic.min_members = 3' drain worker-1 "$run"
  kill -KILL "$(worker_named "$launcher" worker-2)"
  for _ in $(seq 1000); do [ "$(in_events "$run" waiting)" -eq 0 ] || break; sleep 0.02; done
  [ "$(in_events "$run" waiting)" -gt 0 ] || fail "$run does not say that it waits: $(show "$run")"
  sleep 1  # copies are made meanwhile
  n=$(wc -l <"$run/steps.jsonl")
  "$program" status "$run" | grep -q 'waiting.*1 more member' || fail "status does not say for whom $run waits: $("$program" status "$run")"
  grep -q 'the run waits for 1 more member' "$run/logs/worker-0.log" || fail "nobody says that $run waits"
  for p in $launcher $(workers_of "$launcher"); do before=$((before + $(ticks "$p"))); done
  sleep 3
  for p in $launcher $(workers_of "$launcher"); do after=$((after + $(ticks "$p"))); done
  [ "$(wc -l <"$run/steps.jsonl")" -eq "$n" ] || fail "$run takes steps with too few workers"
  echo "  waiting, launcher and two workers use $((after - before)) of 300 ticks (1 = 0.33 % of a core)"
  [ $((after - before)) -le $((3 * ${IDLE:-1} * 3)) ] || fail "$run works while it waits: $((after - before)) ticks in 3 s"
  "$program" scale 3 "$run" >/dev/null || fail "$run cannot be scaled while it waits"
  whole "$run" 3 10
  [ "$(in_events "$run" waited)" -gt 0 ] || fail "$run does not say that it goes on"
  # Nobody comes in time: 69.
  "$program" stop "$run" >/dev/null
  wait "$launcher" || code=$?
  [ "$code" -eq 75 ] || fail "$run ended with $code: $(cat "$run.err")"
  n=$(($(wc -l <"$run/steps.jsonl") + 5))
  "$program" train run.toml --run-dir "$run" --workers 2 --quiet --training.steps="$n" 2>>"$run.err"
  "$program" train run.toml --run-dir "$run-alone" --quiet --training.steps="$n"
  same_bits "$run-alone" "$run"
  code=0
  "$program" train run.toml --run-dir "$run-late" --workers 1 --quiet --set elastic.min_members=2 --set elastic.wait_timeout_seconds=1 2>"$run.err" || code=$?
  [ "$code" -eq 69 ] || fail "a world that waits in vain ended with $code, not 69: $(cat "$run.err")"
  grep -q 'elastic.wait_timeout_seconds' "$run.err" || fail "it does not say why: $(cat "$run.err")"
  echo "$run: below elastic.min_members it waits, goes on with the same bits, and gives up in the end"
}

[ $# -gt 0 ] || set -- rounds words drain leaver wait
for part; do
  case $part in
    rounds) grow_and_shrink rounds "$rounds" ;;
    words) words words ;;
    drain) drain drain ;;
    leaver) leaver leaver ;;
    wait) wait_for_members wait ;;
    *) fail "there is no part $part" ;;
  esac
done
