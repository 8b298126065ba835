#!/usr/bin/env bash
# fl-clientd --export-model: beside running daemons a personal model is written as flctl export writes the
# global one; norms that stay on the client are put into a global model; where none is kept it says so.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3

# Tensors with shapes, metadata, and a digest of the numbers of a safetensors file.
cat >"$dir/show.py" <<'END'
import hashlib, json, struct, sys

with open(sys.argv[1], "rb") as f:
    head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    data = f.read()
meta = head.pop("__metadata__")
part = sys.argv[2]
if part == "tensors":
    print(sorted((k, v["dtype"], v["shape"], v["data_offsets"]) for k, v in head.items()))
elif part == "data":
    print(hashlib.sha256(data).hexdigest())
elif part == "moved":
    other = open(sys.argv[3], "rb").read()[-len(data):]
    print(sorted(k for k, v in head.items() if data[slice(*v["data_offsets"])] != other[slice(*v["data_offsets"])]))
else:
    print(meta.get(part, "-"))
END
show() { "$python" "$dir/show.py" "$@"; }
clientd=$build/fl-clientd

federation() { # name, model, lines…
  local name=$1 model=$2 i
  shift 2
  write_server "$name" "rounds: 3" "model: $model" "training: {epochs: 1, batch_size: 10, learning_rate: 0.05}" \
    "round: {start_clients: 3}" "when_finished: stay" "$@"
  start_server "$name"
  for i in 0 1 2; do
    start_client "$name-$i" "$dir/data/client-00$i" "name: c$i" "exit_when_done: no"
  done
  wait_for "three rounds of $name" at_round "$name" 3
  check "$name: flctl export" ctl "$name" export --output "$dir/$name.safetensors"
}
over() { stop "$1-0"; stop "$1-1"; stop "$1-2"; stop "$1"; }

### Personal models
federation own '{preset: dnn60}' "algorithm: local_only"
for i in 0 1; do
  says "client $i" 0 "the personal model of round 3 in 'integ'" "$clientd" --export-model "$dir/own-$i.safetensors" "$dir/own-$i.yaml"
done
equal "the tensors are those of flctl export" "$(show "$dir/own-0.safetensors" tensors)" "$(show "$dir/own.safetensors" tensors)"
equal "its round" 3 "$(show "$dir/own-0.safetensors" round)"
equal "its client" c1 "$(show "$dir/own-1.safetensors" client)"
check "each client has its own" test "$(show "$dir/own-0.safetensors" data)" != "$(show "$dir/own-1.safetensors" data)"
check "which is not the global one" test "$(show "$dir/own-0.safetensors" data)" != "$(show "$dir/own.safetensors" data)"
over own
says "after the end" 0 "of round 3" "$clientd" --export-model "$dir/again.safetensors" "$dir/own-0.yaml"
check "it is the same" cmp "$dir/again.safetensors" "$dir/own-0.safetensors"
says "no folder" 2 "expected one configuration file" "$clientd" --export-model "$dir/x.safetensors"
says "with another command" 2 "--export-model can be combined with --model only" "$clientd" --export-model "$dir/x.safetensors" --json "$dir/own-0.yaml"
says "not a file" 1 "is not a regular file" "$clientd" --export-model "$dir/data" "$dir/own-0.yaml"
check "nothing else is left beside it" test ! -e "$dir/own-0.safetensors.tmp"

### One model for all
federation one '{preset: dnn60}' "algorithm: fedavg"
says "fedavg keeps none" 4 "export it with flctl export" "$clientd" --export-model "$dir/x.safetensors" "$dir/one-0.yaml"
check "nothing is written" test ! -e "$dir/x.safetensors"
over one

### Norms that stay
federation norms '{norm: local, input: [60], layers: [dense 20, bn, relu, dense 10]}' "algorithm: fedavg"
says "norms alone are no model" 5 "with --model FILE" "$clientd" --export-model "$dir/x.safetensors" "$dir/norms-0.yaml"
says "in the global model" 0 "the given model with the local tensors of round 3" \
  "$clientd" --export-model "$dir/norms-0.safetensors" --model "$dir/norms.safetensors" "$dir/norms-0.yaml"
equal "only the norms are the client's own" "$(show "$dir/norms-0.safetensors" moved "$dir/norms.safetensors")" \
  "$(show "$dir/norms.safetensors" tensors | "$python" -c 'import ast, sys; print([t[0] for t in ast.literal_eval(sys.stdin.read()) if ".bn" in t[0] or "bn" in t[0] or "norm" in t[0] or "running" in t[0]])')"
over norms
finish
