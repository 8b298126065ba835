#!/usr/bin/env bash
# 'instructions' forces the kernels: what the processor lacks is refused where it is read, each set that it has
# trains, and neither the first model, nor a folder of checkpoints, nor its order of parameters knows which it was.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
synthetic "$dir/data" 2 --seed 3

sets=(portable reference)
if [ "$(uname -m)" = x86_64 ] && grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo; then
  sets+=(avx2)
  grep -qw avx512f /proc/cpuinfo && sets+=(avx512)
fi
lacks() { [[ " ${sets[*]} " != *" $1 "* ]]; }

### What is refused
write_server srv "model: {preset: dnn60}" "instructions: avx3"
address=unix:$dir/none.sock
write_client cli "$dir/data/client-000" "instructions: avx3"
for d in fl-serverd:srv fl-clientd:cli; do
  file=$dir/${d#*:}.yaml
  line=$(grep -n '^instructions' "$file" | cut -d: -f1)
  says "a name that is none" 3 "$file:$line: key 'instructions': " "$build/${d%:*}" --check-config "$file"
  has_line "the names that there are" "$dir/says.out" "auto, avx512, avx2, portable, reference"
  for set in avx512 avx2 portable reference auto; do
    sed -i "s/^instructions:.*/instructions: $set/" "$file"
    if [ "$set" != auto ] && lacks $set; then
      says "$set is not there" 3 "this processor does not support $set instructions; supported: auto" "$build/${d%:*}" --check-config "$file"
    else
      check "$set is there" "$build/${d%:*}" --check-config "$file"
    fi
  done
done
says "fl-sim refuses a name" 2 "supported by this processor: auto" "$build/fl-sim" run none.yaml --instructions avx3

# A processor without them, played.
played=$(command -v qemu-x86_64-static || command -v qemu-x86_64 || true)
if [ "$(uname -m)" = x86_64 ] && [ -n "$played" ] && ! grep -q 'fsanitize' "$build/Makefile"; then
  old=("$played" -cpu Nehalem)
  for d in fl-serverd:srv fl-clientd:cli; do
    file=$dir/${d#*:}.yaml
    line=$(grep -n '^instructions' "$file" | cut -d: -f1)
    for set in avx512 avx2; do
      sed -i "s/^instructions:.*/instructions: $set/" "$file"
      for how in "--check-config" ""; do
        # shellcheck disable=SC2086
        says "$set on a processor without it" 3 \
          "$file:$line: key 'instructions': this processor does not support $set instructions; supported: auto, portable, reference" \
          "${old[@]}" "$build/${d%:*}" $how "$file"
      done
    done
    case $d in
      *:srv) documented instructions-lacking "${old[@]}" "$build/${d%:*}" "$file" ;;
      *) documented client-instructions-lacking "${old[@]}" "$build/${d%:*}" "$file" ;;
    esac
    sed -i "s/^instructions:.*/instructions: auto/" "$file"
    check "auto is what it has" "${old[@]}" "$build/${d%:*}" --check-config "$file"
  done
  says "fl-sim too" 2 "this processor does not support avx2 instructions" "${old[@]}" "$build/fl-sim" run none.yaml --instructions avx2
else
  echo "no processor without AVX is played: needs qemu-user-static, x86-64 and a build without sanitizers"
fi

