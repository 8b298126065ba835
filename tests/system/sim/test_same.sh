#!/usr/bin/env bash
# Simulation is the deployment: presets of fl-serverd --help run the same small federation through
# fl-sim and through daemons over loopback, with one client that is killed in the second round and comes
# back, and one that is late whenever it is asked for an update. What they leave behind is the same, bit for
# bit (same.py says what is looked at; docs/simulation.md what is not predicted).
# All presets; under sanitizers those that hold every pair of policies, and with FL_SLOW_TESTS=no every policy: what a
# preset adds to its policies, test_presets.sh runs through fl-sim in all builds.
# Clients get what changed (broadcast: lattice) in all of them whose clients share a model, but for float16, ternary and
# float32 in one or two each, which run a second time as NAME@lattice; NAME@hashed trains in a hashed space, NAME@fltrust
# on the server too.
#   test_same.sh [NAME…]     those presets only
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

killed=client-001
late=client-006
clients=(client-00{0..7})
rounds=4

# --- what both run ---

own=$("$build/tests/system/preset_parts" | awk '$8 == "own" {print $1}') # each client has a model of its own
federation() { # preset, seed, upload deadline: lines of the server's configuration
  local slots='fraction: {fraction: 0.75}' training='epochs: 1' lattice=', broadcast: {policy: lattice, step: 0.015625, halve_at: 3}'
  local form=${1#"${1%@*}"}
  set -- "${1%@*}" "${@:2}"
  case "$1" in *adafl*|dyn_fedavg|lean) slots='fraction: {start: 0.75, end: 0.9, every: 2}' ;; esac
  case "$1" in *fedldf*|random_layer|hdfl|*mcsa*|*fedamp|pfedme|lean) slots+=', upload: {share: 0.5}' ;; esac
  case "$1$form" in
    *@hashed) slots+="$lattice, codec: {policy: steps, step: 0.03125}, space: {policy: hashed, size: 80, start: 40, redraw: 2}" ;;
    *@fltrust) slots+=', robust: {policy: fltrust, samples: 40}' ;; # the server trains too
    fedprox|fedldf) slots+=', broadcast: float16' ;;
    fedavg|stc) ;;
    *) grep -qxF -e "$1" <<<"$own" || slots+=$lattice ;;
  esac
  case "$1" in # passes, steps that go on where the round before ended, momentum
    *igfl*|*mcsa*|pfedme|per_fedavg|fedldf+*) training='epochs: 0, steps: 15' ;;
    fedprox|fedldf)
      training='epochs: 1, momentum: 0.5, weight_decay: 0.001'
      [ "$form" = @hashed ] || training+=', client_momentum: 0.9' # a redraw would lose it: refused
      ;;
    fedavg|adafl|lean) training='epochs: 1, momentum: 0.5, weight_decay: 0.001' ;;
    stc) training='epochs: 1, client_momentum: 0.5' ;;
  esac
  echo "algorithm: $1"
  echo "rounds: $rounds"
  echo "seed: $2"
  echo 'model: {input: [1, 8, 8], layers: ["conv 2 3x3", "bn", "relu", "flatten", "dropout 0.1", "dense 12", "relu", "dense 10"]}'
  echo "training: {$training, batch_size: 10, learning_rate: 0.05}"
  echo "strategy: {$slots}"
  echo "evaluation: {every: 1, clients: yes, data: \"$dir/data/server\"}"
  # No round begins without the killed client; what is lost is lost soon; who is late is so by the
  # deadline of uploads alone.
  echo "round: {start_clients: 8, min_clients: 8, lost_grace: 100ms, retry: 50ms, straggler_factor: 0, upload_deadline: $3}"
  echo "checkpoints: {keep: 100}"
}

# --- through daemons ---

is_decided() { grep -qF "decision: task '$2' round=$3 attempt=1 " "$dir/$1.log"; } # server, client, round
is_open() { # server, round: all its tasks are out
  local n
  n=$(sed -n "s/.* round $2 attempt 1: SELECTING -> TRAINING, \([0-9]*\) clients .*/\1/p" "$dir/$1.log")
  [ -n "$n" ] && [ "$(grep -c "decision: task '.*' round=$2 attempt=1 " "$dir/$1.log")" -eq "$n" ]
}

# server: somebody was late, or lost, who was not meant to be
disturbed() {
  sed -n 's/.* round: round [0-9]*: timed out at the deadline: //p' "$dir/$1.log" | grep -qvx "$late" ||
    sed -n 's/.* round: round [0-9]*: disconnected, did not reconnect in time: //p' "$dir/$1.log" | grep -qvx "$killed"
}

# server: all are here, and have told of their data where that is asked for
all_ready() {
  ctl "$1" clients --json | json 'len([c for c in d if c["state"] != "gone" and c["samples"] > 0]) == 8'
}

