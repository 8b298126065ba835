#!/usr/bin/env bash
# What `make install` leaves on a machine is whole: the examples name only what was installed with them,
# the daemons accept them, the documents' links hold, and the contract compiles.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
root=$dir/root
# Not a part of the make that runs this test: its job server and flags are not ours.
inner_make() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" "$@"; }
value_of() { # a variable of the Makefile, with what it refers to filled in
  printf 'include %s/Makefile\nfl-print:\n\t@echo $(%s)\n' "$build" "$1" >"$dir/print.mk"
  inner_make -f "$dir/print.mk" fl-print
}
docdir=$(value_of docdir)
datadir=$(value_of datadir)
sysconfdir=$(value_of sysconfdir)
check "make install" inner_make install DESTDIR="$root"

### Programs and units
for program in "$(value_of sbindir)"/fl-{serverd,clientd} "$(value_of bindir)"/{flctl,fl-data,fl-sim}; do
  check "$program runs" "$root$program" --version
done

if command -v readelf >/dev/null && [ "$(uname -m)" = x86_64 ]; then
  for program in "$(value_of sbindir)"/fl-{serverd,clientd} "$(value_of bindir)"/flctl; do
    # Built without: another compiler, or flags of the operator's.
    grep -q -- '-fcf-protection' "$build/Makefile" || continue
    check "$program allows shadow stacks" bash -c 'readelf -n "$1" | grep -q SHSTK' sh "$root$program"
  done
fi
for unit in "$build"/systemd/fl-{serverd,clientd}{,@}.service; do
  [ -e "$unit" ] || continue
  check "$unit writes no core dump" grep -qx LimitCORE=0 "$unit"
  check "$unit has a limit of memory" grep -q ^MemoryMax= "$unit"
done

### What the examples name
for yaml in server client; do
  example=$root$docdir/examples/$yaml.yaml
  check "the example of $yaml is there" test -s "$example"
  # Absolute paths but what is the operator's, and documents.
  grep -oE '/[A-Za-z0-9_./@-]+' "$example" | grep -E '^/[a-z]+/' |
    grep -vE "^($sysconfdir|/var/lib|/run)/" | sort -u >"$dir/named"
  while read -r path; do
    check "$path of $yaml.yaml exists" test -e "$root$path" -o -x "$path"
  done <"$dir/named"
  for path in $(grep -oE 'docs/[a-z-]+\.md' "$example" | sort -u); do
    check "$path of $yaml.yaml exists" test -s "$root$docdir/$path"
  done
done
has_line "the example names the trainer where it is" "$root$docdir/examples/client.yaml" \
  "[/usr/bin/python3, $datadir/fl/trainer_numpy.py, \"{task}\"]"
check "which is a program" test -x "$root$datadir/fl/trainer_numpy.py"

### The daemons accept them, on a machine of their own
here() { # example: with the operator's folders in ours
  sed -e "s,/var/lib/,$dir/var/,g" -e "s,/run/,$dir/run/,g" -e "s,$datadir/fl/,$root&,g" \
    "$root$docdir/examples/$1.yaml"
}
synthetic "$dir/data" 1 --seed 3
mkdir -p "$dir/var/fl-data" "$dir/run/fl-serverd"
mv "$dir/data/client-000" "$dir/var/fl-data/client"
here server >"$dir/server.yaml"
check "the server gets an identity" "$root$(value_of sbindir)/fl-serverd" --init "$dir/server.yaml"
says "server.yaml" 0 "server.yaml: ok: federation 'digits'" \
  "$root$(value_of sbindir)/fl-serverd" --check-config "$dir/server.yaml"
# In plaintext: without a server nobody joins.
here client | sed -e 's,^# insecure: yes,insecure: yes,' -e 's,^server:.*,server: "127.0.0.1:7800",' >"$dir/client.yaml"
says "client.yaml" 0 "client.yaml: ok: client 'edge-001'" \
  "$root$(value_of sbindir)/fl-clientd" --check-config "$dir/client.yaml"
sed -e 's/^trainer: builtin/trainer: command/' -e '/^# command:/,/^$/s/^# \( *\)/\1/' \
  -e "s,/usr/bin/python3,$python," "$dir/client.yaml" >"$dir/command.yaml"
says "client.yaml with the other trainer" 0 "trainer command" \
  "$root$(value_of sbindir)/fl-clientd" --check-config "$dir/command.yaml"

### Documents
grep -oE '\]\([A-Za-z][A-Za-z0-9/_.-]*\)' "$root$docdir/README.md" | tr -d ']()' | sort -u >"$dir/links"
check "README.md has links" test -s "$dir/links"
while read -r link; do
  check "README.md: $link" test -s "$root$docdir/$link"
done <"$dir/links"
for file in "$root$docdir"/docs/*.md; do
  for link in $(grep -oE '\]\([a-z][a-z-]*\.md' "$file" | tr -d ']('); do
    check "$(basename "$file"): $link" test -s "$root$docdir/docs/$link"
  done
done

### The contract
if [ -n "${FL_PROTOC:-}" ]; then
  check "the contract compiles" "$FL_PROTOC" -I "$root$datadir/fl/proto" \
    --descriptor_set_out="$dir/all.bin" fl/v1/federation.proto \
    fl/v1/identity.proto fl/v1/admin.proto
fi
finish
