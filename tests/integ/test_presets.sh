#!/usr/bin/env bash
# Every preset of fl-serverd --help runs three rounds through real daemons with one client killed in the
# middle, ends with finite models that beat chance by far, and its byte counters are the formulas'.
#   test_presets.sh [NAME…]     those presets only
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"

# --- a worker's part ---

model=5720 # dnn60 in float32: units of 60*20+20 and 20*10+10 numbers
units=2

# preset, selected, responders: the uplink bytes of a round where all that were selected answered;
# nothing where the updates decide
formula() {
  local k=$2 r=$3 n sent feedback=0
  n=$(awk -v k="$k" 'BEGIN { n = int(0.2 * k + 0.5); print n < 1 ? 1 : n }')
  case "$1" in
    lean|fedadp) return ;;
    local_only) sent=0 ;;
    *fedldf*|random_layer|hdfl|*mcsa*|*fedamp|pfedme) sent=$n ;;
    *) sent=$r ;;
  esac
  case "$1" in *scaffold*) sent=$((2 * sent)) ;; esac
  case "$1" in *fedldf*) feedback=$((4 * units * r)) ;; esac
  case "$1" in igfl_ta) feedback=$((8 * r)) ;; esac
  echo $((sent * model + feedback))
}
# preset, selected: the downlink bytes of a late round; nothing where mixtures decide
down_formula() {
  case "$1" in
    fedmcsa_mean) echo $(($2 * model)) ;;
    *mcsa*|*fedamp|local_only) return ;;
    *scaffold*|*igfl_c|igfl|igfl_sa|igfl_ta) echo $((2 * $2 * model)) ;;
    *) echo $(($2 * model)) ;;
  esac
}
personal() {
  case "$1" in *mcsa*|*fedamp|pfedme|local_only|per_fedavg|*+ft) return 0 ;; esac
  return 1
}

preset() { # name
  local algorithm=$1 name=p-${1//+/-} i key want lines=()
  # AdaFL's schedule and the fraction of FedLDF are for more clients than five.
  case "$algorithm" in
    *adafl*|dyn_fedavg|lean) lines=("strategy: {fraction: {start: 1, end: 1}}") ;;
    *fedldf*|random_layer|hdfl|fedadp) lines=("strategy: {fraction: {fraction: 1}}") ;;
  esac
  write_server "$name" "rounds: 3" "model: {preset: dnn60}" "algorithm: $algorithm" \
    "training: {epochs: 5, learning_rate: 0.05}" "evaluation: {every: 1, clients: yes}" \
    "round: {start_clients: 4, lost_grace: 200ms, retry: 50ms}" "${lines[@]}"
  start_server "$name" || { note_failure "$algorithm: fl-serverd does not start"; tail -n 3 "$dir/$name.log"; return; }
  for i in 0 1 2 3 4; do
    start_client "$name-$i" '' "name: c$i" "data: {path: \"$dir/data/client-00$i\", validation: 0.25}"
  done
  wait_for "a round of $algorithm has begun" grep -q -- "-> TRAINING" "$dir/$name.log"
  wait_for "c4 takes part" grep -q "client 'c4' joined" "$dir/$name.log"
  kill_hard "$name-4"
  wait_for "three rounds of $algorithm" at_round "$name" 3
  ctl "$name" rounds --json >"$dir/$name.json"
  check "$algorithm: the model is exported" ctl "$name" export --output "$dir/$name.safetensors"
  check "$algorithm: the model is finite" finite "$dir/$name.safetensors"
  equal "$algorithm: each round was committed once" "1 2 3" \
    "$(json '" ".join(str(r["round"]) for r in d)' <"$dir/$name.json")"
  key=accuracy
  personal "$algorithm" && key=personal_accuracy
  check "$algorithm: $key beats chance ($(json "[r['$key'] for r in d]" <"$dir/$name.json"))" \
    json "max(r['$key'] or 0 for r in d) > 0.3" <"$dir/$name.json"
  # Formulas of rounds where nobody was lost; there is one, for c4 stays away.
  read -r k r up full down <<<"$(json '"%d %d %d %d %d" % next((r["selected"], r["responders"], r["uplink_bytes"],
    r["uplink_bytes_full"], r["downlink_bytes"]) for r in reversed(d) if r["selected"] == r["responders"])' <"$dir/$name.json")"
  equal "$algorithm: bytes of full uploads" $((r * model)) "$full"
  want=$(down_formula "$algorithm" "$k")
  [ -z "$want" ] || equal "$algorithm: downlink bytes of $k" "$want" "$down"
  want=$(formula "$algorithm" "$k" "$r")
  if [ -n "$want" ]; then
    equal "$algorithm: uplink bytes of $r of $k" "$want" "$up"
  else
    check "$algorithm: fewer bytes than full uploads ($up of $full)" test "$up" -gt 0 -a "$up" -lt $((full / 2))
  fi
  stop "$name"
  equal "$algorithm: exit code" 0 "$rc"
  for i in 0 1 2 3; do wait_end "$name-$i"; done
  rm -rf "${dir:?}/$name".*
}

if [ "${1:-}" = --worker ]; then
  shift
  # One client's samples shared out evenly: three rounds are enough to learn something.
  synthetic "$dir/one" 1 --seed 3
  check "the data is shared out" "$build/fl-data" split --input "$dir/one/client-000" --output "$dir/data" \
    --clients 5 --method iid --seed 1
  for algorithm in "$@"; do preset "$algorithm"; done
  finish
fi

# --- all of them ---

presets=("$@")
[ $# -gt 0 ] || mapfile -t presets < <(presets_of_help)
check "fl-serverd --help lists presets" test "${#presets[@]}" -ge 1
for algorithm in "${presets[@]}"; do
  has_line "docs/algorithms.md tells of $algorithm" "$srcdir/docs/algorithms.md" "\`$algorithm\`"
done
share_out "${presets[@]}"
finish
