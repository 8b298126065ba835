#!/usr/bin/env bash
# The FedMCSA federation on the exact Synthetic data reaches the figures that its experiment file tells of,
# within half a point: the last of the consolidated identities. The file has more rows. Under a sanitizer a
# few rounds have to do, and nothing is compared. The document shows what the file says.
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
says "rows have names" 0 pfedme-theta "$anchors" --rows help
# Its rows, and what they have in common.
file=$srcdir/bench/experiments/fedmcsa-synthetic.yaml
document=$srcdir/docs/algorithms.md
section() { sed -n '/^### FedMCSA on Synthetic/,/^### AdaFL, FedLDF/p' "$document"; }
check "the document has the table of the experiment file" cmp <("$anchors" --table) <(section | grep '^|')
for key in model training rounds; do
  equal "and the settings of all rows: $key" "$(sed -n "s/^  \\($key: .*\\)/\\1/p" "$file")" \
    "$(section | grep "^$key: ")"
done
sed 's/mlr60/mlr61/; s/steps: 20/stepz: 20/' "$file" >"$dir/bad.yaml"
says "a key that the server does not know is refused" 1 "unknown key 'stepz', did you mean 'steps'?" \
  "$anchors" "$dir/bad.yaml"
finish
