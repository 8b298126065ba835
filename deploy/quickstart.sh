#!/usr/bin/env bash
# From a fresh Debian 12 to a finished federation on this machine: installs what is missing, builds,
# shares data out among the clients, runs one fl-serverd and N fl-clientd, and ends with one line
# "result: …".
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/quickstart.sh [options]

  --rounds N         rounds to run (default 30)
  --clients N        client processes (default 10)
  --algorithm NAME   a preset of fl-serverd --help, or some joined with '+' (default adafl+fedldf)
  --data WHAT        mnist, digits or synthetic (default: mnist where it is found, else digits)
  --keep             leave the state folders (database, checkpoints) behind
  --build DIR        build folder (default ./build-quickstart)
  --dir DIR          where configuration, data and logs go (default ./quickstart)
  -h, --help         this text

mnist is read from $FL_DATA_DIR/mnist (default ../shared/data/mnist); digits are the 1 797 handwritten
digits of deploy/data/optdigits; synthetic is the Synthetic(0.5, 0.5) federation that fl-data generates.
The YAML files and logs stay for you to read.
TEXT
}

die() { echo "quickstart: $*" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }
positive() { [[ "$2" =~ ^[1-9][0-9]{0,5}$ ]] || { echo "quickstart: $1: expected a number above 0, found '$2'" >&2; exit 2; }; }

rounds=30 clients=10 algorithm=adafl+fedldf source='' keep=no build='' dir=''
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds|--clients|--algorithm|--data|--build|--dir)
      [ $# -ge 2 ] || { echo "quickstart: $1 needs a value" >&2; exit 2; }
      case "$1" in
        --rounds) positive "$1" "$2"; rounds=$2 ;;
        --clients) positive "$1" "$2"; clients=$2 ;;
        --algorithm) algorithm=$2 ;;
        --data)
          [[ "$2" =~ ^(mnist|digits|synthetic)$ ]] || { echo "quickstart: --data: expected mnist, digits or synthetic, found '$2'" >&2; exit 2; }
          source=$2 ;;
        --build) build=$2 ;;
        --dir) dir=$2 ;;
      esac
      shift 2 ;;
    --keep) keep=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    *) echo "quickstart: unknown argument '$1' (see --help)" >&2; exit 2 ;;
  esac
done

root=$(cd "$(dirname "$0")/.." && pwd)
build=${build:-$root/build-quickstart}
dir=${dir:-$root/quickstart}
data_dir=${FL_DATA_DIR:-$root/../shared/data}

say "packages"
# shellcheck source=deploy/packages.sh
. "$root/deploy/packages.sh"
fl_install_packages "${FL_BUILD_PACKAGES[@]}"
echo "all there"

say "build in $build"
if [ ! -x "$root/configure" ] || [ "$root/configure.ac" -nt "$root/configure" ]; then
  (cd "$root" && autoreconf -fi >/dev/null 2>&1) || die "autoreconf failed; run it in $root to see why"
fi
mkdir -p "$build"
[ -f "$build/Makefile" ] || (cd "$build" && "$root/configure" -q) || die "configure failed, see $build/config.log"
make -s -C "$build" -j"$(nproc)" fl-serverd fl-clientd fl-data flctl >"$build/make.out" 2>&1 ||
  { tail -n 20 "$build/make.out" >&2; die "the build failed, see $build/make.out"; }
echo "fl-serverd, fl-clientd, fl-data, flctl"

# Presets that judge each client's own model: clients keep a test part of their own.
personal=no
case "$algorithm" in
  *mcsa*|*fedamp*|pfedme*|local_only*|per_fedavg*|*+ft*) personal=yes ;;
esac

say "data"
mkdir -p "$dir"
mnist_found() { [ -e "$data_dir/mnist/train-images-idx3-ubyte.gz" ] || [ -e "$data_dir/mnist/train-images-idx3-ubyte" ]; }
if [ -z "$source" ] && mnist_found; then
  source=mnist
elif [ -z "$source" ]; then
  source=digits
  echo "no MNIST in $data_dir/mnist: the digits of deploy/data/optdigits"
