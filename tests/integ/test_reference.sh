#!/usr/bin/env bash
# The committed pages of configuration keys and of figures are what the programs print.
set -u
failed=0
for page in configuration records; do
  if ! diff -u "$FL_SRCDIR/docs/$page.md" <(bash "$FL_SRCDIR/docs/reference.sh" "$FL_BUILDDIR" $page); then
    echo "docs/$page.md is old: run 'make reference' and commit it"
    failed=$((failed + 1))
  fi
done
echo "$((100 - 50 * failed))%: Checks: 2, Failures: $failed, Errors: 0"
exit $((failed > 0))
