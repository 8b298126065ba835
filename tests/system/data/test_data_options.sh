#!/usr/bin/env bash
# What fl-data does to pictures reaches the training: cropped, standardised and augmented CIFAR records
# through a server and clients, each of which tests on a part of its own.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
mkdir "$dir/in"
# Ten kinds of noisy pictures, told apart by their colours; 3073 bytes a record.
"$python" - "$dir/in" <<'PY' || skip "$python cannot make pictures"
import random, sys
r = random.Random(1)
for name, n in ("data_batch_1", 200), ("data_batch_2", 200), ("test_batch", 100):
    with open(f"{sys.argv[1]}/{name}.bin", "wb") as f:
        for i in range(n):
            c = i % 10
            f.write(bytes([c]))
            for level in c % 3, c // 3 % 3, c // 9:
                f.write(bytes((90 * level + b // 4) for b in r.randbytes(1024)))
PY
check "pictures are split" "$build/fl-data" split --input "$dir/in" --output "$dir/data" --clients 3 \
  --method device --rho 10 --crop 24 --standardise pixel --test-share 0.25
client_yaml() { echo "data: {path: \"$dir/data/client-00$1\"$2}"; }

write_server srv "rounds: 6" "algorithm: fedavg" "training: {epochs: 2, batch_size: 10, learning_rate: 0.01}" \
  "model: {input: [3, 24, 24], layers: [flatten, dense 10]}" \
  "strategy: {fraction: {fraction: 1}}" "round: {start_clients: 3}" \
  "evaluation: {every: 1, data: \"$dir/data/server\", clients: yes}"
start_server srv
start_client a '' "$(client_yaml 0 ', augment: flip_crop')"
start_client b '' "$(client_yaml 1 ', augment: flip_crop')"
start_client c '' "$(client_yaml 2 '')"
wait_for "six rounds" at_round srv 6
ctl srv rounds --last 0 --json >"$dir/rounds.json"
equal "the model learns, as the server sees it" True "$(json 'd[-1]["accuracy"] > 0.9' <"$dir/rounds.json")"
# 133 samples each, floor(0.75 x 133) to train on.
for c in a b c; do
  has_line "$c has both parts" "$dir/$c.log" "samples=99 values=1728 classes=10 test=34"
  wait_end "$c"
  equal "$c ends with the federation" 0 "$rc"
done
stop srv

### Vectors have no left and right
synthetic "$dir/syn" 1
write_client flat '' "data: {path: \"$dir/syn/client-000\", augment: flip_crop}"
says "vectors cannot be flipped" 5 "key 'data.augment': " "$build/fl-clientd" "$dir/flat.yaml"
has_line "which the message says" "$dir/says.out" "expected pictures to flip and crop, found samples of 60 x 1 x 1"
finish
