#!/usr/bin/env bash
# A real Prometheus scrapes servers: the alerts of deploy/prometheus are silent about a sound one, and a real fault fires each of
# them; the queries of the dashboard of deploy/grafana answer with the series of a federation.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/http/faults.sh
. "$(dirname "$0")/faults.sh"
prometheus_begin 's/> 7200/> 5/'
synthetic "$dir/data" 2 --seed 3
cat >"$dir/slow.py" <<'TEXT'
import sys, time
time.sleep(3600)
TEXT
# A sound one, one that waits for clients, one whose rounds an operator aborts, one with a certificate of five days.
serve sound "rounds: 0" "round: {start_clients: 2, min_clients: 2}" "evaluation: {clients: yes}"
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
scrape soon
is_up() { [ "$(ask sum 'sum(up)')" = 4.0 ]; }
wait_for "four targets" is_up
equal "scrapes without an error" 0.0 "$(ask sum 'sum(scrape_samples_post_metric_relabeling == 0) or vector(0)')"
dashboard() {
  "$python" "$srcdir/tests/system/http/dashboard.py" "$prometheus_port" "http://127.0.0.1:${port_of[sound]}/metrics" \
    "$srcdir/deploy/grafana/fl-federation.json"
}
# Rates want two scrapes, and rounds between them.
wait_for "series for the dashboard" dashboard
check "every query of the dashboard" dashboard

### Each alert is fired by its fault
wait_for "the alert of the one that waits" fires FlTooFewClients/alone
wait_for "the alert of the certificate" fires FlCertificateEnds/soon
wait_for "the alert of its clients" fires FlTooFewClients/soon
wait_for "the alert of the round that does not go on" fires FlRoundStuck/aborted
fired="FlCertificateEnds/soon FlRoundStuck/aborted FlTooFewClients/alone FlTooFewClients/soon"
equal "and no other one fires" "$fired" "$(firing)"
for i in 1 2 3 4; do
  wait_for "the training again" trains
  ctl aborted abort-round >"$dir/abort" 2>&1
done
wait_for "the alert of the aborted rounds" fires FlRoundsAborted/aborted
four_aborted() { [ "$(ask sum 'fl_round_attempts_aborted_total{server="aborted"}')" = 4.0 ]; }
wait_for "four aborted attempts" four_aborted
kill_hard slow
wait_for "the alert of the client that is gone" fires FlProblem/aborted
describe_server full "round: {start_clients: 2, min_clients: 2}" "admin_socket: $dir/full.admin"
if on_small_disk full "$build/fl-serverd" "$dir/full.yaml"; then
  scrape full
  for i in 0 1; do start_client "f$i" "$dir/data/client-00$i" "exit_when_done: no"; done
  fill_disk full
  wait_for "the alert of the full disk" fires FlDiskFull/full
  wait_for "the alert of the work that fails" fires FlServerWorkFailing/full
else
  echo "not run: a full disk (no mount namespaces here)"
fi
equal "no alert of the sound one" 0 "$(firing | tr ' ' '\n' | grep -c '/sound$')"
kill_hard sound
wait_for "the alert of the one that is gone" fires FlServerDown/sound
finish