### The first model, and the folder that has it
cnn='model: {input: [3, 8, 8], layers: [conv 32 3x3 pad 1, bn, relu, maxpool 2, conv 48 5x5 pad 2, relu, conv 7 3x3 stride 2, flatten, dense 40, relu, dense 10]}'
for set in "${sets[@]}"; do
  write_server "first-$set" "$cnn" "seed: 5" "instructions: $set" "round: {start_clients: 2}"
  start_server "first-$set"
  has_line "the server says it" "$dir/first-$set.log" "kernels=$set "
  check "$set: the first model" ctl "first-$set" export --output "$dir/first-$set.safetensors"
  stop "first-$set"
  check "$set: the same bits" cmp <(tensors "$dir/first-portable.safetensors") <(tensors "$dir/first-$set.safetensors")
  # Begun with one, gone on with another.
  sed -i "s/^instructions:.*/instructions: portable/" "$dir/first-$set.yaml"
  start_server "first-$set"
  check "$set: its folder goes on" ctl "first-$set" export --output "$dir/again-$set.safetensors"
  stop "first-$set"
  check "$set: with the same model" cmp "$dir/first-$set.safetensors" "$dir/again-$set.safetensors"
done

### Each of them trains, and to the same model but for the last bits
near() { # two files: the same tensors, and no number further from its like than 1e-4
  "$python" - "$1" "$2" <<'PY'
import array, json, struct, sys
def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    (n,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8:8 + n])
    head.pop("__metadata__", None)
    return head, array.array("f", raw[8 + n:])
(ha, a), (hb, b) = read(sys.argv[1]), read(sys.argv[2])
assert ha == hb and len(a) == len(b) > 0
far = max(abs(x - y) for x, y in zip(a, b))
print("largest difference", far)
assert far < 1e-4
PY
}
for set in "${sets[@]}"; do
  write_server "run-$set" "rounds: 2" "model: {preset: dnn60}" "instructions: $set" "round: {start_clients: 2}" \
    "evaluation: {clients: yes}"
  start_server "run-$set"
  for i in 0 1; do
    start_client "c$i-$set" "$dir/data/client-00$i" "name: c$i" "instructions: $set"
    wait_for "client $i joins" grep -q "client 'c$i' joined" "$dir/run-$set.log"
  done
  wait_for "two rounds with $set" at_round "run-$set" 2
  check "$set: the model" ctl "run-$set" export --output "$dir/run-$set.safetensors"
  stop "run-$set"
  for i in 0 1; do
    wait_end "c$i-$set"
    equal "$set: the client ends well" 0 "$rc"
    has_line "the client says it, once" "$dir/c$i-$set.log" "kernels=$set "
    equal "$set: once" 1 "$(grep -c 'kernels=' "$dir/c$i-$set.log")"
  done
  check "$set: the model is near" near "$dir/run-portable.safetensors" "$dir/run-$set.safetensors"
done
# What is logged is what computes: sums of other kernels have other last bits.
differ() { [ "$(tensors "$1")" != "$(tensors "$2")" ]; }
lacks avx2 || check "AVX2 is not the reference" differ "$dir/run-avx2.safetensors" "$dir/run-reference.safetensors"

### fl-sim
cat >"$dir/e.yaml" <<TEXT
server: {algorithm: fedavg, model: {input: [64], layers: [dense 32, relu, dense 10]}, training: {epochs: 1, batch_size: 20, learning_rate: 0.05}}
data: {set: $srcdir/deploy/data/optdigits, method: iid, clients: 10, seed: 3}
stop: {rounds: 2}
TEXT
models=base/seed-1/state/server/models/round
for set in "${sets[@]}"; do
  check "fl-sim with $set" "$build/fl-sim" run "$dir/e.yaml" --quiet --keep-state --instructions "$set" --out "$dir/sim-$set"
  equal "its run.json says it" "$set" "$(json 'd["runs"][-1]["machine"]["kernels"]' <"$dir/sim-$set/run.json")"
  check "$set: its first model is the same" cmp \
    <(tensors "$dir/sim-portable/$models-000000.safetensors") <(tensors "$dir/sim-$set/$models-000000.safetensors")
  check "$set: its last one is near" near "$dir/sim-portable/$models-000002.safetensors" "$dir/sim-$set/$models-000002.safetensors"
done
lacks avx2 || check "and not the reference's" differ "$dir/sim-avx2/$models-000002.safetensors" "$dir/sim-reference/$models-000002.safetensors"
finish
