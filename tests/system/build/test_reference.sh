#!/usr/bin/env bash
# The committed pages of configuration keys, of figures, of metrics, of hooks and of who may call what are what the programs print, and every preset
# of theirs, of algorithms and of networks, stands in its page.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
for page in configuration http operating security simulation; do
  check "docs/$page.md is what 'make reference' prints" \
    diff -u "$srcdir/docs/$page.md" <(bash "$srcdir/docs/reference.sh" "$build" $page)
done
for name in $(presets_of_help); do
  check "docs/algorithms.md has $name" grep -qF "\`$name\`" "$srcdir/docs/algorithms.md"
done
check "README.md has their number" grep -qF "**Algorithms**: $(presets_of_help | wc -w) by name" "$srcdir/README.md"
for name in $("$build/fl-serverd" --help | sed -n '/^networks:/{n;p}'); do
  check "docs/models.md has $name" grep -qF "\`$name\`" "$srcdir/docs/models.md"
done
finish
