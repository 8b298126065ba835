#!/usr/bin/env bash
# FedBN on clients whose images look different: six clients have MNIST as it is, inverted, with little
# contrast. With norm: local each client's own test images are told better than with one batch-norm for all,
# and the server says that this could be. With images that look alike, or digits of few kinds, it is as it is:
#
#   FL_NORM_ROUNDS=32 tests/system/round/test_norm_local.sh looks alike labels
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
mnist=${FL_DATA_DIR:-$srcdir/../shared/data}/mnist
[ -e "$mnist/train-images-idx3-ubyte.gz" ] || skip "no MNIST in $mnist"
clients=6
rounds=${FL_NORM_ROUNDS:-8}
sets=("$@")
[ $# -gt 0 ] || sets=(looks alike)
"$python" - "$mnist" "$dir" $clients "${sets[@]}" <<'PY'
import gzip, os, struct, sys
mnist, out, clients = sys.argv[1], sys.argv[2], int(sys.argv[3])
images = gzip.open(mnist + "/train-images-idx3-ubyte.gz").read()[16:]
labels = gzip.open(mnist + "/train-labels-idx1-ubyte.gz").read()[8:]
looks = [lambda x: x, lambda x: 255 - x, lambda x: 96 + x // 4, lambda x: 160 - x // 4,
         lambda x: x // 5, lambda x: 255 - x // 5]
def part(folder, name, rows, look):
    table = bytes(look(x) for x in range(256))
    with open("%s/%s-images-idx3-ubyte" % (folder, name), "wb") as f:
        f.write(struct.pack(">4I", 2051, len(rows), 28, 28))
        f.write(b"".join(images[784 * r : 784 * (r + 1)].translate(table) for r in rows))
    with open("%s/%s-labels-idx1-ubyte" % (folder, name), "wb") as f:
        f.write(struct.pack(">2I", 2049, len(rows)) + bytes(labels[r] for r in rows))
for kind in sys.argv[4:]:
    for k in range(clients):
        folder = "%s/%s-%d" % (out, kind, k)
        os.mkdir(folder)
        rows = list(range(500 * k, 500 * (k + 1)))
        if kind == "labels":  # two digits each
            rows = [r for r in range(10000) if labels[r] in (k, k + 4)][500 * (k % 2) :][:500]
        look = looks[k] if kind == "looks" else looks[0]
        part(folder, "train", rows[:300], look)
        part(folder, "t10k", rows[300:], look)
PY

# data, norm: the accuracy of the last round over all clients' own test images, in $accuracy
federation() {
  local name=$1-$2 k
  write_server "$name" "log_level: debug" "model:" "  norm: $2" "  input: [1, 28, 28]" \
    "  layers: [\"conv 8 5x5 stride 2\", bn, relu, flatten, dense 32, bn, relu, dense 10]" \
    "training: {epochs: 1, batch_size: 20, learning_rate: 0.05}" "round: {start_clients: $clients}" \
    "rounds: $rounds" "strategy: {fraction: {fraction: 1}}" "evaluation: {clients: yes}" "when_finished: stay"
  start_server "$name"
  for ((k = 0; k < clients; k++)); do start_client "$name-$k" "$dir/$1-$k" "name: c$k" "exit_when_done: no"; done
  wait_for "the rounds of $name" at_round "$name" "$rounds"
  ctl "$name" rounds --last 0 --json >"$dir/$name.json"
  accuracy=$(json 'round(d[-1]["accuracy"], 3)' <"$dir/$name.json")
  for ((k = 0; k < clients; k++)); do stop "$name-$k"; done
  stop "$name"
}

### The same rooms in one process
simulated() { # name, layers, norm, arguments…
  local name=$1
  cat >"$dir/$name.yaml" <<END
server:
  model: {input: [64], layers: [$2], norm: $3}
  training: {epochs: 2, batch_size: 5, learning_rate: 0.05}
  evaluation: {clients: yes}
client: {data: {validation: 0.2}}
data: {set: $srcdir/deploy/data/optdigits, method: dirichlet, alpha: 0.5, clients: 8, seed: 3}
stop: {rounds: 6}
END
  check "fl-sim runs $name" "$build/fl-sim" run "$dir/$name.yaml" --quiet --out "$dir/$name.results" "${@:4}"
}
rounds_of() { find "$dir/$1.results" -name rounds.jsonl -exec cat {} +; }
if [ $# -eq 0 ]; then
  simulated plain-shared "dense 16, relu, dense 10" shared
  simulated plain-local "dense 16, relu, dense 10" local
  equal "without a batch-norm local is shared, bit for bit" "$(rounds_of plain-shared)" "$(rounds_of plain-local)"
  simulated one "dense 16, bn, relu, dense 10" local --jobs 1
  simulated two "dense 16, bn, relu, dense 10" local --jobs 2
  simulated shared "dense 16, bn, relu, dense 10" shared
  equal "threads change nothing of it" "$(rounds_of one)" "$(rounds_of two)"
  differs() { [ -n "$(rounds_of one)" ] && [ "$(rounds_of one)" != "$(rounds_of shared)" ]; }
  check "it is another federation" differs
fi

better() { "$python" -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$1" "$2"; }
hint="'model.norm: local' may fit them better"
for set in "${sets[@]}"; do
  federation "$set" shared
  shared=$accuracy
  federation "$set" local
  apart=$(sed -n 's/.*of clients lie \([0-9.]*\) apart/\1/p' "$dir/$set-shared.log" | head -n 1)
  echo "$set: accuracy after $rounds rounds: shared $shared, local $accuracy; $apart apart in round 4"
  check "$set: it learns" better "$accuracy" 0.5
  lacks_line "$set: what stays is not compared" "$dir/$set-local.log" "of clients lie"
  case $set in
    looks)
      check "norms of one's own fit better where images look different" better "$accuracy" "$shared"
      equal "and it is said once" 1 "$(grep -cF "$hint" "$dir/looks-shared.log")"
      ;;
    alike) lacks_line "nothing is said where they look alike" "$dir/alike-shared.log" "$hint" ;;
  esac
done
finish
