#!/usr/bin/env bash
# Which presets join with '+', as docs/algorithms.md has it ("What joins with what"), is what the
# server accepts: every pair, in both orders.
#   test_joins.sh --table     print the table as it should stand there
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
doc=$srcdir/docs/algorithms.md
mapfile -t names < <(presets_of_help | grep -v '+' | grep -vx fedavg)
declare -A joined=()

# Every pair, and every preset with fedavg, is read by the server's configuration in one process.
try_all() {
  local a b pair
  while read -r pair; do
    joined[$pair]=yes
    [[ $pair == *+fedavg ]] || joined[${pair%+*}]+="${joined[${pair%+*}]:+, }${pair#*+}"
  done < <(for a in "${names[@]}"; do
    for b in "${names[@]}" fedavg; do [ "$a" = "$b" ] || echo "$a+$b"; done
  done | "$build/tests/system/preset_joins")
}
row() { echo "| \`$1\` | ${joined[$1]:-nothing} |"; } # name

try_all
if [ "${1:-}" = --table ]; then
  for name in "${names[@]}"; do row "$name"; done
  exit
fi
# The backquotes are those of the document.
# shellcheck disable=SC2016
mapfile -t told < <(sed -n '/^### What joins with what/,/^## /p' "$doc" | grep '^| `')
equal "the table has a row for each preset" "${#names[@]}" "${#told[@]}"
# The daemon reads no other way: one pair that joins, one that does not.
daemon_says() { # code, name+name
  write_server joins "algorithm: $2" "model: {preset: dnn60}"
  says "fl-serverd on $2" "$1" "" "$build/fl-serverd" --check-config "$dir/joins.yaml"
}
daemon_says 0 adafl+fedldf
daemon_says 3 scaffold+fedprox
for i in "${!names[@]}"; do
  equal "joins of ${names[i]}" "$(row "${names[i]}")" "${told[i]:-}"
done
for a in "${names[@]}"; do
  equal "$a joins with fedavg, which wants nothing" yes "${joined[$a+fedavg]:-}"
  for b in "${names[@]}"; do
    equal "$a+$b is $b+$a" "${joined[$a+$b]:-}" "${joined[$b+$a]:-}"
  done
done
finish
