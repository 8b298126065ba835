#!/usr/bin/env bash
# A program that trains, tried without a server: a good one is found good, with figures; each thing that a
# program can do wrong is found, and said with what was expected. The scripts of --init-trainer run as they are.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
clientd=$build/fl-clientd
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

client() { # name, program…: its configuration; $more: further keys of command
  local name=$1 list='' a
  shift
  for a in "$@"; do list+="${list:+, }\"$a\""; done
  cat >"$dir/$name.yaml" <<YAML
server: "unix:$dir/nobody"
name: $name
state_dir: $dir/$name.state
insecure: yes
trainer: command
command: {program: [$list], ${more:-persistent: yes}}
YAML
}
try() { # name of what is tried, arguments…: exit code into $rc
  local name=$1
  shift
  rc=0
  timeout -k 5 "$patience" "$clientd" --try-trainer "$dir/$name.yaml" "$@" >"$dir/$name.out" 2>"$dir/$name.log" || rc=$?
}
model=$dir/tried.safetensors
"$python" "$srcdir/tests/system/tried.py" model "$model" || exit 99
tried() { # mode
  client "$1" "$(command -v "$python")" "$srcdir/tests/system/tried.py" "$1"
  try "$1" --model "$model"
}

### A good one
tried good
equal "a good program" 0 "$rc"
has_line "what it says of itself" "$dir/good.out" "software='tried try' samples=10 test_samples=4"
has_line "what was trained" "$dir/good.out" "ok        train: steps=1 samples=10 loss=0.5"
has_line "what would be sent" "$dir/good.out" "a full upload has 36 B"
# 0.01 of 0, 0.5 … 4, which are the model.
has_line "the norm of the change" "$dir/good.out" "change=0.0714143"
has_line "it repeats itself" "$dir/good.out" "ok        repeatable"
has_line "its part" "$dir/good.out" "ok        part gradient: zeros change nothing, and other values change the model"
has_line "it can be cancelled" "$dir/good.out" "ok        cancel: answered"
has_line "it evaluates" "$dir/good.out" "ok        evaluate: correct=3 of 4"
has_line "another model is refused" "$dir/good.out" "ok        other model: refused"
has_line "it ends" "$dir/good.out" "ok        bye: exited with code 0"
lacks_line "its stdout is not in ours" "$dir/good.out" "this is no answer"
has_line "but on stderr" "$dir/good.log" "this is no answer"
try good --model "$model" --json
equal "as JSON" 0 "$rc"
equal "with figures" True "$(json 'd["software"] == "tried try" and d["good"] and d["repeatable"] and d["upload_bytes"] == 36 \
  and d["hand_over_ms"] >= d["task_ms"] >= 0 and d["start_ms"] >= 0' <"$dir/good.out")"
equal "and checks" "['ok']" "$(json 'sorted({c["result"] for c in d["checks"]})' <"$dir/good.out")"
try good --model "$model" --learning-rate 0.02
has_line "twice the rate is twice the change" "$dir/good.out" "change=0.14282"
try good
equal "no model" 5 "$rc"
has_line "says how to make one" "$dir/good.out" "python3 -m fl_trainer save SCRIPT.py FILE.safetensors"

### What a program can do wrong
wrong() { # mode, line
  tried "$1"
  equal "$1" 5 "$rc"
  has_line "$1 is said" "$dir/$1.out" "$2"
}
wrong prints "FAILED    start: '$(command -v "$python")' ended with exit code 0; 'ready' was expected"
wrong wrong_id "FAILED    train: '$(command -v "$python")' broke the trainer protocol: it sent 'done' with the id 2; 'done' of 'train' 1 was expected"
wrong exits "no space left on device"
wrong nan "FAILED    train: expected finite numbers, found others in layer 'fc'"
wrong strict "FAILED    unknown field: expected that the field is ignored, found"
wrong idle_part "the part is declared but not implemented"
wrong bad_part "FAILED    part gradient: expected that zeros change nothing"
wrong writes "PermissionError"
wrong any_model "FAILED    other model: expected 'failed' for a model whose tensor 'fc.weight' has another shape"
wrong samples "FAILED    evaluate: expected the 4 test samples of 'ready', found 5"
wrong code "FAILED    bye: expected exit code 0, found"
more="persistent: yes, cancel_grace: 200ms" wrong deaf "FAILED    cancel: expected 'canceled' or 'done', found"
more="persistent: yes, start_limit: 100ms" wrong silent "did not answer 'start' within 100 ms"
tried stays
equal "a program that has to be ended costs nothing" 0 "$rc"
has_line "but it is said" "$dir/stays.out" "warning   bye: expected exit code 0 within 2000 ms"
tried random
equal "a training that cannot be repeated is worth a warning" 0 "$rc"
has_line "which is said" "$dir/random.out" "warning   repeatable"

tried frozen
equal "so is a tensor that is sent and never changes" 0 "$rc"
has_line "with its bytes" "$dir/frozen.out" "warning   unchanged: training does not change 1 tensors with 12 B of the model's 36 B, the first is 'fc.bias'"

### What cannot be tried
more="samples: 1" client task "$(command -v "$python")" "{task}"
says "a program for each task" 3 "persistent: yes" "$clientd" --try-trainer "$dir/task.yaml" --model "$model"
client none "$dir/none"
says "no such program" 5 "$dir/none" "$clientd" --try-trainer "$dir/none.yaml" --model "$model"
says "no such model" 5 "cannot open" "$clientd" --try-trainer "$dir/good.yaml" --model "$dir/none.safetensors"
says "an option without --try-trainer" 2 "require --try-trainer" "$clientd" --json "$dir/good.yaml"
says "no epochs" 2 "1 to 1000000" "$clientd" --try-trainer --epochs 0 "$dir/good.yaml"

### The scripts to begin with
for kind in numpy pytorch; do
  script=$dir/trainer_$kind.py
  says "--init-trainer $kind" 0 "fl-clientd --try-trainer CONFIG.yaml --model first.safetensors" "$clientd" --init-trainer "$kind" "$script"
  check "$kind: the template itself" cmp "$srcdir/client/python/templates/$kind.py" "$script"
  says "$kind: what is there stays" 1 "File exists" "$clientd" --init-trainer "$kind" "$script"
  if ! "$python" -c "import numpy, ${kind#py}" 2>/dev/null; then
    echo "not tried: $kind is not there for $python"
    continue
  fi
  says "$kind: alone" 0 "after training" "$python" "$script"
  check "$kind: its model" "$python" -m fl_trainer save "$script" "$dir/$kind.safetensors"
  client "$kind" "$(command -v "$python")" "$script"
  try "$kind" --model "$dir/$kind.safetensors"
  equal "$kind: tried" 0 "$rc"
  has_line "$kind: bit for bit" "$dir/$kind.out" "ok        repeatable"
  has_line "$kind: fits before an evaluation" "$dir/$kind.out" "ok        adapt"
done
says "a name of a package" 2 "would hide the package" "$clientd" --init-trainer numpy "$dir/numpy.py"
says "another kind" 2 "expected pytorch or numpy, found 'java'" "$clientd" --init-trainer java "$dir/java.py"
finish
