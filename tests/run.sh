#!/usr/bin/env bash
# Everything that is tested, with one command, from nothing: installs the packages, builds, runs the suite.
#
#   tests/run.sh                 the whole suite, then its most telling part under the sanitizers
#   tests/run.sh --quick         without the slow tests and without sanitizers
#   tests/run.sh --sanitizers    the whole suite, then the whole suite under each sanitizer (an hour on 2 cores)
#
# --no-setup: the packages are there already. Works from any directory; builds under build/ in the repository.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

quick=false sanitizers=short setup=true
for argument in "$@"; do
  case $argument in
    --quick) quick=true sanitizers=none ;;
    --sanitizers) sanitizers=full ;;
    --no-setup) setup=false ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      echo "tests/run.sh: unknown option $argument (there are --quick, --sanitizers, --no-setup)" >&2
      exit 64
      ;;
  esac
done

# What the short form runs. Addresses: all that reads bytes from outside or keeps files, and the vector code's
# edges. Threads: all that hands work to other threads.
short_asan='^(config|comm|actors\.sim|model\.(data|hub|checkpoint)|compute\.(executor|math|cpu\.(linear|norm|rotate|embedding)))'
short_tsan='^(actors\.sim\.(campaign|elastic|elastic_traces|faults|invariants|world)_test|compute\.(executor|cpu\.(thread_pool|linear|cross_entropy|reduce)))'
# What cannot run under sanitizers: the checks of the sources, which run no code of ours, and comparisons with
# programs that were built without them.
not_sanitized='^(tidy|examples|interop)\.'

jobs=$(nproc)
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
summary=() passed=0 failed=0
SECONDS=0

say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }

build() {  # preset, targets
  local preset=$1
  shift
  cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"} || {
    echo "tests/run.sh: the $preset build failed; the first error above is the cause" >&2
    exit 1
  }
}

configure() {
  # ccache saves a repeated build, nothing needs it.
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$1" ${launcher[@]+"${launcher[@]}"} >"$log" 2>&1 || {
    cat "$log" >&2
    echo "tests/run.sh: configuring $1 failed; a missing package is the usual cause: cmake/setup.sh build tests" >&2
    exit 1
  }
}

run_tests() {  # preset, further words for ctest
  local preset=$1 line
  shift
  # The thread sanitizer of g++ 12 cannot live with all address layouts that newer kernels draw.
  local fixed_layout=()
  if [ "$preset" = tsan ] && setarch -R true 2>/dev/null; then fixed_layout=(setarch -R); fi
  # UCX hooks calls that a thread makes while it ends, when the sanitizer has given the thread up already.
  if [ "$preset" = tsan ]; then export UCX_MEM_EVENTS=n; fi
  ${fixed_layout[@]+"${fixed_layout[@]}"} ctest --preset "$preset" --parallel "$jobs" "$@" 2>&1 | tee "$log" || true
  line=$(grep -E '^[0-9]+% tests passed' "$log" || true)
  if [[ $line =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
    summary+=("$preset: $line")
  else
    failed=$((failed + 1))
    summary+=("$preset: ctest did not come to its end")
  fi
}

# All tests, or only those that match: then only they are built.
sanitized() {  # preset, pattern or nothing
  local preset=$1 pattern=${2:-} targets=()
  say "$preset: build and test"
  configure "$preset"
  if [ -n "$pattern" ]; then
    mapfile -t targets < <(cd "build/$preset" && ctest -N -R "$pattern" | sed -n 's/^ *Test *#[0-9]*: //p')
    [ ${#targets[@]} -gt 0 ] || { echo "tests/run.sh: no test matches $pattern" >&2; exit 1; }
    build "$preset" "${targets[@]}"
    run_tests "$preset" -R "$pattern"
  else
    build "$preset"
    run_tests "$preset" -E "$not_sanitized"
  fi
}

if $setup; then
  say 'set-up'
  "$root/cmake/setup.sh" build tests quickstart
fi
say 'release: build'
configure release
build release
say 'release: test'
if $quick; then run_tests release -LE slow; else run_tests release; fi
case $sanitizers in
  short)
    sanitized asan "$short_asan"
    sanitized tsan "$short_tsan"
    ;;
  full)
    sanitized asan
    sanitized tsan
    ;;
esac

printf '\n== done in %d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60))
printf '%s\n' "${summary[@]}"
echo "total: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
