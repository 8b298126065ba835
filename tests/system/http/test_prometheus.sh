#!/usr/bin/env bash
# A real Prometheus scrapes servers: the alerts of deploy/prometheus are silent about a sound one, and real faults fire them.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
prometheus=$(command -v prometheus) || prometheus=${FL_PROMETHEUS:-}
[ -n "$prometheus" ] || skip "prometheus (package prometheus) is not installed"
synthetic "$dir/data" 2 --seed 3
http_port() { grep -oE 'http_port=[0-9]+' "$dir/$1.log" | tail -n 1 | cut -d= -f2; } # name
serve() { # name, lines of YAML…
  write_server "$1" "model: {preset: dnn60}" "listen: [\"unix:$dir/$1.sock\"]" "http: {listen: [\"127.0.0.1:0\"]}" "${@:2}"
  start_server "$1"
  wait_for "the HTTP port" test -n "$(http_port "$1")"
}
cat >"$dir/slow.py" <<'TEXT'
import sys, time
time.sleep(3600)
TEXT
# A sound one, one that waits for clients, one whose rounds an operator aborts, one with a certificate of five days.
serve sound "rounds: 2" "round: {start_clients: 2, min_clients: 2}"
for i in 0 1; do start_client "c$i" "$dir/data/client-00$i" "exit_when_done: no"; done
wait_for "two rounds" at_round sound 2
serve alone "round: {start_clients: 2, min_clients: 2}"
serve aborted "round: {start_clients: 1, min_clients: 1, min_responders: 1, retry: 20ms}"
start_client slow "" "trainer: command" \
  "command: {program: [\"$python\", \"$dir/slow.py\", \"{task}\"], samples: 10, time_limit: 1h}"
trains() { ctl aborted why | grep -qE "round 1 is TRAINING"; }
wait_for "the training" trains
cat >"$dir/soon.yaml" <<TEXT
federation: integ
state_dir: "$dir/soon.state"
listen: ["127.0.0.1:0"]
identity: {hosts: [localhost], validity: 5d}
model: {preset: dnn60}
http: {listen: ["127.0.0.1:0"]}
TEXT
check "an identity" "$build/fl-serverd" --init "$dir/soon.yaml"
start_server soon
wait_for "the HTTP port" test -n "$(http_port soon)"

# The rules as they are, but for the time that they wait.
sed -E 's/for: [0-9]+[smh]/for: 0s/' "$srcdir/deploy/prometheus/fl-alerts.yaml" >"$dir/alerts.yaml"
cat >"$dir/prometheus.yaml" <<TEXT
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: fl-server
    static_configs:
      - {targets: ["127.0.0.1:$(http_port sound)"], labels: {server: sound}}
      - {targets: ["127.0.0.1:$(http_port alone)"], labels: {server: alone}}
      - {targets: ["127.0.0.1:$(http_port aborted)"], labels: {server: aborted}}
      - {targets: ["127.0.0.1:$(http_port soon)"], labels: {server: soon}}
TEXT
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$prometheus" --config.file="$dir/prometheus.yaml" --storage.tsdb.path="$dir/tsdb" \
  --web.listen-address="127.0.0.1:$port" >"$dir/prometheus.log" 2>&1 &
pid_of[prometheus]=$!
cat >"$dir/ask.py" <<'PY'
import json, sys, urllib.parse, urllib.request
port, what = sys.argv[1:3]
def ask(path):
    return json.load(urllib.request.urlopen("http://127.0.0.1:%s/api/v1/%s" % (port, path), timeout=60))["data"]
if what == "alerts":  # those that fire, as "alert/server"
    ports = dict(a.split("=") for a in sys.argv[3:])
    print(" ".join(sorted({a["labels"]["alertname"] + "/" + ports[a["labels"]["instance"].split(":")[1]]
                           for a in ask("alerts")["alerts"] if a["state"] == "firing"})))
else:
    print(sum(float(r["value"][1]) for r in ask("query?query=" + urllib.parse.quote(what))["result"]))
PY
ask() { "$python" "$dir/ask.py" "$port" "$@"; }
ports=()
for name in sound alone aborted soon; do ports+=("$(http_port $name)=$name"); done
fires() { [[ " $(ask alerts "${ports[@]}") " == *" $1 "* ]]; } # alert/server
is_up() { [ "$(ask 'sum(up)')" = 4.0 ]; }
wait_for "four targets" is_up
equal "scrapes without an error" 0.0 "$(ask 'sum(scrape_samples_post_metric_relabeling == 0) or vector(0)')"
wait_for "the alert of the one that waits" fires FlTooFewClients/alone
wait_for "the alert of the certificate" fires FlCertificateEnds/soon
wait_for "the alert of its clients" fires FlTooFewClients/soon
fired="FlCertificateEnds/soon FlTooFewClients/alone FlTooFewClients/soon"
equal "and no other one fires" "$fired" "$(ask alerts "${ports[@]}")"
for i in 1 2 3 4; do
  wait_for "the training again" trains
  ctl aborted abort-round >"$dir/abort" 2>&1
done
wait_for "the alert of the aborted rounds" fires FlRoundsAborted/aborted
equal "four aborted attempts" 4.0 "$(ask 'fl_round_attempts_aborted_total{server="aborted"}')"
kill_hard sound
wait_for "the alert of the one that is gone" fires FlServerDown/sound
equal "those alerts and no other" "FlCertificateEnds/soon FlRoundsAborted/aborted FlServerDown/sound FlTooFewClients/alone FlTooFewClients/soon" \
  "$(ask alerts "${ports[@]}")"
finish
