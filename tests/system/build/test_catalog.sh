#!/usr/bin/env bash
# The catalog of the journal: each event of the log has an entry and each entry an event, and systemd reads the file.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
catalog=$srcdir/systemd/fl-serverd.catalog
ids_of_code() { sed -nE 's/.* "[a-z_]+", "([0-9a-f]{32})"\).*/\1/p' "$srcdir/libfl/base/log_events.h" | sort; }
ids_of_catalog() { sed -nE 's/^-- ([0-9a-f]{32})$/\1/p' "$catalog" | sort; }
check "the events have ids" test "$(ids_of_code | wc -l)" -ge 12
equal "each event has its entry, and each entry its event" "$(ids_of_code)" "$(ids_of_catalog)"
equal "no id is used twice" "" "$(ids_of_code | uniq -d)"
equal "each event is logged somewhere" "" "$(sed -nE 's/^ *X\(([A-Z_]+), "[a-z_]+", "[0-9a-f]{32}"\).*/\1/p' "$srcdir/libfl/base/log_events.h" |
  while read -r id; do
    grep -rqE "FL_LOG_NOTE\($id\b|FL_LOG_EVENT_$id\b" --include='*.c' "$srcdir/server" "$srcdir/libfl" || echo "$id"
  done)"
equal "the documents list the ids" "$(ids_of_code)" "$(sed -n '/^### The log/,/^## /p' "$srcdir/docs/operating.md" |
  sed -n '/^| event/,/^$/p' | grep -oE '[0-9a-f]{32}' | sort)"
# A field of a subject that no line has would stay as it is written.
equal "the fields of the entries are those that lines have" "" "$(grep -oE '@FL_[A-Z_]+@' "$catalog" | sort -u | tr -d '@' |
  while read -r field; do
    name=${field#FL_}
    grep -rqF "\"${name,,}\"" --include='*.c' "$srcdir/server" || echo "$field"
  done)"
if command -v journalctl >/dev/null; then
  mkdir -p "$dir/root/usr/lib/systemd/catalog" "$dir/root/var/lib/systemd/catalog"
  cp "$catalog" "$dir/root/usr/lib/systemd/catalog/"
  check "systemd reads it" journalctl --root "$dir/root" --update-catalog
  equal "and knows every id" "$(ids_of_code)" \
    "$(journalctl --root "$dir/root" --list-catalog 2>/dev/null | sed -nE 's/^([0-9a-f]{32}) fl: .*/\1/p' | sort)"
else
  echo "skipped: no journalctl, the catalog was not read by systemd"
fi
finish
