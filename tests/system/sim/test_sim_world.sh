#!/usr/bin/env bash
# fl-sim world: what it lists and shows, what it refuses, and that the server's link is shared.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
sim=$build/fl-sim

experiment() { # name, what stands at `world:`
  cat >"$dir/$1.yaml" <<EOT
server: {algorithm: fedavg, model: {input: [64], layers: [dense 10]}, rounds: 3}
data: {set: "$srcdir/deploy/data/optdigits", method: iid, clients: 40}
stop: {time: 10m}
world: $2
EOT
}

check "worlds are listed" "$sim" world
cp "$dir/check.out" "$dir/list"
for name in ideal lan broadband lte lte-m narrowband; do
  has_line "$name is listed" "$dir/list" "$name "
  says "$name is shown" 0 "100 uploads of 0.8 MB" "$sim" world show "$name"
  has_line "$name has a line in the documents" "$srcdir/docs/simulation.md" "| \`$name\` |"
done
equal "each has its source" 6 "$(grep -c '^  *source: ..' "$dir/list")"

# 100 x 0.8 MB through one 100 Mbit/s server, however fast clients are.
experiment shared "{base: lan, latency: 0s, server: {uplink: unlimited, downlink: 100Mbit/s}}"
says "a server's downlink is shared by uploads" 0 \
  "100 uploads of 0.8 MB at once: first after 6.40 s, half after 6.40 s, last after 6.40 s" \
  "$sim" world show "$dir/shared.yaml" --clients 100
has_line "and not by downloads" "$dir/says.out" "100 downloads of 0.8 MB at once: first after 6.40 ms"
says "the experiment says how many clients there are" 0 "40 clients" "$sim" world show "$dir/shared.yaml"

# Files lie beside the experiment; what is wrong in them is told with their line.
printf '# source: a test\nuplink [kB/s]\n100\n100\n' >"$dir/t.csv"
printf '# source: a test\nuplink\n100\n' >"$dir/unitless.csv"
printf '# source: a test\nclient, up_from [s], up_until [s]\n0, 0, 60\n' >"$dir/up.csv"
experiment table "{uplink: {table: t.csv, column: uplink}}"
says "a table beside the experiment is read" 0 "last after 8.00 s" "$sim" world show "$dir/table.yaml"
experiment unitless "{uplink: {table: unitless.csv, column: uplink}}"
says "a column without a unit" 1 "unitless.csv:2: column 'uplink' has no unit" "$sim" world show "$dir/unitless.yaml"
experiment early "{availability: {trace: up.csv}}"
says "a trace that ends early" 1 "the trace ends early, after 60 s" "$sim" world show "$dir/early.yaml"
says "and an experiment in it" 1 "the trace ends early, after 60 s" "$sim" run "$dir/early.yaml" --out "$dir/early"
experiment repeated "{availability: {trace: up.csv, repeat: yes}}"
says "a trace that is repeated" 0 "40 clients" "$sim" world show "$dir/repeated.yaml"

says "a slip in a name" 1 "unknown network and device model 'ltee', did you mean 'lte'?" "$sim" world show ltee
says "no clients" 2 "a model without clients" "$sim" world show lte --clients 0
says "an unknown word" 2 "expected show" "$sim" world shw
says "no such file" 1 "none.yaml" "$sim" world show "$dir/none.yaml"
finish
