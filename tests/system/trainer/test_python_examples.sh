#!/usr/bin/env bash
# The examples of client/python: an image script that trains by itself and its federated form, which is at
# most ten lines away; a text model; a table without PyTorch. Each federation of two learns.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
examples=$srcdir/client/python/examples
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"

# name, learning rate, script, arguments of client 0 … client 1: three rounds of two clients that stay
learns() {
  local name=$1 rate=$2 script=$3 k
  check "$name: the first model is the script's" "$python" -m fl_trainer save "$script" "$dir/$name.safetensors" "$4"
  write_server "$name" "rounds: 4" "model: {file: \"$dir/$name.safetensors\"}" "round: {start_clients: 2}" \
    "training: {learning_rate: $rate, momentum: 0.9, epochs: 2, batch_size: 16}" "evaluation: {clients: yes}" \
    "when_finished: stay"
  start_server "$name"
  for k in 0 1; do
    start_client "$name-$k" "" "trainer: command" \
      "command: {program: [\"$python\", \"$script\", \"${*:4+k:1}\"], persistent: yes}"
  done
  wait_for "four rounds of $name" at_round "$name" 4
  ctl "$name" rounds --last 0 --json >"$dir/$name.json"
  equal "$name: both are in all rounds" True \
    "$(json 'all(r["selected"] == r["responders"] == 2 for r in d)' <"$dir/$name.json")"
  equal "$name: clients evaluate what they get" True "$(json 'd[-1]["accuracy"] > 0.8' <"$dir/$name.json")"
  equal "$name: and it was not so before" True "$(json 'd[0]["received_accuracy"] < 0.8' <"$dir/$name.json")"
  for k in 0 1; do
    wait_end "$name-$k"
    equal "$name: client $k ends well" 0 "$rc"
  done
  stop "$name"
}

### A table, in plain numpy
learns tabular 0.1 "$examples/tabular_federated.py" 1 2

"$python" -c 'import torch' 2>/dev/null || { echo "skipped: $python has no torch: two of three examples"; finish; }

### Pictures: a script that is there
"$python" - "$dir" <<'TEXT'
import sys
import numpy as np
draw = np.random.default_rng(7)
for folder, n in (("a", 320), ("b", 320)):
    import os
    os.makedirs(f"{sys.argv[1]}/{folder}")
    for part, count in (("train", n), ("test", 200)):
        y = draw.integers(0, 10, count)
        x = draw.normal(size=(count, 8, 8)).astype("float32") * 0.5
        for i, label in enumerate(y):  # a bright square at one of ten places
            x[i, 2 * (label // 4):2 * (label // 4) + 2, 2 * (label % 4):2 * (label % 4) + 2] += 3
        np.save(f"{sys.argv[1]}/{folder}/{part}-x.npy", x)
        np.save(f"{sys.argv[1]}/{folder}/{part}-y.npy", y)
TEXT
check "the script trains by itself" "$python" "$examples/image.py" "$dir/a"
added=$(diff "$examples/image.py" "$examples/image_federated.py" | grep -c '^> .')
check "its federated form has at most ten other lines ($added)" test "$added" -ge 1 -a "$added" -le 10
learns image 0.05 "$examples/image_federated.py" "$dir/a" "$dir/b"

### Text
learns text 0.1 "$examples/text_federated.py" 1 2
finish
