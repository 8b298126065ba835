#!/usr/bin/env bash
# What lies under deploy/ is right: the example configurations are accepted and name only
# keys of the reference, the quickstart refuses wrong arguments.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
examples=$srcdir/deploy/examples
quickstart=$srcdir/deploy/quickstart.sh

### Examples
# On a machine of their own: with the operator's folders in ours.
here() { sed -e "s,/var/lib/,$dir/var/,g" -e "s,/run/,$dir/run/,g" "$examples/$1.yaml" >"$dir/$1.yaml"; }
mkdir -p "$dir/var/fl-data/client" "$dir/run/fl-serverd"
printf '1,2,0\n3,4,1\n' >"$dir/var/fl-data/client/train.csv"
here server
here client
says "server.yaml wants an identity" 8 "create it with" "$build/fl-serverd" --check-config "$dir/server.yaml"
says "and gets one" 0 "federation 'digits' has its identity in" "$build/fl-serverd" --init "$dir/server.yaml"
says "server.yaml" 0 "server.yaml: ok: federation 'digits', algorithm adafl+fedldf" \
  "$build/fl-serverd" --check-config "$dir/server.yaml"
says "client.yaml wants an invitation" 4 "flctl invite NAME" "$build/fl-clientd" --check-config "$dir/client.yaml"
sed -e 's,^# insecure: yes,insecure: yes,' -e 's,^server:.*,server: "127.0.0.1:7800",' "$dir/client.yaml" >"$dir/plain.yaml"
says "client.yaml, in plaintext" 0 "plain.yaml: ok: client 'edge-001'" \
  "$build/fl-clientd" --check-config "$dir/plain.yaml"
# Also what stands in comments: every "key:" of the examples is a key of the reference.
for d in server client; do
  "$build/fl-${d}d" --reference >"$dir/$d.md"
  check "$d.yaml, comments included, names only keys of the reference" "$python" - \
    "$examples/$d.yaml" "$dir/$d.md" <<'PY'
import re, sys
known = {"model", "strategy", "algorithm", "training", "round", "evaluation", "checkpoints", "limits",
         "data", "command", "reconnect", "selection", "fraction", "upload", "solver", "codec",
         "aggregate", "site", "floor", "http"}
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
# Basic keys stand before the advanced ones, of the file and of each section; those for debugging are not named.
for d in server client; do
  check "$d.yaml has the basic keys first and none for debugging" "$python" - "$examples/$d.yaml" "$dir/$d.md" <<'PY'
import re, sys
tiers, tier = {}, None
for line in open(sys.argv[2], encoding="utf-8"):
    tier = line.split()[1].rstrip(":") if line.startswith("### ") else tier
    for key in re.findall(r"^\| `([a-z_.]+)` \|", line):
        tiers.setdefault(key, tier)
section, expected, inner, seen = "", None, None, 0
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("# ==="):
        expected = line.split()[2].rstrip(":").capitalize()
    if "# --- advanced" in line:
        inner = "Advanced"
    found = re.match(r"( *)(?:# ?( *))?([a-z_]+):(?:\s|$)", line)
    if not found or found.group(3) in ("tls", "limits") and "{" in line:
        continue
    key = found.group(3)
    if found.group(1) or found.group(2):
        key = section + "." + key
    else:
        section, inner = key, None
    if key in tiers:
        seen += 1
        assert tiers[key] == (inner or expected), (key, tiers[key], inner or expected)
assert seen > 8, seen
PY
done
# A slip in them would be seen.
sed 's/^seed:/sed:/' "$examples/server.yaml" >"$dir/slip.yaml"
says "a slip in server.yaml" 3 "unknown key 'sed', did you mean 'seed'?" \
  "$build/fl-serverd" --check-config "$dir/slip.yaml"
if "$python" -c 'import numpy' 2>/dev/null; then
  says "the trainer wants a task" 1 "Error" "$python" "$examples/trainer_numpy.py" "$dir/slip.yaml"
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
