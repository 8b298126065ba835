#!/usr/bin/env bash
# deploy/quickstart.sh --algorithm NAME ends with a result for every preset, with FL_SLOW_TESTS=no for one whose clients
# share a model and one whose clients have models of their own: test_same.sh runs daemons with every policy. On the digits that come with the repository, with the programs that are built already.
#   test_quickstart.sh [NAME…]     those presets only
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
export FL_DATA_DIR=$dir/none

quick() { # folder, arguments…
  timeout -k 5 "$patience" bash "$srcdir/deploy/quickstart.sh" --build "$build" --dir "$@"
}
preset() { # name
  local folder=$dir/q-${1//+/-} key=accuracy
  case "$1" in *mcsa*|*fedamp|pfedme|local_only|per_fedavg|*+ft) key=personal_accuracy ;; esac
  quick "$folder" --rounds 2 --clients 3 --algorithm "$1" >"$folder.txt" 2>&1
  equal "$1: quickstart.sh succeeds" 0 $?
  check "$1: the last line is the result" grep -Eq "^result: rounds=2 .*$key=[01]\.[0-9]+ .*uplink_bytes=[0-9]+ .*downlink_bytes=[1-9]" "$folder.txt" ||
    tail -n 5 "$folder.txt"
  rm -rf "$folder"
}
if [ "${1:-}" = --worker ]; then
  shift
  for algorithm in "$@"; do preset "$algorithm"; done
  finish
fi

presets=("$@")
[ $# -gt 0 ] || mapfile -t presets < <(if everyday; then printf '%s\n' fedldf pfedme; else presets_of_help; fi)
share_out "${presets[@]}"
quick "$dir/q-generated" --data synthetic --rounds 2 --clients 3 >"$dir/generated.txt" 2>&1
equal "generated data on request" 0 $?
check "and its result" grep -Eq "^result: rounds=2 " "$dir/generated.txt"
quick "$dir/q-plain" --rounds 60 --clients 2 >"$dir/plain.txt" 2>&1
equal "without MNIST and without a wish" 0 $?
# More rounds than a glance at them holds, and faster than the glances follow each other.
equal "every round is shown, once" "$(seq 60 | xargs)" "$(awk '$1 ~ /^[0-9]+$/ {print $1}' "$dir/plain.txt" | xargs)"
has_line "it is real data, and which" "$dir/plain.txt" "the digits of deploy/data/optdigits"
says "MNIST that is not there is said" 1 "no MNIST in $dir/none/mnist" \
  bash "$srcdir/deploy/quickstart.sh" --build "$build" --dir "$dir/q" --data mnist
says "an unknown algorithm is named with the one that was meant" 1 "did you mean 'fedldf'" \
  bash "$srcdir/deploy/quickstart.sh" --build "$build" --dir "$dir/q" --rounds 1 --clients 2 --algorithm fedldff
finish
