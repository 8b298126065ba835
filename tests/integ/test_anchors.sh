#!/usr/bin/env bash
# The FedMCSA federation on the exact Synthetic data reaches the figures that are expected of it, within half a
# point: the last of the consolidated identities. bench/anchors has more rows. Under a sanitizer a few
# rounds have to do, and nothing is compared.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
anchors=$build/bench/anchors
[ -x "$anchors" ] || skip "no $anchors"
arguments=(--check)
if grep -q '^FL_SAN_FLAGS = .*-fsanitize' "$build/Makefile"; then
  arguments=(--rounds 10)
fi
run() { "$anchors" "${arguments[@]}" --rows "$1" >"$dir/$2" 2>&1; }
run fedavg,local_only,fedmcsa a.txt &
pid_of[a]=$!
check "fedmcsa_fixed and heur_fedamp within half a point" run fedmcsa_fixed,heur_fedamp b.txt
wait "${pid_of[a]}"
equal "fedavg, local_only and fedmcsa within half a point" 0 $?
unset 'pid_of[a]'
cat "$dir/a.txt" "$dir/b.txt"
equal "all five rows were run" 5 "$(cat "$dir/a.txt" "$dir/b.txt" | grep -cE ' s(  OUTSIDE)?$')"
says "rows have names" 0 pfedme-w "$anchors" --rows help
finish
