# shellcheck shell=bash
# shellcheck disable=SC2154 # dir, build: of lib.sh
# What make.sh and test_upgrade.sh have to do alike: a stored state goes on under the settings, and with
# the data, that it was made under.

# 32 samples each, of numbers that a CSV holds exactly.
stored_data() {
  local c=0 s
  for s in a b; do
    mkdir -p "$dir/data/$s"
    awk -v c=$c 'BEGIN {
      for (i = 0; i < 32; i++) {
        for (j = 0; j < 60; j++) printf "%s,", ((i * 7 + j * (3 + i % 5) + c * 11) % 17 - 8) / 8
        print (i + c) % 10
      }
    }' >"$dir/data/$s/train.csv"
    c=$((c + 1))
  done
}

stored_server() { # rounds
  write_server fed "rounds: $1" "model: {preset: mlr60}" "algorithm: scaffold" "seed: 9" \
    "log_level: debug" "training: {epochs: 2, batch_size: 8, learning_rate: 0.1}" \
    "round: {start_clients: 2, min_responders: 2}"
}

stored_client() { echo "log_level: debug"; }

# The machine's kernel of OpenBLAS: with another one the last bits of what is trained differ.
kernel() { OPENBLAS_VERBOSE=2 LD_PRELOAD=libopenblas.so.0 /bin/true 2>&1 | sed -n 's/^Core: //p'; }