fi
data=$dir/data-$source-$clients share=0
[ "$personal" = no ] || [ "$source" = synthetic ] || { data+=-own; share=0.2; }
split() { # data set, arguments…: shares it out, once
  local input=$1
  shift
  [ -d "$data" ] || "$build/fl-data" split --input "$input" --output "$data" --clients "$clients" \
    --method dirichlet --alpha 1 --test-share "$share" --seed 1 "$@" || die "the data could not be shared out"
}
case "$source" in
  mnist)
    mnist_found || die "no MNIST in $data_dir/mnist: set FL_DATA_DIR, or leave --data out"
    model='preset: mlp200' lr=0.1 batch=10 test_data="$data/server"
    split "$data_dir/mnist" ;;
  digits)
    model='input: [1, 8, 8], layers: ["flatten", "dense 64", "relu", "dense 32", "relu", "dense 10"]'
    lr=0.1 batch=10 test_data="$data/server"
    split "$root/deploy/data/optdigits" --min-samples 10 ;;
  synthetic)
    model='preset: dnn60' lr=0.05 batch=20 test_data=''
    [ -d "$data" ] || "$build/fl-data" synthetic --output "$data" --clients "$clients" ;;
esac
mapfile -t folders < <(find "$data" -maxdepth 1 -type d -name 'client-*' | sort)
[ "${#folders[@]}" -eq "$clients" ] || die "$data holds ${#folders[@]} client folders, expected $clients; remove it and run again"
echo "$source for $clients clients in $data"

say "configuration in $dir"
rm -rf "$dir/state"
mkdir -p "$dir/state" "$dir/logs"
# The schedule and the share matter only to the presets that use them.
strategy=''
case "$algorithm" in
  *adafl*|lean) strategy+="
  # AdaFL: half of the clients at first, all of them later.
  fraction: {start: 0.5, end: 1.0, step: 0.1, every: 5}" ;;
esac
case "$algorithm" in
  *fedldf*|lean) strategy+="
  # FedLDF: each layer comes from the 30 % of the clients where it moved most.
  upload: {share: 0.3}" ;;
  *mcsa*|*fedamp*|pfedme*) strategy+="
  # Half of the clients upload in a round: with a fifth of a few there is nobody to mix with.
  upload: {share: 0.5}" ;;
  random_layer|hdfl) strategy+="
  # Its baselines: 30 % of the clients, drawn at random.
  upload: {share: 0.3}" ;;
esac
evaluation="every: 1"
# Steps that gain speed need smaller ones; the pulls of the personal models are for their steps too.
case "$algorithm" in
  *igfl_c*|igfl|igfl-*|igfl_sa*|igfl_ta*) lr=$(awk "BEGIN{print $lr / 5}") ;;
  fedmcsa_fixed*|*fedamp*) strategy+="
  # The pull of the paper, 5, is for twenty small steps a round, not for an epoch.
  solver: {mu: 0.01}" ;;
  pfedme*) strategy+="
  # pFedMe: five inner steps a batch, stable for a step this large.
  solver: {lambda: 5, inner_learning_rate: $lr}" ;;
esac
evaluation="every: 1"
[ -z "$test_data" ] || evaluation+=", data: \"$test_data\""
[ -n "$test_data" ] && [ "$personal" = no ] || evaluation+=", clients: yes"
cat >"$dir/server.yaml" <<YAML
# Written by deploy/quickstart.sh. All keys: fl-serverd --reference
federation: quickstart
state_dir: "$dir/state/server"
listen: "127.0.0.1:0"        # port 0 picks a free one
insecure: yes                # plaintext, allowed on loopback only
rounds: $rounds
seed: 1
algorithm: $algorithm
${strategy:+strategy:$strategy
}model: {$model}
training: {epochs: 1, batch_size: $batch, learning_rate: $lr}
round: {start_clients: $clients, population: $clients, train_deadline: 2m, upload_deadline: 1m}
evaluation: {$evaluation}
YAML
"$build/fl-serverd" --check-config "$dir/server.yaml" || die "the configuration was refused"

pids=() server='' done=no
stop_all() {
  local p
  for p in "${pids[@]}" $server; do kill -TERM "$p" 2>/dev/null || true; done
  for p in "${pids[@]}" $server; do wait "$p" 2>/dev/null || true; done
  pids=() server=''
}
finish() {
  local code=$?
  stop_all
  [ "$keep" = yes ] || rm -rf "$dir/state"
  [ "$done" = yes ] || [ $code -eq 0 ] || echo "quickstart: not finished; logs are in $dir/logs" >&2
  exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "federation: $algorithm, $clients clients, $rounds rounds"
started=$(date +%s.%N)
# Emptied before anything reads it: an earlier run's address must not be taken for this one's.
: >"$dir/logs/server.out"
"$build/fl-serverd" "$dir/server.yaml" >"$dir/logs/server.out" 2>"$dir/logs/server.log" &
server=$!
address=''
for _ in $(seq 200); do
  address=$(sed -n 's/^listening //p' "$dir/logs/server.out")
  [ -n "$address" ] && break
  kill -0 "$server" 2>/dev/null || { tail -n 3 "$dir/logs/server.log" >&2; die "fl-serverd did not start"; }
  sleep 0.05
done
[ -n "$address" ] || die "fl-serverd does not listen"

# These send means of samples: each client has to agree.
case $algorithm in *fedmix* | *naivemix*) summaries='summaries: yes' ;; *) summaries='' ;; esac
i=0
for folder in "${folders[@]}"; do
  name=$(printf 'edge-%03d' "$i")
  cat >"$dir/$name.yaml" <<YAML
