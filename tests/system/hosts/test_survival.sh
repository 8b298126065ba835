#!/usr/bin/env bash
# A federation as systemd services on three hosts: killed daemons, a restart, a power cut, a cable that is pulled, and
# rounds that are added when all were done. It goes on by itself, and nothing that was committed is lost.
# shellcheck source=tests/system/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
hosts_begin "$@"
# shellcheck source=tests/system/hosts/federation.sh
. "$(dirname "$0")/federation.sh"
hosts_up "$hosts_installed"
users
federation_data

### From nothing to rounds
server_yaml 0 | put server "$conf/server.yaml"
client_yaml edge-001 | put client1 "$conf/client.yaml"
client_yaml edge-002 | put client2 "$conf/client.yaml"
check "the server starts" on server systemctl -q enable --now fl-serverd
check "client 1 starts" on client1 systemctl -q enable --now fl-clientd
check "client 2 starts" on client2 systemctl -q enable --now fl-clientd
wait_for "30 rounds" reached 30
equal "the server is active" active "$(prop server fl-serverd ActiveState)"
check "the model learns" "$python" -c 'import sys; sys.exit(not float(sys.argv[1]) > 0.8)' \
  "$(on server flctl rounds --socket /run/fl-serverd/admin.sock --json | json 'd[-1]["accuracy"]')"

### The journal has fields and ids
on server journalctl --no-pager -o json -u fl-serverd MESSAGE_ID=4904458b359c4da29167ee915dcc4bd7 FL_ROUND=3 >"$dir/round.json"
equal "a round is found by its event and its number, with its figures" "round_committed 5 2 server fl-serverd" \
  "$(json '"%s %s %s %s %s" % tuple(d[k] for k in ("FL_EVENT", "PRIORITY", "FL_RESPONDERS", "FL_COMPONENT", "SYSLOG_IDENTIFIER"))' <"$dir/round.json")"

### The status follows
status_is() { prop "$1" "$2" StatusText | grep -qE "$3"; }
wait_for "the server's status" status_is server fl-serverd '^round [0-9]+: [A-Z]+; clients: 2 connected; committed rounds: [0-9]+$'
first=$(prop server fl-serverd StatusText)
changed() { [ "$(prop server fl-serverd StatusText)" != "$first" ]; }
wait_for "another status" changed
wait_for "a client's status" status_is client1 fl-clientd '(^Round [0-9]+: |last task: round [0-9]+, [a-z ]+[.]$)'

### kill -9
n=$(rounds)
check "the server is killed" on server systemctl kill -s KILL fl-serverd
wait_for "rounds after the server was killed" reached $((n + 3))
equal "systemd started it again" 1 "$(prop server fl-serverd NRestarts)"
wait_for "word that it went on where it was" in_journal server fl-serverd "resum"
check "client 1 is killed" on client1 systemctl kill -s KILL fl-clientd
came_back() { is_prop client1 fl-clientd NRestarts 1 && connected 2; }
wait_for "client 1 to come back" came_back
goes_on "a client was killed"

### Restart and stop in a round
for verb in restart stop; do
  check "$verb in a round" on server systemctl $verb fl-serverd
  equal "$verb is no failure" success "$(prop server fl-serverd Result)"
done
equal "the exit code of a stop" 0 "$(prop server fl-serverd ExecMainStatus)"
equal "which leaves it inactive" inactive "$(prop server fl-serverd ActiveState)"
wait_for "word to the clients" in_journal client2 fl-clientd "the server is stopping"
check "the server starts again" on server systemctl start fl-serverd
goes_on "a stop"

### Power
n=$(rounds)
cut_power server
boot server
wait_for "rounds after the server's power was cut" reached $((n + 3))
cut_power client1
boot client1
wait_for "both clients" connected 2
goes_on "client 1's power was cut"

### A cable
link client2 down
wait_for "the server to miss client 2" connected 1
link client2 up
wait_for "client 2 to be back" connected 2
goes_on "the cable was out until the session was lost"
link client2 down
link client2 up
goes_on "the cable was out for a moment"

### All rounds are done, and more are added: clients are asked for nothing
n=$(($(rounds) + 2))
server_yaml $n | put server "$conf/server.yaml"
check "a restart with an end" on server systemctl restart fl-serverd
wait_for "all rounds" reached $n
told() { in_journal "$1" fl-clientd "all rounds are done"; }
for h in client1 client2; do
  wait_for "$h to hear that all are done" told $h
  equal "$h stays" active "$(prop $h fl-clientd ActiveState)"
done
wait_for "the status says so" status_is server fl-serverd "^all $n rounds are done"
server_yaml 0 | put server "$conf/server.yaml"
check "a restart with more" on server systemctl restart fl-serverd
wait_for "more rounds" reached $((n + 3))

### What is on the disk, in the end
equal "every round was committed once" "True" \
  "$(on server flctl rounds --socket /run/fl-serverd/admin.sock --json |
    json '[r["round"] for r in d] == list(range(d[0]["round"], d[0]["round"] + len(d)))')"
for h in server client1 client2; do shut_down $h; done
finish
