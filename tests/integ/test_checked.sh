#!/usr/bin/env bash
# Every test that docs/algorithms.md names under "What is checked" exists.
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
finish