# Written by deploy/quickstart.sh. All keys: fl-clientd --reference
server: "$address"
name: $name
state_dir: "$dir/state/$name"
insecure: yes
exit_when_done: yes          # by default a client waits for more rounds
data: {path: "$folder"}
$summaries
YAML
  "$build/fl-clientd" "$dir/$name.yaml" 2>"$dir/logs/$name.log" &
  pids+=($!)
  i=$((i + 1))
done

ctl() { "$build/flctl" --state-dir "$dir/state/server" "$@"; }
peak() { # pids… : the largest VmHWM in kB of those that live
  local p best=0 kb
  for p in "$@"; do
    kb=$(awk '/^VmHWM:/{print $2}' "/proc/$p/status" 2>/dev/null || echo 0)
    [ "${kb:-0}" -gt "$best" ] && best=$kb
  done
  echo "$best"
}
shown=0 server_kb=0 client_kb=0
while [ "$shown" -lt "$rounds" ]; do
  if ! kill -0 "$server" 2>/dev/null; then
    tail -n 5 "$dir/logs/server.log" >&2
    die "fl-serverd ended early"
  fi
  kb=$(peak "${pids[@]}"); [ "$kb" -gt "$client_kb" ] && client_kb=$kb
  kb=$(peak "$server"); [ "$kb" -gt "$server_kb" ] && server_kb=$kb
  while read -r line; do
    read -r number rest <<<"$line"
    [[ "$number" =~ ^[0-9]+$ ]] || { [ "$shown" -eq 0 ] && [ "$number" = round ] && echo "$line"; continue; }
    if [ "$number" -gt "$shown" ]; then
      printf '%6s %s\n' "$number" "$rest"
      shown=$number
    fi
  done < <(ctl rounds --last "$((rounds - shown))" 2>/dev/null || true)
  [ "$shown" -lt "$rounds" ] && sleep 0.3
done
ended=$(date +%s.%N)
kb=$(peak "$server"); [ "$kb" -gt "$server_kb" ] && server_kb=$kb

say "result"
ctl export --output "$dir/model.safetensors"
# Columns: round selected responders accuracy train_loss uplink full seconds
table=$(ctl rounds)
bytes_of() { ctl rounds --json | grep -o "\"$1\": *[0-9]*" | awk -F: '{sum += $2} END {printf "%d", sum}'; }
down=$(bytes_of downlink_bytes)
wire=$(($(bytes_of wire_up_bytes) + $(bytes_of wire_down_bytes)))
stop_all
awk -v wall="$(awk "BEGIN{print $ended - $started}")" -v s="$server_kb" -v c="$client_kb" -v down="$down" -v wire="$wire" '
  $1 ~ /^[0-9]+$/ {
    n = $1; if ($4 != "-") acc = $4; up += $6; full += $7; units += $2
    if (match($0, /personal=[0-9.]+/)) own = substr($0, RSTART + 9, RLENGTH - 9)
  }
  END {
    printf "%-34s %s\n", "accuracy of the last model", acc
    if (own != "") printf "%-34s %s\n", "accuracy of the clients\047 own models", own
    printf "%-34s %d\n", "client trainings", units
    printf "%-34s %.2f MB\n", "uplink", up / 1e6
    printf "%-34s %.2f MB (%.3g of that was sent)\n", "uplink of full uploads", full / 1e6, full ? up / full : 0
    printf "%-34s %.2f MB\n", "downlink", down / 1e6
    printf "%-34s %.2f MB\n", "all bytes, with framing", wire / 1e6
    printf "%-34s %.1f s\n", "wall time", wall
    printf "\nresult: rounds=%d accuracy=%s%s uplink_bytes=%d uplink_bytes_full=%d downlink_bytes=%d wire_bytes=%d wall_s=%.1f server_peak_rss_mb=%.0f client_peak_rss_mb=%.0f\n",
      n, acc, own != "" ? " personal_accuracy=" own : "", up, full, down, wire, wall, s / 1024, c / 1024
  }' <<<"$table"
done=yes
