#!/usr/bin/env bash
# Every test that docs/algorithms.md names under "What is checked" exists, and the tables of docs/results.md are those
# that its script makes of the runs that were kept, and so is the table of README.md.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# The backquotes are those of the document.
# shellcheck disable=SC2016
mapfile -t named < <(sed -n '/^## What is checked/,$p' "$srcdir/docs/algorithms.md" | grep -o '`[a-z_0-9/]*/[a-z_0-9.]*::[^`]*`' | tr -d '`')
check "the table names tests" test "${#named[@]}" -ge 50
for test in "${named[@]}"; do
  file=$srcdir/tests/${test%%::*}
  text=${test#*::}
  case $file in
    *.c) check "$test exists" grep -qE -- "^TEST(_[A-Z]+)?\(${text}[,)]" "$file" ;;
    *) check "$test exists" grep -qF -- "$text" "$file" ;;
  esac
done
# The table of the first page.
check "the table of README.md is made of the recorded run" cmp "$srcdir/README.md" \
  <("$python" "$srcdir/bench/compare" --table "$srcdir/bench/results/readme.jsonl" --into "$srcdir/README.md" --print)
# The tables of the results.
report=$srcdir/bench/experiments/report.py
check "the page of results is made of the kept runs" cmp <("$python" "$report" page --print) "$srcdir/docs/results.md"
while read -r picture; do
  check "so is the picture $picture" cmp <("$python" "$report" "$picture" --print) "$srcdir/docs/$picture.svg"
done < <("$python" "$report" pictures)
for file in "$srcdir"/bench/experiments/*.yaml; do
  name=$(basename "$file" .yaml)
  for what in command seeds "run time" date commit machine; do
    has_line "the record of $name says its $what" "${file%.yaml}.csv" "# $what: "
  done
  if [ "$name" = igfl-attention ]; then # ten clients of each seed
    equal "the record of $name has the clients of each seed" "$(for seed in 1 2 3; do printf "$seed / client-%03d\n" {0..9}; done)" \
      "$(grep -v '^#' "${file%.yaml}.csv" | sed '1d; s/,.*//')"
  elif grep -q '^- {label' "$file"; then
    equal "the record of $name has the rows of its file" "$(sed -n 's/^- {label: \([^,]*\),.*/\1/p' "$file")" \
      "$(grep -v '^#' "${file%.yaml}.csv" | sed '1d; s/,.*//')"
  else # a grid
    equal "the record of $name has as many rows as its file" \
      "$(awk '/^sweep:/ {n = 1; k = 1; on = 1} on && /^  [a-z]/ {n *= k; k = 0} on && /^  - / {k++} END {print n * k}' "$file")" \
      "$(grep -v '^#' "${file%.yaml}.csv" | sed 1d | wc -l)"
  fi
done
finish
