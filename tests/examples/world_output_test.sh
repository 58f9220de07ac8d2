#!/usr/bin/env bash
# What a world of 3 writes into files: each message once a job and not once a worker, a progress line every metrics.log_freq steps, and
# nothing that only a terminal understands.
# Usage: world_output_test.sh PROGRAM
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
tiny_config llama 95 >run.toml
"$program" train run.toml --run-dir run --workers 3 >out 2>err || fail "the run ended with $?: $(cat err)"

for file in out err run/logs/*.log; do
  if LC_ALL=C grep -q $'[\r\033\b]' "$file"; then fail "$file has characters for a terminal: $(cat -v "$file")"; fi
  if LC_ALL=C grep -q '[^[:print:][:space:]]' "$file"; then fail "$file is not plain text: $(cat -v "$file")"; fi
done
twice=$(cat out err | sort | uniq -d | grep . || true)
[ -z "$twice" ] || fail "said twice: $twice"
for once in '^status at http' '^ *plan  *3 workers' '^ *run directory  *run' 'tokens are not used'; do
  n=$(cat out err | grep -c "$once" || true)
  [ "$n" -eq 1 ] || fail "\"$once\" was said $n times: $(cat out err)"
done
[ -s out ] && [ "$(wc -l <err)" -le 3 ] || fail "progress belongs to the output, not to the errors: $(cat err)"

progress=$(grep -c '^step  *[0-9]*/95  loss' out || true)
[ "$progress" -ge 9 ] && [ "$progress" -le 11 ] || fail "$progress progress lines for 95 steps, one every 10: $(cat out)"
steps=$(sed -n 's/^step  *\([0-9]*\)\/95  loss.*/\1/p' out)
[ "$steps" = "$(sort -nu <<<"$steps")" ] || fail "progress goes back or repeats: $steps"

# The other workers have nothing to say that is not said already.
"$program" train run.toml --run-dir quiet --workers 3 --quiet >out 2>err
[ ! -s out ] && [ ! -s err ] || fail "--quiet said: $(cat out err)"
echo "$progress progress lines, every message once"
