#!/usr/bin/env bash
# A world of 6 ends whole, whatever ends it: at its last step, by `troupe stop`, by TERM to the launcher, by the sudden end of the launcher,
# and by a stop after the sudden end of a worker (each in turn), which does not end it: once the next life of it computes, or at once.
# Afterwards no process, listening port, shared memory or unfinished file is left. STARTS says how often (8), VERBOSE=1 tells the times.
# Usage: world_ends_clean_test.sh PROGRAM
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
mkdir tmp
export TMPDIR=$work/tmp
tiny_config llama 12 >short.toml
tiny_config llama 1000000 >long.toml

alive() {  # of these processes; one that has ended and waits for its parent does not count
  local p
  for p in "$@"; do
    if grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$p/status" 2>/dev/null; then echo "$p"; fi
  done
}
# A file that is closed while they are listed is no trouble.
sockets_of() { { readlink "/proc/$1/fd/"* 2>/dev/null || true; } | sed -n 's/^socket:\[\([0-9]*\)\]$/\1/p'; }
listening() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" { print $10 }'; }
held_by_anybody() { cat /proc/[0-9]*/maps 2>/dev/null | grep -qF -- "$1"; }

look_at() {  # what these processes hold now
  sockets=$(for p in "$@"; do sockets_of "$p"; done | sort -u)
  ports=$(listening | sort -u | comm -12 - <(echo "$sockets"))
}

nothing_left() {  # RUN PROCESS...
  local run=$1 f p
  shift
  [ -z "$(alive "$@")" ] || fail "$run: processes were left: $(alive "$@")"
  f=$(listening | sort -u | comm -12 - <(echo "$ports"))
  [ -z "$f" ] || fail "$run: something still listens: sockets $f"
  for p in "$@"; do
    f=$(awk -v p="$p" 'NR > 1 && $5 == p { print $2 }' /proc/sysvipc/shm)
    [ -z "$f" ] || fail "$run: process $p left shared memory $f (ipcs -m)"
  done
  # Another program's new segment is held by that program.
  for f in $(find /dev/shm -type f -newer "$run.begin" 2>/dev/null); do
    held_by_anybody "$f" || { sleep 0.5; [ ! -e "$f" ] || held_by_anybody "$f" || fail "$run: shared memory $f was left"; }
  done
  f=$(find "$run" tmp -mindepth 1 \( -name '*.tmp-*' -o -name 'probe-*' -o -name 'config.next*' -o -path 'tmp/*' \))
  [ -z "$f" ] || fail "$run: unfinished files were left: $f"
}


# goes_on RUN PROCESS: a plan that came after the worker's end names six again, and steps are committed under it.
goes_on() {
  local until=$(($(milliseconds) + 20000)) last plan
  while true; do
    last=$(tail -n 1 "$1/steps.jsonl")
    plan=$(ls "$1/plans/" | grep 'plan-[0-9]*$' | sort | tail -n 1)
    if [ "$plan" != plan-000000 ] && [[ $last == *'"world":6,"generation":'$((10#${plan#plan-}))','* ]]; then return 0; fi
    kill -0 "$2" 2>/dev/null || fail "$1 ended with the worker: $(cat "$1.err")"
    [ "$(milliseconds)" -le "$until" ] || fail "$1 has not six workers again after 20 s: $last; $plan; $(cat "$1.err")"
    sleep 0.02
  done
}

slowest=0
ends_like() {  # RUN WHAT [SLOT]
  local run=$1 what=$2 slot=${3:-0} config=long launcher all code=0 struck took wanted
  [ "$what" = finish ] && config=short
  touch "$run.begin"
  "$program" train "$config.toml" --run-dir "$run" --workers 6 >"$run.out" 2>"$run.err" &
  launcher=$!
  started+=("$launcher")
  if [ "$what" != finish ]; then until_steps "$run" 3 "$launcher"; else until [ "$(workers_of "$launcher" | wc -w)" -eq 6 ]; do sleep 0.01; done; fi
  local -a workers
  read -r -a workers <<<"$(workers_of "$launcher")"
  started+=("${workers[@]}")
  all=("$launcher" "${workers[@]}")
  [ "${#workers[@]}" -eq 6 ] || fail "$run has ${#workers[@]} workers: $(cat "$run.err")"
  look_at "${all[@]}"
  [ "$what" = finish ] || [ -n "$ports" ] || fail "$run: no port was seen while it ran"

  struck=$(milliseconds)
  case $what in
    finish) wanted=0 ;;
    stop) wanted=75; "$program" stop "$run" >/dev/null ;;
    term) wanted=75; kill -TERM "$launcher" ;;
    worker)
      wanted=75
      kill -KILL "${workers[$slot]}"
      goes_on "$run" "$launcher"
      grep -q "worker-$slot (process ${workers[$slot]}) ended by SIGKILL; started again as process" "$run.err" ||
        fail "$run does not say who was lost and started again: $(cat "$run.err")"
      read -r -a workers <<<"$(workers_of "$launcher")"
      started+=("${workers[@]}")
      all+=("${workers[@]}")
      look_at "${all[@]}"
      struck=$(milliseconds)
      "$program" stop "$run" >/dev/null
      ;;
    worker-and-stop)
      wanted=75
      kill -KILL "${workers[$slot]}"
      "$program" stop "$run" >/dev/null
      ;;
    launcher) wanted=137; kill -KILL "$launcher" ;;
  esac
  wait "$launcher" 2>/dev/null || code=$?
  # Workers of a killed launcher save, say good-bye and end by themselves.
  while [ -n "$(alive "${workers[@]}")" ] && [ $(($(milliseconds) - struck)) -lt 20000 ]; do sleep 0.01; done
  took=$(($(milliseconds) - struck))
  [ "$code" -eq "$wanted" ] || fail "$run ($what $slot) ended with $code, not $wanted: $(cat "$run.err")"
  [ "$took" -le "$slowest" ] || slowest=$took
  [ "$took" -le 5000 ] || fail "$run ($what $slot) ended only after $took ms: $(cat "$run.err")"
  [ "$wanted" != 75 ] && [ "$what" != launcher ] || [ -n "$(ls "$run/checkpoints")" ] || fail "$run ($what): nothing was saved"
  nothing_left "$run" "${all[@]}"
  [ -z "${VERBOSE:-}" ] || echo "$run $what $slot: code $code, all ended after $took ms"
  started=()
  rm -rf -- "$run" "$run".*
}

kinds=('finish' 'worker 3' 'stop' 'worker 0' 'term' 'launcher' 'worker-and-stop 5' 'worker-and-stop 0' 'worker 5' 'worker 1' 'launcher'
  'worker 2' 'worker-and-stop 2' 'worker 4')
for n in $(seq 0 $((${STARTS:-8} - 1))); do
  # shellcheck disable=SC2086
  ends_like "run-$n" ${kinds[$((n % ${#kinds[@]}))]}
done
echo "${STARTS:-8} starts ended clean, within $slowest ms of what ended them"
