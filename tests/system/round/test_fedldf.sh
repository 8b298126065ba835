#!/usr/bin/env bash
# Layer-wise uploads through the daemons: bytes to the byte, the identity with FedAvg bit for bit.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 5 --seed 3

# server, lines of YAML…: a federation of five clients to its end; the model in NAME.safetensors
federation() {
  local name=$1 i
  shift
  write_server "$name" "model: {preset: dnn60}" "round: {start_clients: 5}" "$@"
  start_server "$name"
  for i in 0 1 2 3 4; do start_client "$name-$i" "$dir/data/client-00$i" "name: c$i"; done
  wait_for "the rounds of $name" at_round "$name" 3
  ctl "$name" rounds --last 0 --json >"$dir/$name.json"
  check "$name: the model is exported" ctl "$name" export --output "$dir/$name.safetensors"
  check "$name: the model is finite" finite "$dir/$name.safetensors"
  stop "$name"
  for i in 0 1 2 3 4; do wait_end "$name-$i"; done
}
fraction='fraction: {fraction: 1}'

### Bytes. dnn60: units of 60*20+20 = 1220 and 20*10+10 = 210 numbers, 5720 bytes in float32.
full=5720
units=2
federation fedavg "rounds: 3"
equal "fedavg: five whole models a round" "$((5 * full)) 0" \
  "$(json '" ".join(sorted({"%d %d" % (r["uplink_bytes"], r["feedback_bytes"]) for r in d}))' <"$dir/fedavg.json")"
for n in 1 2 4; do
  federation "ldf$n" "rounds: 3" "algorithm: fedldf" "strategy: {$fraction, upload: {n: $n}}"
  equal "fedldf, n=$n of 5: n models and 4 bytes per unit and client" \
    "$((n * full + 5 * units * 4)) $((5 * units * 4)) $((5 * full)) 5" \
    "$(json '" ".join(sorted({"%d %d %d %d" % (r["uplink_bytes"], r["feedback_bytes"], r["uplink_bytes_full"], r["responders"]) for r in d}))' <"$dir/ldf$n.json")"
done
equal "n/K = 0.2 sends 20 % of fedavg, and the feedback" "$((5 * full / 5 + 5 * units * 4))" \
  "$(json 'd[0]["uplink_bytes"]' <"$dir/ldf1.json")"
federation share "rounds: 3" "algorithm: fedldf" "strategy: {$fraction, upload: {share: 0.2}}"
equal "share 0.2 of 5 is n=1" "$(tensors "$dir/ldf1.safetensors")" "$(tensors "$dir/share.safetensors")"
federation random "rounds: 3" "algorithm: random_layer" "strategy: {$fraction, upload: {n: 1}}"
equal "random_layer: the same without feedback" "$full 0" \
  "$(json '"%d %d" % (d[-1]["uplink_bytes"], d[-1]["feedback_bytes"])' <"$dir/random.json")"
differ() { [ "$(tensors "$1")" != "$(tensors "$2")" ]; }
check "one client per layer is another model than all of them" \
  differ "$dir/ldf1.safetensors" "$dir/fedavg.safetensors"

### n = K is FedAvg
federation all "rounds: 3" "algorithm: fedldf" "strategy: {$fraction, upload: {n: 5}}"
equal "fedldf with n = K gives the model of fedavg bit for bit" \
  "$(tensors "$dir/fedavg.safetensors")" "$(tensors "$dir/all.safetensors")"
federation allrandom "rounds: 3" "algorithm: random_layer" "strategy: {$fraction, upload: {n: 5}}"
equal "random_layer with n = K too" \
  "$(tensors "$dir/fedavg.safetensors")" "$(tensors "$dir/allrandom.safetensors")"
finish
