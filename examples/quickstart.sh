#!/usr/bin/env bash
# From a fresh Debian 12 to a small language model that was trained here, with one command: installs packages,
# builds, trains on real text with four workers that share the cores, prints a sample and where everything
# is. Under five minutes once built.
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

say "training with $workers workers (a line every 50 steps; Ctrl-C stops it after a save, the same command goes on)"
overrides=(--set "data.sources[0].path=$text/train.txt" --set "validation.path=$text/valid.txt")
if [ -n "$steps" ]; then overrides+=(--set "training.steps=$steps"); fi
code=0
"$program" train examples/quickstart.toml --workers "$workers" --run-dir "$run" "${overrides[@]}" || code=$?
case $code in
  0) ;;
  69) fail 'a worker was lost (see above)' 'the same command goes on from the newest save' ;;
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
