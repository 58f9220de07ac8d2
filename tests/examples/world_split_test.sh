#!/usr/bin/env bash
# Two halves of a world that do not reach each other: network namespaces as hosts, two on each of two bridges, and for a while no link
# between the bridges. Each half holds every block. Exactly one of them goes on, under one chain of plans; whoever was left out comes again
# once the link is back; the end has the bits of one worker alone.
# Usage: world_split_test.sh PROGRAM     CUT_S=8: seconds without the link (20: the full form)
# Needs root and network namespaces; without them it says so and ends with 77.
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
cut_s=${CUT_S:-8}
tag=$$
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root may make network namespaces"
ip netns add "troupe-$tag-0" 2>/dev/null || skip "no network namespaces here"

leave_hosts() {
  local k
  touch "$work/over"
  for k in 0 1 2 3; do
    ip netns pids "troupe-$tag-$k" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    ip netns del "troupe-$tag-$k" 2>/dev/null || true
  done
  ip link del "tl$tag" 2>/dev/null || true
  ip link del "tba$tag" 2>/dev/null || true
  ip link del "tbb$tag" 2>/dev/null || true
  cleanup
}
trap leave_hosts EXIT

ip link add "tba$tag" type bridge && ip link add "tbb$tag" type bridge || skip "no bridges here"
ip link add "tl$tag" type veth peer name "tr$tag"
ip link set "tl$tag" master "tba$tag" up
ip link set "tr$tag" master "tbb$tag" up
ip link set "tba$tag" up
ip link set "tbb$tag" up
for k in 0 1 2 3; do
  bridge=tba$tag
  [ $((k % 2)) -eq 0 ] || bridge=tbb$tag
  [ "$k" -eq 0 ] || ip netns add "troupe-$tag-$k"
  ip link add "tv$tag$k" type veth peer name eth0 netns "troupe-$tag-$k"
  ip link set "tv$tag$k" master "$bridge" up
  ip -n "troupe-$tag-$k" addr add "10.213.0.$((k + 1))/24" dev eth0
  ip -n "troupe-$tag-$k" link set eth0 up
  ip -n "troupe-$tag-$k" link set lo up
done

{ tiny_config llama 1000000; printf "[fault_tolerance]\nbackups = 2\n"; } >run.toml  # any two of four hold every block
run=split
mkdir "$run"
# host K WORDS...: one worker, again and again until all is over, as a launcher of that host would do it.
host() {
  local k=$1 words=(--world 4) code
  while [ ! -e over ]; do
    code=0
    ip netns exec "troupe-$tag-$k" unshare --uts --ipc sh -c 'hostname "$1"; shift; exec "$@"' sh "host-$k" \
      env UCX_TLS=tcp UCX_NET_DEVICES=eth0 "$program" worker run.toml --run-dir "$run" --name "worker-$k" --quiet \
      --set "comm.listen=10.213.0.$((k + 1)):0" --set "metrics.prometheus_listen=" "${words[@]}" >>"host-$k.log" 2>&1 || code=$?
    echo "ended with $code" >>"host-$k.log"
    [ ! -e "$run/plans/plan-000000" ] || words=(--join)
    sleep 0.2
  done
}
for k in 0 1 2 3; do
  host "$k" 2>/dev/null &
  started+=($!)
  until [ -e "$run/run.json" ]; do sleep 0.02; done  # whoever begins a run makes it
done

members() { names_in_plan "$run" | grep -o '[0-9]*' | tr '\n' ' '; }
lines() { wc -l 2>/dev/null <"$run/steps.jsonl" || echo 0; }
logs() { tail -n 5 host-*.log; }
# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local until=$(($(date +%s) + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$(date +%s)" -le "$until" ] || fail "no $what in time; newest plan: $(members); $(lines) steps
$(logs)"
    sleep 0.05
  done
}
all_four() { [ "$(members)" = "0 1 2 3 " ] && ! grep -q '"backups":\[\]' "$(newest_plan "$run")"; }
more_than() { [ "$(lines)" -gt "$1" ]; }
one_side() { case "$(members)" in "0 2 " | "1 3 ") true ;; *) false ;; esac; }

wait_for 30 "first steps" more_than 20
wait_for 10 "world of four" all_four
before=$(lines)
ip link set "tl$tag" down
cut_at=$(date +%s%N)
wait_for 15 "plan of one side" one_side
side=$(members)
took=$((($(date +%s%N) - cut_at) / 1000000))
at_change=$(lines)
wait_for 10 "steps of that side" more_than $((at_change + 20))
rest=$((cut_s * 1000 - ($(date +%s%N) - cut_at) / 1000000))
[ "$rest" -le 0 ] || sleep "$(printf '%d.%03d' $((rest / 1000)) $((rest % 1000)))"
[ "$(members)" = "$side" ] || fail "members changed from '$side' to '$(members)' while the halves were apart"
during=$(lines)
ip link set "tl$tag" up
wait_for 30 "world of four after the cut" all_four
after=$(lines)
wait_for 20 "further steps" more_than $((after + 20))

# All are told to leave at once: the run stops and is saved.
touch over
for k in 0 1 2 3; do ip netns pids "troupe-$tag-$k" | while read -r p; do
  [ "$(readlink "/proc/$p/exe")" != "$program" ] || kill -TERM "$p"
done; done
for k in 0 1 2 3; do wait "${started[$k]}" 2>/dev/null || true; done
ends_as_alone "$run" 10
steps=$(lines)
[ "$(report "$run" committed_steps_lost)" = 0 ] || fail "committed steps were lost"
echo "apart for $cut_s s: members ${side% } went on after $took ms with $((during - before)) steps, the others with none; all four again; $steps steps, same bits"
