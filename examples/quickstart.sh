#!/usr/bin/env bash
# From a fresh Debian 12 to a small language model that was trained here, with one command: installs packages,
# builds, trains on real text with four workers that share the cores, kills one of them half way and shows
# that the run went on, prints a sample and where everything is. Under five minutes once built.
#
#   examples/quickstart.sh [--workers N] [--steps N] [--out DIRECTORY] [--program FILE] [--check]
#
# --workers N       another number of workers; the losses and weights are the same bits
# --steps N         a shorter or longer run than the config's
# --out DIRECTORY   where text and run go (outputs/ in the repository); a run that stands there is continued
# --program FILE    use this program; nothing is installed or built
# --check           fail unless the model is as good as this example promises
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
here=$PWD
out=$root/outputs workers=4 steps='' program='' check=false

fail() {
  printf '\nquickstart: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf 'quickstart: %s\n' "$@" >&2
  exit 1
}
absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s/%s' "$here" "$1" ;; esac; }

while [ $# -gt 0 ]; do
  case $1 in
    --workers | --steps | --out | --program) [ $# -ge 2 ] || fail "$1 needs a value" ;;
  esac
  case $1 in
    --workers) workers=$2 && shift ;;
    --steps) steps=$2 && shift ;;
    --out) out=$(absolute "$2") && shift ;;
    --program) program=$(absolute "$2") && shift ;;
    --check) check=true ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option $1 (there are --workers, --steps, --out, --program, --check)" ;;
  esac
  shift
done

say() { printf '\n== %s\n' "$*"; }

# Works from any directory: the config's paths and the presets are relative to the repository.
cd -- "$root"
if [ -z "$program" ]; then
  say 'packages'
  cmake/setup.sh build quickstart || fail 'the packages could not be installed (see above)'
  say 'build (some minutes the first time)'
  cmake --preset release || fail 'configuring failed (see above)' 'a missing package? cmake/setup.sh build'
  cmake --build --preset release --parallel "$(nproc)" --target troupe ||
    fail 'the build failed; the first error above is the cause'
  program=$root/build/release/troupe
fi
[ -x "$program" ] || fail "there is no program $program" 'without --program it is built for you'

say 'text'
text=$out/quickstart-text run=$out/quickstart
examples/fortunes_text.sh "$text" || fail 'the text could not be prepared (see above)'

# Half way a worker is killed as a machine's failure would: at once, without a chance to save. With one
# worker nobody would be left; a run that stands beyond half already was struck before.
field_of() { grep -oE "\"$2\": *(\"[^\"]*\"|[^,}]*)" <<<"$1" | head -n 1 | sed 's/^[^:]*: *//; s/"//g' || true; }
event_of() { grep "\"event\": *\"$1\"" "$run/events.jsonl" 2>/dev/null | tail -n +"$(($2 + 1))" | head -n 1 || true; }
events_of() { grep -c "\"event\": *\"$1\"" "$run/events.jsonl" 2>/dev/null || true; }
done_steps() { wc -l 2>/dev/null <"$run/steps.jsonl" || echo 0; }
worker_process() {  # of this script's launcher
  local launcher worker
  for launcher in $(cat "/proc/$$/task/$$/children"); do
    for worker in $(cat "/proc/$launcher/task/$launcher/children" 2>/dev/null); do
      if tr '\0' ' ' <"/proc/$worker/cmdline" | grep -q -- "--name $1 "; then echo "$worker"; fi
    done
  done
}
kill_one_half_way() {
  local name=worker-$((workers - 1)) lost_before went_before process lost went at
  lost_before=$(events_of member_lost) went_before=$(events_of recovered)
  while [ "$(done_steps)" -lt $((all_steps / 2)) ]; do sleep 0.2; done
  process=$(worker_process "$name")
  [ -n "$process" ] && kill -KILL "$process" || return 0
  at=$(done_steps)
  for _ in $(seq 600); do
    went=$(event_of recovered "${went_before:-0}")
    [ -z "$went" ] || break
    sleep 0.1
  done
  [ -n "$went" ] || return 0
  lost=$(event_of member_lost "${lost_before:-0}")
  printf '\n== a worker was killed with SIGKILL, after step %s\n' "$at"
  echo "lost              $(field_of "$lost" member) (process $process); the others hold a copy of everything it held"
  echo "noticed           $(field_of "$lost" noticed)"
  LC_ALL=C printf 'went on           step %s was committed %.0f ms after that, with the same bits as if nothing had been\n\n' \
    "$(field_of "$went" step)" "$(field_of "$went" recover_ms)"
}
all_steps=${steps:-$(sed -n 's/^steps = //p' examples/quickstart.toml | head -n 1)}
killer=''
trap 'if [ -n "$killer" ]; then kill "$killer" 2>/dev/null || true; fi' EXIT
if [ "$workers" -gt 1 ] 2>/dev/null && [ "$(done_steps)" -lt $((all_steps / 2)) ]; then
  kill_one_half_way &
  killer=$!
fi

say "training with $workers workers (a line every 50 steps; Ctrl-C stops it after a save, the same command goes on)"
overrides=(--set "data.sources[0].path=$text/train.txt" --set "validation.path=$text/valid.txt")
if [ -n "$steps" ]; then overrides+=(--set "training.steps=$steps"); fi
code=0
"$program" train examples/quickstart.toml --workers "$workers" --run-dir "$run" "${overrides[@]}" || code=$?
if [ -n "$killer" ]; then
  if [ "$code" -ne 0 ]; then kill "$killer" 2>/dev/null || true; fi
  wait "$killer" 2>/dev/null || true
  killer=''
fi
case $code in
  0) ;;
  69) fail 'too few workers are left (see above)' 'the same command goes on from the newest save' ;;
  75) fail 'stopped as asked; the same command goes on from the save' ;;
  73) fail "the directory $run cannot be used (see above)" "remove it, or choose another place with --out" ;;
  78) fail 'the settings were refused (see above)' "if $run was made with others, remove it or choose another place with --out" ;;
  *) fail "training ended with exit code $code (see above)" ;;
esac

say 'what it writes now'
"$program" generate "$run" --prompt 'The ' --tokens 1200 --temperature 0.8 --seed 1 >"$out/quickstart-sample.txt" ||
  fail 'no sample could be generated (see above)'
head -c 600 "$out/quickstart-sample.txt"
printf ' ...\n'

# A number of report.json by its name.
reported() { tr ',{}' '\n\n\n' <"$run/report.json" | sed -n "s/^ *\"$1\" *: *\([-+.0-9eE]*\) *$/\1/p" | head -n 1; }
words=$(examples/known_words.sh "$text/train.txt" "$out/quickstart-sample.txt")
loss=$(reported val_loss)

say 'done'
echo "validation loss   ${loss:0:6} nats per byte (a byte drawn at random: 5.545)"
echo "known words       $words % of the sampled words of three or more letters stand in the training text"
echo "sample            $out/quickstart-sample.txt"
echo "report            $run/report.json"

if $check; then
  LC_ALL=C awk -v loss="$loss" 'BEGIN { exit !(loss != "" && loss + 0 > 0 && loss + 0 < 2.2) }' ||
    fail "the validation loss $loss is not below 2.2"
  [ "$words" -ge 60 ] || fail "only $words % of the words are known, 60 % were promised"
fi
