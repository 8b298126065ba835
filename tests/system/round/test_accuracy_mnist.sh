#!/usr/bin/env bash
# MNIST, IID over ten client processes, MLP 784-200-200-10, E=1, B=10, lr 0.05, FedAvg: at least
# 97.0 % of the 10 000 test images within 15 rounds. Ends as soon as that is reached.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
mnist=${FL_DATA_DIR:-../shared/data}/mnist
[ -d "$mnist" ] || skip "no MNIST in $mnist (set FL_DATA_DIR)"
wanted=0.97 rounds=15

check "MNIST is split" "$build/fl-data" split --input "$mnist" --output "$dir/data" --clients 10 \
  --method iid --seed 1 || finish
write_server srv "rounds: $rounds" "model: {preset: mlp200}" "algorithm: fedavg" \
  "training: {epochs: 1, batch_size: 10, learning_rate: 0.05}" "round: {start_clients: 10}" \
  "evaluation: {every: 1, data: \"$dir/data/server\"}"
start_server srv
for i in 0 1 2 3 4 5 6 7 8 9; do start_client "c$i" "$dir/data/client-00$i"; done

reached() { # the accuracy, or the last round
  [ "$(ctl srv rounds --last 0 --json | json "any(r['accuracy'] >= $wanted for r in d)")" = True ] ||
    at_round srv "$rounds"
}
wait_for "accuracy $wanted" reached
ctl srv rounds
equal "at least $wanted within $rounds rounds" True \
  "$(ctl srv rounds --last 0 --json | json "any(r['accuracy'] >= $wanted for r in d)")"
equal "all ten took part in every round" True \
  "$(ctl srv rounds --last 0 --json | json 'all(r["selected"] == r["responders"] == 10 for r in d)')"
equal "evaluated on all 10 000 images: a multiple of 0.0001" True \
  "$(ctl srv rounds --last 0 --json | json 'all(abs(r["accuracy"] * 1e4 - round(r["accuracy"] * 1e4)) < 1e-6 for r in d)')"
stop srv
equal "exit code" 0 "$rc"
finish
