#!/usr/bin/env bash
# A model from a file of another program: its units by default and by patterns, what stays on clients
# (norm: local), through the daemons with programs that train.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

# file, tensors NAME:SHAPE[:TYPE]…: a safetensors file, numbers 0.01, 0.02, … in it
write_model() {
  "$python" - "$@" <<'PY'
import json, struct, sys
head, data, at = {}, b"", 0
for item in sys.argv[2:]:
    name, shape, *kind = item.split(":")
    dims = [int(d) for d in shape.split("x")]
    n = 1
    for d in dims:
        n *= d
    one = struct.pack("<%dq" % n, *range(n)) if kind else struct.pack(
        "<%df" % n, *[1.0 if "running_var" in name else 0.01 * (i + 1) for i in range(n)])
    head[name] = {"dtype": kind[0] if kind else "F32", "shape": dims, "data_offsets": [at, at + len(one)]}
    data += one
    at += len(one)
text = json.dumps(head).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
}
# file, tensor: its numbers
numbers() {
  "$python" - "$1" "$2" <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
(n,) = struct.unpack("<Q", raw[:8])
a, b = json.loads(raw[8 : 8 + n])[sys.argv[2]]["data_offsets"]
print([round(v, 4) for v in struct.unpack("<%df" % ((b - a) // 4), raw[8 + n + a : 8 + n + b])])
PY
}
write_model "$dir/net.safetensors" f.0.weight:3x2 f.0.bias:3 f.1.weight:3 f.1.bias:3 f.1.running_mean:3 \
  f.1.running_var:3 f.1.num_batches_tracked:1:I64 f.position_ids:4:I64 h.0.a.weight:2x2 h.0.ln.weight:2 \
  h.1.a.weight:2x2 h.1.ln.weight:2 out.weight:2x3
# Adds to each tensor, so that every client moves it elsewhere; notes what it was handed.
cat >"$dir/adds.py" <<'PY'
import json, struct, sys
task = json.load(open(sys.argv[1]))
step = float(sys.argv[2])
raw = open(task["model"], "rb").read()
(n,) = struct.unpack("<Q", raw[:8])
head = json.loads(raw[8 : 8 + n])
a, b = head["f.1.running_mean"]["data_offsets"]
with open(sys.argv[3], "a") as f:
    print(round(struct.unpack("<f", raw[8 + n + a : 8 + n + a + 4])[0], 4), file=f)
values = struct.unpack("<%df" % ((len(raw) - 8 - n) // 4), raw[8 + n :])
with open(task["result_model"], "wb") as f:
    f.write(raw[: 8 + n] + struct.pack("<%df" % len(values), *[v + step for v in values]))
json.dump({"samples": 10, "steps": 1, "train_loss": 1.0}, open(task["result"], "w"))
PY
adds() { # client, step
  start_client "$1" "" "exit_when_done: no" "trainer: command" \
    "command: {program: [\"$python\", \"$dir/adds.py\", \"{task}\", \"$2\", \"$dir/$1.seen\"], samples: 10, time_limit: 1m}"
}
checked() { "$build/fl-serverd" --check-config "$dir/$1.yaml"; }
table() { checked "$1" | sed -n '/^layer /,$p' | sed 1d | awk '{ printf "%s%s:%s", sep, $1, $2; sep = " " }'; }
model="file: \"$dir/net.safetensors\""

### Units
write_server plain "model: {$model}"
equal "a batch-norm is in the unit of its layer, whole numbers in none" \
  "f.0:6 h.0.a:1 h.0.ln:1 h.1.a:1 h.1.ln:1 out:1" "$(table plain)"
write_server blocks "model:" "  $model" "  units:" "    - h.{}.*" "    - ends=out.*"
equal "a pattern makes a unit for each text of its {}" "f.0:6 h.0:2 h.1:2 ends:1" "$(table blocks)"
bad() { # name, line of the file, text, model section
  write_server slip "${@:4}"
  says "$1" 3 "fl-serverd: $dir/slip.yaml:$2: key 'model.$3" "$build/fl-serverd" --check-config "$dir/slip.yaml"
}
bad "a pattern that matches nothing" 8 "units[1]': 'g.*' matches none of the 11 tensors" \
  "model:" "  $model" "  units: [h.*," "    g.*]"
bad "one unit from two patterns" 5 "units[1]': unit 'a' is also made by an earlier pattern" \
  "model: {$model, units: [a=h.*, a=out.*]}"
bad "units of a network of ours" 5 "units': units apply only to a model from a file" \
  "model: {preset: dnn60, units: [fc*]}"
bad "what stays without norm: local" 5 "local': expected 'norm: local' with it" \
  "model: {$model, local: [\"*.ln.*\"]}"
bad "what stays and is not there" 5 "local': '*.gn.*' matches none of the 11 tensors" \
  "model: {$model, norm: local, local: \"*.gn.*\"}"
bad "all stays" 5 "norm': expected at least one shared tensor; all tensors would stay on clients" "model: {$model, norm: local, local: [\"*\"]}"
bad "personal models have their own" 5 "norm': expected norm: shared; with 'fedamp' each client keeps its own model" \
  "model: {$model, norm: local}" "algorithm: fedamp"

### A folder that was begun with other units goes on with them
# A batch-norm by itself.
write_server begun "model: {$model, units: [f.1.*, f.0.*]}" "round: {start_clients: 1}" "rounds: 4"
start_server begun
adds one 0.5
wait_for "a round" at_round begun 1
stop begun
write_server begun "model: {$model}" "round: {start_clients: 1}" "rounds: 4"
equal "its units stand" "f.0:2 f.1:4 h.0.a:1 h.0.ln:1 h.1.a:1 h.1.ln:1 out:1" "$(table begun)"
start_server begun
has_line "and that is said" "$dir/begun.log" "created with another division into layers than today's default: its 7 layers stay in use"
has_line "what does not travel is said" "$dir/begun.log" "model.file: 'f.position_ids' holds whole numbers"
wait_for "the last round" at_round begun 4
lacks_line "no change of the configuration" "$dir/begun.log" "configuration changed"
stop begun
write_server begun "model: {$model, units: [f.*]}" "round: {start_clients: 1}" "rounds: 4"
says "other units want another folder" 4 "belongs to another model (7 units" "$build/fl-serverd" "$dir/begun.yaml"
stop one

### norm: local
write_server local "model: {$model, norm: local, local: [\"*.ln.*\"]}" "round: {start_clients: 2}" "rounds: 3" \
  "when_finished: stay"
start_server local
adds low 0.5
adds high 2
wait_for "three rounds" at_round local 3
check "the model is exported" ctl local export --output "$dir/local.safetensors"
for t in f.1.weight f.1.bias f.1.running_mean f.1.running_var h.0.ln.weight h.1.ln.weight; do
  equal "the server's $t is the first one" "$(numbers "$dir/net.safetensors" "$t")" "$(numbers "$dir/local.safetensors" "$t")"
done
equal "the rest is the mean: 3 rounds of (0.5 + 2) / 2" "[3.76, 3.77, 3.78]" "$(numbers "$dir/local.safetensors" f.0.bias)"
equal "one goes on from its own" "0.01 0.51 1.01" "$(tr '\n' ' ' <"$dir/low.seen" | sed 's/ $//')"
equal "and the other" "0.01 2.01 4.01" "$(tr '\n' ' ' <"$dir/high.seen" | sed 's/ $//')"

### It survives both sides
kill_hard low
stop local
write_server local "model: {$model, norm: local, local: [\"*.ln.*\"]}" "round: {start_clients: 2}" "rounds: 4" \
  "when_finished: stay"
start_server local
run_client low
wait_for "a fourth round" at_round local 4
equal "a client that was killed has its own" "1.51" "$(tail -n 1 "$dir/low.seen")"
equal "the other, too" "6.01" "$(tail -n 1 "$dir/high.seen")"
says "going back would lose it" 1 "--force" "$build/flctl" --state-dir "$dir/local.state" rollback 2

### A running federation changes its mind, and back
stop local
write_server local "model: {$model}" "round: {start_clients: 2}" "rounds: 5" "when_finished: stay"
start_server local
has_line "the change is told" "$dir/local.log" "configuration changed: model.norm 'local *.ln.*' -> '', effective from round 5"
wait_for "a fifth round" at_round local 5
equal "both begin with what the server has" "0.01 0.01" "$(tail -n 1 "$dir/low.seen") $(tail -n 1 "$dir/high.seen")"
check "the model is exported again" ctl local export --output "$dir/shared.safetensors"
equal "and it is averaged" "[1.26, 1.27, 1.28]" "$(numbers "$dir/shared.safetensors" f.1.bias)"
stop local
finish
