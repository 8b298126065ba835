#!/usr/bin/env bash
# Every test that docs/algorithms.md names under "What is checked" exists, and the figures of its table of
# FedMCSA's experiments, and those of docs/figures.md, are those that bench/anchors printed when it was run last.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
# The backquotes are those of the document.
# shellcheck disable=SC2016
mapfile -t named < <(sed -n '/^## What is checked/,$p' "$srcdir/docs/algorithms.md" | grep -o '`[a-z]*/[a-z_0-9.]*::[^`]*`' | tr -d '`')
check "the table names tests" test "${#named[@]}" -ge 50
for test in "${named[@]}"; do
  file=$srcdir/tests/${test%%::*}
  text=${test#*::}
  case $file in
    *.c) text="START_TEST($text)" ;;
  esac
  check "$test exists" grep -qF -- "$text" "$file"
done
# Row, figure of the paper, ours: as recorded, and as the pages have it.
record=$srcdir/bench/experiments/fedmcsa-synthetic.result
recorded=$(awk '/ s( +OUTSIDE)?$/ { print $1, $2, $4 }' "$record")
table=$(sed -n '/^### FedMCSA on Synthetic/,/^### /{/^### A/q;/^| /p}' "$srcdir/docs/algorithms.md" |
  awk -F ' *[|] *' 'NR > 2 { sub(/ .*/, "", $4); print $2, $4 == "not" ? "0.00" : $4, $5 }')
for what in command date commit; do
  has_line "the record says its $what" "$record" "# $what: "
done
check "the record has the rows of the experiment file" cmp <(cut -d ' ' -f 1 <<<"$recorded") \
  <(sed -n '/^rows:/,$s/^  \([a-z][^ :]*\):$/\1/p' "$srcdir/bench/experiments/fedmcsa-synthetic.yaml")
equal "the table has the figures of the record" "$recorded" "$table"
of() { awk -v row="$1" -v column="$2" '$1 == row { print $column }' <<<"$recorded"; }
equal "figures.md has the figures of the record" \
  "$(echo "$(of fedavg 2)" "$(of fedavg 3)" "$(of fedmcsa 2)" "$(of fedmcsa 3)" "$(of fedmcsa_fixed 3)" "$(of local_only 3)")" \
  "$(grep "^| FedMCSA's Synthetic table" "$srcdir/docs/figures.md" | cut -d '|' -f 3 | grep -oE '[0-9]+[.][0-9]+' | xargs)"
finish
