#!/usr/bin/env bash
# Which presets join with '+', as docs/algorithms.md has it ("What joins with what"), is what the
# server accepts: every pair, in both orders.
#   test_joins.sh --table     print the table as it should stand there
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
doc=$srcdir/docs/algorithms.md
mapfile -t names < <(presets_of_help | grep -v '+' | grep -vx fedavg)
declare -A joined=()

# name+name: the server accepts it
accepted() {
  write_server joins "algorithm: $1" "model: {preset: dnn60}" "training: {learning_rate: 0.01}" \
    "evaluation: {clients: yes}"
  "$build/fl-serverd" --check-config "$dir/joins.yaml" >"$dir/joins.out" 2>&1
}
try_all() {
  local a b i
  for a in "${names[@]}"; do
    for b in "${names[@]}"; do
      [ "$a" != "$b" ] || continue
      if accepted "$a+$b"; then
        joined[$a]+="${joined[$a]:+, }$b"
        joined[$a+$b]=yes
      fi
    done
  done
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
for i in "${!names[@]}"; do
  equal "joins of ${names[i]}" "$(row "${names[i]}")" "${told[i]:-}"
done
for a in "${names[@]}"; do
  check "$a joins with fedavg, which wants nothing" accepted "$a+fedavg"
  for b in "${names[@]}"; do
    equal "$a+$b is $b+$a" "${joined[$a+$b]:-}" "${joined[$b+$a]:-}"
  done
done
finish
