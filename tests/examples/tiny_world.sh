# What the tests of worlds share: a tiny model that trains in a second, and looks at what a run left. To be sourced after `program`
# is set; makes a folder of its own, goes there and removes it at the end.

work=$(mktemp -d)
cd -- "$work"
started=()  # processes that must not outlive the test
# The workers of a launcher are its children, each in a process group of its own.
workers_of() { cat "/proc/$1/task/$1/children" 2>/dev/null || true; }
cleanup() {
  local p w
  for p in "${started[@]}"; do
    # A launcher's workers are told by the kernel to save and end; after a failure nobody waits for that.
    for w in $(workers_of "$p"); do kill -KILL "$w" 2>/dev/null || true; done
    kill -KILL "$p" 2>/dev/null || true
  done
  [ -n "${KEEP:-}" ] || rm -rf -- "$work"
}
trap cleanup EXIT
fail() { echo "$*"; exit 1; }

for i in $(seq 300); do echo "fox number $i jumps over $((i * 7919 % 1000)) lazy dogs"; done >text.txt
head -c 2000 text.txt >valid.txt

# tiny_config FAMILY STEPS: 24 sequences a step in 12 virtual ranks, validated every 10 steps.
tiny_config() {
  local kv=1
  [ "$1" = gpt2 ] && kv=2
  cat <<END
[model]
model_type = "$1"
hidden_size = 16
intermediate_size = 32
num_hidden_layers = 2
num_attention_heads = 2
num_key_value_heads = $kv
[[data.sources]]
path = "$work/text.txt"
[training]
seq_len = 16
global_batch_size = 24
micro_batch_size = 2
steps = $2
[parallelism]
virtual_ranks = 12
[compute]
threads = 1
[optimizer]
lr = 1e-2
[lr_scheduler]
warmup_steps = 2
total_steps = $2
[validation]
enable = true
path = "$work/valid.txt"
freq = 10
steps = 1
[metrics]
peak_flops = 1e9
END
}

report() { sed -n "s/^ *\"$2\": \"*\([^\",]*\)\"*,*$/\1/p" "$1/report.json" | head -n 1; }  # report RUN KEY
hashes() { echo "$(report "$1" weights_hash) $(report "$1" state_hash)"; }

# same_bits RUN RUN: hashes, the losses of all steps and of validation.
same_bits() {
  local difference
  difference=$("$program" diff "$1" "$2" 2>&1) || true
  grep -q 'same bits' <<<"$difference" || fail "$2 has other bits than $1: $difference"
  [ -n "$(report "$1" weights_hash)" ] || fail "$1 has no hash"
  [ "$(hashes "$1")" = "$(hashes "$2")" ] || fail "$2 has other hashes than $1: $(hashes "$1"), $(hashes "$2")"
  [ "$(report "$1" val_loss)" = "$(report "$2" val_loss)" ] || fail "$2 has another validation loss than $1"
}

# until_steps RUN N PROCESS: waits until N steps are recorded; fails if the process ends before.
until_steps() {
  local n
  while true; do
    n=$(wc -l 2>/dev/null <"$1/steps.jsonl") || n=0
    [ "$n" -ge "$2" ] && return
    kill -0 "$3" 2>/dev/null || fail "$1 ended before step $2: $(cat "$1.err" 2>/dev/null)"
    sleep 0.01
  done
}

worker_named() {  # LAUNCHER NAME: the process that is this worker now
  local p
  for p in $(workers_of "$1"); do
    if tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q -- "--name $2 "; then echo "$p"; fi
  done
}

milliseconds() { date +%s%3N; }

# Newest plan of a run: its file, what it says under a key, its members' names (a line each), and who coordinates.
newest_plan() { ls "$1"/plans/plan-* 2>/dev/null | grep "plan-[0-9]*$" | sort | tail -n 1; }
of_plan() { grep -o "\"$2\": *\"*[^,\"]*" "$(newest_plan "$1")" 2>/dev/null | head -n 1 | sed "s/.*: *\"*//"; }
names_in_plan() { grep -o '"name": *"[^"]*"' "$(newest_plan "$1")" | sed 's/.*"\(worker-[0-9]*\)"/\1/' | sort; }
coordinator_of() {
  local id
  id=$(of_plan "$1" coordinator)
  grep -o "\"id\": *$id,.*\"name\": *\"[^\"]*\"" "$(newest_plan "$1")" | sed 's/.*"name": *"\([^"]*\)".*/\1/' | head -n 1
}
in_events() { grep -c "\"event\": *\"$2\"" "$1/events.jsonl" || true; }  # in_events RUN EVENT

# ends_as_alone RUN MORE [OPTION...]: a run that was stopped does so many more steps, with these options; it has each step once, and
# everything that one worker has who does all of them.
ends_as_alone() {
  local run=$1 steps=$(($(wc -l <"$1/steps.jsonl") + $2))
  shift 2
  "$program" train "${CONFIG_FILE:-run.toml}" --run-dir "$run" --quiet --training.steps="$steps" "$@" 2>>"$run.err" ||
    fail "$run goes on and ends with $?: $(cat "$run.err")"
  diff <(seq "$steps") <(sed 's/^{"step": *\([0-9]*\).*/\1/' "$run/steps.jsonl") >gaps || fail "$run has not each step once: $(head gaps)"
  "$program" train "${CONFIG_FILE:-run.toml}" --run-dir "$run-alone" --quiet --training.steps="$steps"
  same_bits "$run-alone" "$run"
}
