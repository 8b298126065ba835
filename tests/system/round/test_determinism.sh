#!/usr/bin/env bash
# The same seed and the same responders give the same model bit for bit, whatever order clients join
# in and uploads arrive in, also when the server trains itself and is killed; another seed gives another model.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 5 --seed 3

all_but_one() { [ "$(grep -c "decision: accepted '" "$dir/$1.log")" -ge 4 ]; }

# run, clients: the server is killed while a round has all uploads but that of the first client
kill_in_round() {
  kill -STOP "${pid_of[$1-$2]}"
  ctl "$1" resume >"$dir/ctl.out"
  wait_for "four uploads of $1" all_but_one "$1"
  kill_hard "$1" 2>/dev/null
  kill -CONT "${pid_of[$1-$2]}"
  start_server "$1"
}

# run, seed, algorithm, the order in which clients are started: prints the digest of the model
run() {
  local name=$1 seed=$2 algorithm=$3 i
  shift 3
  write_server "$name" "rounds: 4" "log_level: debug" "seed: $seed" "model: {preset: dnn60}" "algorithm: $algorithm" \
    "strategy: {fraction: {${fraction:-fraction: 1}}${robust:-}}" "round: {start_clients: 5, min_clients: 5}" \
    "evaluation: {data: \"$dir/data/server\"}"
  start_server "$name"
  [ -z "${kill:-}" ] || ctl "$name" pause >"$dir/ctl.out"
  for i in "$@"; do
    start_client "$name-$i" "$dir/data/client-00$i" "name: c$i"
    # One after the other, so that the server meets them in this order.
    wait_for "c$i joins" grep -q "client 'c$i' joined" "$dir/$name.log"
  done
  [ -z "${kill:-}" ] || kill_in_round "$name" "$@"
  wait_for "the rounds of $name" at_round "$name" 4
  check "$name: the model is exported" ctl "$name" export --output "$dir/$name.safetensors"
  stop "$name"
  for i in "$@"; do wait_end "$name-$i"; done
}
same() { equal "$1" "$(tensors "$dir/$2.safetensors")" "$(tensors "$dir/$3.safetensors")"; }
differ() { [ "$(tensors "$dir/$1.safetensors")" != "$(tensors "$dir/$2.safetensors")" ]; }

for algorithm in fedavg fedavgm fedldf random_layer; do
  run "$algorithm-a" 1 "$algorithm" 0 1 2 3 4
  run "$algorithm-b" 1 "$algorithm" 3 1 4 0 2
  same "$algorithm: the order of joining does not matter" "$algorithm-a" "$algorithm-b"
done
run other 2 fedavg 0 1 2 3 4
check "another seed gives another model" differ fedavg-a other

### A part of the clients: the draw depends on the seed, not on who came first
fraction='fraction: 0.4'
run part-a 1 fedavg 0 1 2 3 4
run part-b 1 fedavg 4 3 2 1 0
same "the same clients are drawn" part-a part-b
fraction='start: 0.4, end: 0.6, step: 0.2, every: 2'
run attention-a 1 adafl 0 1 2 3 4
run attention-b 1 adafl 2 4 1 3 0
same "attention draws the same clients" attention-a attention-b

### The server trains a reference update in each round (robust: fltrust)
fraction='fraction: 1'
robust=', robust: {policy: fltrust, samples: 20}'
run trust-a 1 fedavg 0 1 2 3 4
kill=yes run trust-b 1 fedavg 2 4 1 3 0
same "a server that was killed trains the same bits" trust-a trust-b
check "what it trains has an effect" differ fedavg-a trust-a

finish
