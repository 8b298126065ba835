#!/usr/bin/env bash
# What lies under deploy/ and systemd/ is right: the example configurations are accepted and name only
# keys of the reference, the units pass systemd-analyze, the quickstart refuses wrong arguments.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
examples=$srcdir/deploy/examples
quickstart=$srcdir/deploy/quickstart.sh

### Examples
# On a machine of their own: with the operator's folders in ours.
here() { sed -e "s,/var/lib/,$dir/var/,g" -e "s,/run/,$dir/run/,g" "$examples/$1.yaml" >"$dir/$1.yaml"; }
mkdir -p "$dir/var/fl-data/client" "$dir/run/fl-serverd"
printf '1,2,0\n3,4,1\n' >"$dir/var/fl-data/client/train.csv"
here server
here client
says "server.yaml" 0 "server.yaml: ok: federation 'digits', algorithm adafl+fedldf" \
  "$build/fl-serverd" --check-config "$dir/server.yaml"
says "client.yaml" 0 "client.yaml: ok: client 'edge-001'" \
  "$build/fl-clientd" --check-config "$dir/client.yaml"
# Also what stands in comments: every "key:" of the examples is a key of the reference.
for d in server client; do
  "$build/fl-${d}d" --reference >"$dir/$d.md"
  check "$d.yaml, comments included, names only keys of the reference" "$python" - \
    "$examples/$d.yaml" "$dir/$d.md" <<'PY'
import re, sys
known = {"model", "strategy", "algorithm", "training", "round", "evaluation", "checkpoints", "limits",
         "data", "command", "reconnect", "selection", "fraction", "upload", "solver", "codec",
         "aggregate", "site", "floor"}
for line in open(sys.argv[2], encoding="utf-8"):
    for key in re.findall(r"^\| `([a-z_.]+)` \|", line):
        known.update(key.split("."))
text = open(sys.argv[1], encoding="utf-8").read()
found = set()
for line in text.splitlines():
    # A key with a value: at the start of a line (a commented one too) or within braces.
    line = re.sub(r'"[^"]*"', '""', line)
    if re.match(r"#? *[a-z_]+:( |$)", line):
        found.add(re.match(r"#? *([a-z_]+):", line).group(1))
        for inner in re.findall(r"\{([^}]*)\}", line):
            found.update(re.findall(r"([a-z_]+): ", inner))
unknown = sorted(found - known)
assert len(found) > 10 and not unknown, unknown
PY
done
# A slip in them would be seen.
sed 's/^seed:/sed:/' "$examples/server.yaml" >"$dir/slip.yaml"
says "a slip in server.yaml" 3 "unknown key 'sed', did you mean 'seed'?" \
  "$build/fl-serverd" --check-config "$dir/slip.yaml"
if "$python" -c 'import numpy' 2>/dev/null; then
  says "the trainer wants a task" 1 "Error" "$python" "$examples/trainer_numpy.py" "$dir/slip.yaml"
fi

### Units
if command -v systemd-analyze >/dev/null; then
  mkdir "$dir/units"
  for d in serverd clientd; do
    sed -e "s,@sbindir@/,$build/,g" -e "s,@sysconfdir@,/etc,g" -e "s,@[a-z]*bindir@/,$build/,g" \
      "$srcdir/systemd/fl-$d.service.in" >"$dir/units/fl-$d.service"
    checks=$((checks + 1))
    if ! systemd-analyze verify --man=no "$dir/units/fl-$d.service" >"$dir/verify.out" 2>&1 ||
      grep -q "fl-$d.service" "$dir/verify.out"; then
      note_failure "systemd-analyze verify fl-$d.service"
      cat "$dir/verify.out"
    fi
    for line in Type=notify "ExecStartPre=$build/fl-$d --check-config" StateDirectory= NoNewPrivileges= ProtectSystem=strict; do
      has_line "fl-$d.service: $line" "$dir/units/fl-$d.service" "$line"
    done
  done
else
  echo "skipped: no systemd-analyze, the units were not verified"
fi

### Quickstart
says "quickstart: help" 0 "usage: deploy/quickstart.sh" bash "$quickstart" --help
for option in --rounds --clients --algorithm --keep --build --dir; do
  has_line "quickstart: help names $option" "$dir/says.out" "$option"
done
says "quickstart: unknown argument" 2 "unknown argument '--round' (see --help)" bash "$quickstart" --round 3
says "quickstart: no value" 2 "--rounds needs a value" bash "$quickstart" --rounds
says "quickstart: no number" 2 "--rounds: expected a number above 0, found 'many'" bash "$quickstart" --rounds many
says "quickstart: no clients" 2 "--clients: expected a number above 0, found '0'" bash "$quickstart" --clients 0
says "test.sh: help" 0 "--fast" bash "$srcdir/deploy/test.sh" --help
says "test.sh: unknown argument" 2 "unknown argument '--quick'" bash "$srcdir/deploy/test.sh" --quick
finish
