#!/usr/bin/env bash
# Classes without a sample are named: by fl-data split and inspect, fl-sim run, and fl-clientd at its start.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
trap end_all EXIT
cd "$dir" || exit 99

# labels…: a data set of 40 samples with these labels
make_set() {
  local folder=$1 part i
  shift
  mkdir "$folder"
  for part in train test; do
    for ((i = 0; i < 40; i++)); do
      local labels=("$@")
      echo "0.$((i % 10)),0.$((i * 7 % 10)),${labels[i % $#]}"
    done >"$folder/$part.csv"
  done
}
make_set gaps 3 7
make_set whole 0 1 2

"$build/fl-data" split --input gaps --output gaps.out --clients 2 >split.out 2>split.err
equal "fl-data split names them" "fl-data split: warning: no sample of 'gaps' has class 0 to 2, 4 to 6: labels are class numbers from 0 on, so 6 of 8 classes are empty; renumber the labels if this is not intended" "$(cat split.err)"
"$build/fl-data" split --input whole --output whole.out --clients 2 >split.out 2>split.err
equal "and says nothing where none is missing" "" "$(cat split.err)"
says "fl-data inspect" 0 "8 classes, 6 of them without a sample" "$build/fl-data" inspect gaps

sim() { # set, classes of the model
  printf '%s\n' "server:" "  algorithm: fedavg" "  model: {input: [2], layers: [dense $2]}" "data: {set: ./$1, clients: 2}" \
    "stop: {rounds: 1}" "sweep: {server.training.learning_rate: [0.1, 0.2]}" >"$1-$2.yaml"
  "$build/fl-sim" run "$1-$2.yaml" --quiet --out "$1-$2.results" >"$1-$2.out" 2>&1
}
sim gaps 8
equal "fl-sim names them once for all points" 1 "$(grep -c "no sample of any client has class 0 to 2, 4 to 6: .* 6 of 8 classes" gaps-8.out)"
sim whole 3
equal "nothing is missing" 0 "$(grep -c warning whole-3.out)"
sim whole 5
check "classes that only the model has" grep -q "has class 3 to 4: .* 2 of 5 classes of data and model" whole-5.out

write_server s "algorithm: fedavg" "model: {input: [2], layers: [dense 8]}" "round: {start_clients: 1}" "rounds: 1"
start_server s
start_client s-0 "$dir/gaps" "name: c0"
wait_for "the client has joined" in_log s-0 "joined federation"
check "fl-clientd names them" grep -q "no samples of class 0 to 2, 4 to 6 (6 of 8 classes are empty)" "$dir/s-0.log"
finish