start_all() { # server
  local c limits
  for c in "${clients[@]}"; do
    limits=()
    [ "$c" != "$late" ] || limits=("limits: {upload_rate: 8bit/s}")
    start_client "$1-$c" "$dir/data/$c" "name: $c" "${limits[@]}"
  done
}

end_of() { # server: nothing of it runs any more, or is there
  local c
  for c in "$1" "${clients[@]/#/$1-}"; do
    ! running "$c" || kill_hard "$c" 2>/dev/null
    rm -rf "${dir:?}/$c".*
  done
}

# server: the killed one answers in the first round, and is gone in the second before it has begun
# with it. It is selected in both, or this is not the seed for it.
kill_one() {
  local n=$1
  kill -STOP "${pid_of[$n-$killed]}" # so that the round waits, and a pause comes in time
  ctl "$n" resume >"$dir/ctl.out"
  wait_for "the first round of $n" is_open "$n" 1
  is_decided "$n" "$killed" 1 || return 1
  ctl "$n" pause >"$dir/ctl.out"
  kill -CONT "${pid_of[$n-$killed]}"
  wait_for "the first round of $n to end" in_phase "$n" PAUSED
  kill -STOP "${pid_of[$n-$killed]}"
  ctl "$n" resume >"$dir/ctl.out"
  wait_for "the second round of $n" is_open "$n" 2
  is_decided "$n" "$killed" 2 || return 1
  kill_hard "$n-$killed" 2>/dev/null
  wait_for "the second round of $n to end" at_round "$n" 2
  run_client "$n-$killed"
}

# name, preset, seed, deadline. 1: another seed is needed; 2: the machine was too busy for this deadline
daemons() {
  local n=$1 c lines
  mapfile -t lines < <(federation "${@:2}")
  write_server "$n" "log_level: debug" "heartbeat: 60s" "${lines[@]}"
  start_server "$n" || { note_failure "$n: fl-serverd does not start"; return 3; }
  ctl "$n" pause >"$dir/ctl.out"
  start_all "$n"
  wait_for "the clients of $n" all_ready "$n"
  kill_one "$n" || return 1
  wait_for "all rounds of $n" at_round "$n" "$rounds"
  for c in "${clients[@]}"; do
    wait_end "$n-$c"
    equal "$n: $c ends well" 0 "$rc"
  done
  ctl "$n" rounds --json >"$dir/$n.rounds"
  stop "$n"
  equal "$n: the server ends well" 0 "$rc"
  ! disturbed "$n" || return 2
  # What it keeps is of a committed round once more.
  is_decided "$n" "$killed" 3 || is_decided "$n" "$killed" 4 || return 1
  [ "$2" = local_only ] || in_log "$n" "timed out at the deadline: $late" || return 1 # where nothing is asked for, nobody is late
  mkdir -p "$dir/$n/clients"
  mv "$dir/$n.state" "$dir/$n/server"
  for c in "${clients[@]}"; do mv "$dir/$n-$c.state" "$dir/$n/clients/$c"; done
  check "$n: what it left behind" "$python" "$srcdir/tests/system/same.py" "$dir/$n" "$dir/$n.log"
  mv "$dir/check.out" "$dir/$n.txt"
}

# preset: until a run was as it is meant to be; sets $name, $seed and $deadline
run_daemons() {
  local try=0 what
  seed=1 deadline=1500
  while :; do
    name=d-${1//[+@]/-}-$((++try))
    what=0
    daemons "$name" "$1" "$seed" "${deadline}ms" || what=$?
    [ $what = 0 ] || end_of "$name"
    case $what in
      0) return 0 ;;
      1) seed=$((seed + 1)) ;;
      2) deadline=$((2 * deadline)) ;;
      *) return 1 ;;
    esac
    [ "$seed" -le 40 ] && [ "$deadline" -le 200000 ] || { note_failure "$1: no run as it is meant to be"; return 1; }
  done
}

# --- through fl-sim ---

# The same in simulated seconds: the late one has 1 byte/s, the killed one is away from the first span
# of seconds to the second.
experiment() { # file, preset, seed, deadline, from, until, lines…
  local c i=0 lines
  mapfile -t lines < <(federation "$2" "$3" "$4")
  {
    echo "server:"
    echo "  federation: integ" # as write_server has it
    printf '  %s\n' "${lines[@]}"
    echo "client: {summaries: yes}"
    echo "data: {path: \"$dir/data\"}"
    echo "world:"
    echo "  uplink: {table: \"$1.links\", column: uplink, assign: in_order}"
    echo "  latency: 5ms"
    echo "  train: {fixed: 1s}"
    echo "  availability: {trace: \"$1.times\", assign: in_order}"
    printf '%s\n' "${@:7}"
  } >"$1.yaml"
  printf '# source: test_same.sh\nclient, uplink [B/s]\n' >"$1.links"
  printf '# source: test_same.sh\n# length: 1h\nclient, up_from [s], up_until [s]\n' >"$1.times"
  for c in "${clients[@]}"; do
    if [ "$c" = "$late" ]; then echo "$i, 1"; else echo "$i, 1000000"; fi >>"$1.links"
    if [ "$c" = "$killed" ]; then printf "$i, %s\n" "0, $5" "$6, 3600"; else echo "$i, 0, 3600"; fi >>"$1.times"
    i=$((i + 1))
  done
}

