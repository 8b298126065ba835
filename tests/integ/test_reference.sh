#!/usr/bin/env bash
# The committed reference of all configuration keys is what the daemons print.
set -u
if diff -u "$FL_SRCDIR/docs/configuration.md" <(bash "$FL_SRCDIR/docs/reference.sh" "$FL_BUILDDIR"); then
  echo "100%: Checks: 1, Failures: 0, Errors: 0"
else
  echo "docs/configuration.md is old: run 'make reference' and commit it"
  echo "0%: Checks: 1, Failures: 1, Errors: 0"
  exit 1
fi
