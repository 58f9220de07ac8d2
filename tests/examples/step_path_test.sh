#!/usr/bin/env bash
# Nothing that a step waits for touches the run directory: system calls of all threads of a running world are looked at, and between two
# steps far from start and end the only thread of a process that uses a file below the run directory is its helper for files.
# Usage: step_path_test.sh PROGRAM
# Needs strace; without it, or where tracing is not allowed, it says so and ends with 77.
set -euo pipefail

program=$(readlink -f -- "$1")
source "$(dirname -- "$(readlink -f -- "$0")")/tiny_world.sh"
command -v strace >/dev/null || { echo "skipped: there is no strace"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "skipped: nothing may be traced here"; exit 77; }

tiny_config llama 80 >run.toml
strace -f -y -s 64 -o calls -e 'trace=%file,execve,read,pread64,write,pwrite64,writev,fsync,fdatasync,ftruncate,fstat,flock,getdents64' \
  "$program" train run.toml --run-dir traced --workers 2 --quiet

# A line: thread, call. Workers are the processes that were started as such.
awk -v folder="$work/traced/" '
  /execve\(/ && /"worker"/ { worker[$1] = 1 }
  /steps\.jsonl>/ && /\{\\"step\\":20,/ { inside = 1 }
  /steps\.jsonl>/ && /\{\\"step\\":60,/ { inside = 0; seen = 1 }
  inside && (index($0, folder) || /"traced\//) { used[$1]++ }
  END {
    if (!seen) { print "the steps 20 to 60 were not found"; exit 1 }
    for (t in worker) { workers++; if (t in used) { print "the loop of process " t " used the run directory " used[t] " times"; bad = 1 } }
    for (t in used) { threads++; calls += used[t] }
    if (workers != 2) { print workers + 0 " workers were started, not 2"; exit 1 }
    if (threads > workers) { print threads " threads used the run directory, in " workers " processes"; bad = 1 }
    if (calls < 40) { print "only " calls + 0 " calls were seen: the lines of 40 steps are more"; bad = 1 }
    if (bad) exit 1
    print "steps 20 to 60: " calls " calls below the run directory, all by " threads " helper thread" (threads > 1 ? "s" : "") ", none by a loop or a computing thread"
  }' calls
