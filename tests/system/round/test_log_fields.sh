#!/usr/bin/env bash
# The log of a server for machines: JSON lines with the figures of a round as members, three lines for each round at level
# info. What the journal gets is in tests/libfl/base/test_log_out.c.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3
settings=("model: {preset: dnn60}" "round: {start_clients: 2, min_clients: 2}" "evaluation: {every: 1, data: \"$dir/data/server\"}")

### JSON
write_server srv "rounds: 3" "log_format: json" "${settings[@]}"
start_server srv
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001"
wait_for "all rounds" at_round srv 3
wait_end c0
wait_end c1
check "quarantine" ctl srv clients quarantine c0 --reason "for the test"
stop srv
check "the figures are members" "$python" - "$dir/srv.log" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
begins = [l for l in lines if l["message"].startswith("round ") and "SELECTING -> TRAINING" in l["message"]]
assert [(l["round"], l["attempt"], l["phase"]) for l in begins] == [(n, 1, "TRAINING") for n in (1, 2, 3)], begins
commits = [l for l in lines if l.get("event") == "round_committed"]
assert [l["round"] for l in commits] == [1, 2, 3], commits
for l in commits:
    for key in ("uplink_bytes", "uplink_bytes_full", "wire_up_bytes", "wire_down_bytes", "selected", "responders"):
        assert type(l[key]) is int and l[key] > 0, (key, l)
    assert 0 < l["accuracy"] <= 1 and l["loss"] > 0, l
(bad,) = [l for l in lines if l.get("event") == "client_quarantined"]
assert bad["client"] == "c0" and bad["level"] == "warning", bad
assert [l["client"] for l in lines if l["message"].endswith(" disconnected")] in (["c0", "c1"], ["c1", "c0"])
assert {"server_started", "server_stopped", "finished"} <= {l.get("event") for l in lines}
# From the begin of round 2 to its commit, without what is about clients.
first, last = (lines.index(l) for l in (begins[1], commits[1]))
assert last - first == 2, [l["message"] for l in lines[first:last + 1]]
PY

finish