# server, rows: what operators and researchers read, figure by figure
same_rows() {
  "$python" - "$1" "$2/rounds.jsonl" "$2/clients.jsonl" "$killed" "$late" <<'PY'
import json, sys
with open(sys.argv[1]) as f:
    told = json.load(f)
rows, parts = ([json.loads(line) for line in open(name)] for name in sys.argv[2:4])
times = {"wire_up_bytes", "wire_down_bytes"}
assert len(told) == len(rows) > 0, (len(told), len(rows))
def shown(x):  # flctl prints ten digits; the database was compared in full
    return float(f"{x:.10g}") if isinstance(x, float) else x
for a, b in zip(told, rows):
    keys = {key for key in set(a) & set(b) - times if not key.endswith("_ms")}
    assert len(keys) >= 15, keys
    wrong = [(key, a[key], b[key]) for key in sorted(keys) if a[key] != shown(b[key])]
    assert not wrong, wrong
gone = {(row["name"], row["round"]) for row in parts if row["state"] == "dropped"}
assert gone == {(sys.argv[4], 2)}, gone
assert {row["name"] for row in parts if row["state"] == "late"} <= {sys.argv[5]}
PY
}

# name, preset, seed, deadline: leaves $dir/NAME.txt as daemons() does
simulation() {
  local n=$1 first out=$dir/$1.results state span
  # How long the first round takes there says when the second is under way.
  experiment "$dir/$n-first" "${@:2}" 3599 3599.5 "stop: {rounds: 1, time: 1h}"
  check "$n: the first round" "$build/fl-sim" run "$dir/$n-first.yaml" --out "$out-first" --quiet || return
  first=$(json 'd["time_us"]' <"$(echo "$out-first"/*/seed-*/rounds.jsonl)")
  span=$("$python" -c "print($first / 1e6 + 0.5, $first / 1e6 + 60)")
  # shellcheck disable=SC2086
  experiment "$dir/$n" "${@:2}" $span "stop: {time: 1h}"
  check "$n: all rounds" "$build/fl-sim" run "$dir/$n.yaml" --out "$out" --quiet --keep-state --clients || return
  state=$(echo "$out"/*/seed-*/state)
  check "$n: its rows are those of flctl" same_rows "$dir/d-${n#s-}.rounds" "${state%/state}"
  check "$n: what it left behind" "$python" "$srcdir/tests/system/same.py" "$state" "$state/server.log" || return
  mv "$dir/check.out" "$dir/$n.txt"
}

preset() {
  local name seed deadline sim
  run_daemons "$1" || return
  sim=s-${name#d-}
  simulation "$sim" "$1" "$seed" "${deadline}ms"
  check "$1: the simulation is the deployment" diff "$dir/$name.txt" "$dir/$sim.txt"
  [ -z "${SAME_KEEP:-}" ] || cp -r "$dir/$name" "$dir/$name".* "$dir/$sim".* "$SAME_KEEP/"
  rm -rf "${dir:?}/$name"* "${dir:?}/$sim"*
}

if [ "${1:-}" = --worker ]; then
  shift
  check "the data is shared out" "$build/fl-data" split --input "$srcdir/deploy/data/optdigits" --output "$dir/data" \
    --clients 8 --method dirichlet --alpha 1 --test-share 0.2 --seed 5
  for algorithm in "$@"; do preset "$algorithm"; done
  finish
fi

presets=("$@")
if [ $# = 0 ]; then
  mapfile -t presets < <(case ${FL_SLOW_TESTS:-yes},${FL_SANITIZED:-no} in
    no,*) covering_presets 1; printf '%s\n' fedprox@lattice fedavgm@hashed fedldf@fltrust ;; # prox: of the others only with models of their own
    *,yes) covering_presets 2; echo fedldf@hashed ;;
    *) presets_of_help; printf '%s@lattice\n' fedavg fedprox fedldf stc
      printf '%s@hashed\n' fedavgm fedldf adafl fedprox
      printf '%s@fltrust\n' fedavgm fedldf ;;
  esac)
  echo "presets: ${presets[*]}"
  check "fl-serverd --help lists presets" test "${#presets[@]}" -ge 8
fi
workers=6
share_out "${presets[@]}"
finish
