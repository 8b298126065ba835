#!/usr/bin/env bash
# The units under real systemd on three hosts: what a wrong file, a missing folder or address, a hanging daemon, a reload, a
# second instance, a held socket, a program that trains come to. Each was wrong once, or would be silently.
# shellcheck source=tests/system/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
hosts_begin "$@"
# shellcheck source=tests/system/hosts/federation.sh
. "$(dirname "$0")/federation.sh"
hosts_up "$hosts_installed"
users
federation_data

here() { # host, unit: lines of the run that is there now, or was last
  on "$1" journalctl --no-pager -o cat "_SYSTEMD_INVOCATION_ID=$(prop "$1" "$2" InvocationID)" "${@:3}"
}
said_error() { here "$1" "$2" -p err | grep -qF -- "$3"; }
# Of a run that ended at once a busy journal knows the unit, but not always the invocation.
before=0
errors_until_now() { before=$(journal "$1" "$2" -p err | wc -l); } # host, unit
said_since() { journal "$1" "$2" -p err | tail -n "+$((before + 1))" | grep -qF -- "$3"; }
failed_with() { # host, unit, exit code
  is_prop "$1" "$2" ActiveState failed && is_prop "$1" "$2" ExecMainStatus "$3"
}
fails() { ! "$@"; }
drop_in() { # host, unit, name: lines on standard input
  put "$1" "/etc/systemd/system/$2.service.d/$3.conf"
  on "$1" systemctl daemon-reload
}

### No configuration: said once, as an error, and not tried again
errors_until_now server fl-serverd
check "a start without a configuration fails" fails on server systemctl start fl-serverd
check "for good, with code 3" failed_with server fl-serverd 3
equal "without another try" 0 "$(prop server fl-serverd NRestarts)"
wait_for "the text, as an error" said_since server fl-serverd "$conf/server.yaml"

### A federation
server_yaml 0 | put server "$conf/server.yaml"
client_yaml edge-001 | put client1 "$conf/client.yaml"
client_yaml edge-002 | put client2 "$conf/client.yaml"
check "the server starts" on server systemctl -q enable --now fl-serverd
check "client 1 starts" on client1 systemctl -q enable --now fl-clientd
check "client 2 starts" on client2 systemctl -q enable --now fl-clientd
wait_for "a round" reached 1

equal "the admin socket belongs to the group of operators" "660 fl-admin" "$(on server stat -c '%a %G' /run/fl-serverd/admin.sock)"

### The sandbox is real
for host in server client1; do
  unit=fl-serverd
  [ $host = server ] || unit=fl-clientd
  on $host cat "/proc/$(prop $host $unit MainPID)/status" >"$dir/status"
  equal "$unit: system calls are filtered, nothing is privileged" "CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2" \
    "$(tr '\t' ' ' <"$dir/status" | grep -E '^(CapEff|NoNewPrivs|Seccomp):' | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')"
done
equal "descriptors for a large federation are asked for" 65536 "$(prop server fl-serverd LimitNOFILE)"

### The journal: priorities, each address once, JSON on request
has_priority() { here server fl-serverd -o json | grep -q "\"PRIORITY\":\"$1\""; }
for priority in 5 6; do
  wait_for "lines of priority $priority" has_priority $priority
done
equal "each address is said once" 1 "$(here server fl-serverd | grep -c "listening.*$hosts_net.1:7800")"
pid=$(prop server fl-serverd MainPID)
server_yaml 0 "log_level: debug" "log_format: json" | put server "$conf/server.yaml"
check "reload" on server systemctl reload fl-serverd
reloaded() { here server fl-serverd | grep -F '"log_format":"json"' >"$dir/reloaded"; }
wait_for "the reload" reloaded
equal "each line is an object" "notice debug" "$(head -n 1 "$dir/reloaded" | json '"%s %s" % (d["level"], d["log_level"])')"
equal "in its own priority" 5 \
  "$(here server fl-serverd -o json | grep -F 'log_format\":\"json' | head -n 1 | json 'd["PRIORITY"]')"
server_yaml 0 "train_dedline: 3" | put server "$conf/server.yaml"
check "reload of a wrong file" on server systemctl reload fl-serverd
wait_for "the refusal" said_error server fl-serverd 'nothing is changed'
check "SIGHUP of a client" on client1 systemctl kill -s HUP fl-clientd
client_reloaded() { here client1 fl-clientd | grep -qF "reloaded '$conf/client.yaml'"; }
wait_for "the client's reload" client_reloaded
equal "nobody was started again" "$pid 0 0" \
  "$(prop server fl-serverd MainPID) $(prop server fl-serverd NRestarts) $(prop client1 fl-clientd NRestarts)"
goes_on "reloads"

### A wrong key at a start
errors_until_now server fl-serverd
check "a restart with a wrong key fails" fails on server systemctl restart fl-serverd
check "for good" failed_with server fl-serverd 3
wait_for "line and key, as an error" said_since server fl-serverd "train_dedline"
server_yaml 0 | put server "$conf/server.yaml"

### An address that comes late: pauses grow, then it serves
ip -n "$hosts_id-server" addr del "$hosts_net.1/24" dev eth0
check "a start without its address fails at once" fails on server systemctl start fl-serverd
waits() { in_journal "$1" "$2" "failures=$3 pause_s=$4"; }
wait_for "a pause" waits server fl-serverd 2 2
wait_for "a longer one" waits server fl-serverd 3 4
status_waits() { prop server fl-serverd StatusText | grep -q "waiting 4 s"; }
wait_for "the status to say so" status_waits
ip -n "$hosts_id-server" addr add "$hosts_net.1/24" dev eth0
wait_for "the server" is_prop server fl-serverd ActiveState active
goes_on "the address came"

### A data set that is missing: the same, and a restart does not wait for the pause
check "the data set goes" on client2 mv /var/lib/fl-data/client /var/lib/fl-data/away
check "a restart without data fails" fails on client2 systemctl restart fl-clientd
wait_for "a pause" waits client2 fl-clientd 2 2
wait_for "a longer one" waits client2 fl-clientd 3 4
errors_until_now client2 fl-clientd
check "a restart in the pause fails at once" fails on client2 systemctl restart fl-clientd
wait_for "the reason, as an error" said_since client2 fl-clientd "/var/lib/fl-data/client"
equal "it is a first failure again" 0 "$(here client2 fl-clientd | grep -c failures=)"
check "the data set comes back" on client2 mv /var/lib/fl-data/away /var/lib/fl-data/client
check "and a restart serves" on client2 systemctl restart fl-clientd
goes_on "the data set came back"

### Refused for good: another client has the name
tries=$(prop client1 fl-clientd NRestarts)
client_yaml edge-001 | put client2 "$conf/client.yaml"
check "a second edge-001" on client2 systemctl restart fl-clientd
refused() { failed_with client1 fl-clientd 7 || failed_with client2 fl-clientd 7; }
wait_for "one of the two to give up" refused
equal "it is the older one, which is not started again" "failed $tries" \
  "$(prop client1 fl-clientd ActiveState) $(prop client1 fl-clientd NRestarts)"
client_yaml edge-002 | put client2 "$conf/client.yaml"
check "each its own name again" on client2 systemctl restart fl-clientd
check "client 1 starts again" on client1 systemctl restart fl-clientd
goes_on "two had one name"

### A daemon that hangs is ended and started again; one that serves is not
for host in server client1; do
  unit=fl-serverd
  [ $host = server ] || unit=fl-clientd
  printf '[Service]\nWatchdogSec=2\nLimitCORE=0\n' | drop_in $host $unit watchdog
  check "a short watchdog of $unit" on $host systemctl restart $unit
  fed=$(prop $host $unit WatchdogTimestampMonotonic)
  for i in {1..8}; do # four spans and more
    fed_again() { [ "$(prop $host $unit WatchdogTimestampMonotonic)" -gt "$fed" ]; }
    wait_for "food for $unit" fed_again
    fed=$(prop $host $unit WatchdogTimestampMonotonic)
  done
  equal "$unit that serves is left alone" "active 0" "$(prop $host $unit ActiveState) $(prop $host $unit NRestarts)"
  check "$unit hangs" on $host systemctl kill --kill-who=main -s STOP $unit
  wait_for "$unit to be started again" is_prop $host $unit NRestarts 1
  wait_for "$unit to serve again" is_prop $host $unit ActiveState active
  wait_for "word of the watchdog" in_journal $host $unit "Watchdog timeout"
done
goes_on "both hung"

### A program that trains: it works in the sandbox, which shows it no device; with the drop-in it sees what the machine has
put client2 /opt/trainer.sh <<'TEXT'
value() { grep -o "\"$2\": *\"[^\"]*\"" "$1" | cut -d'"' -f4; }
cp "$(value "$1" model)" "$(value "$1" result_model)" || exit 1
echo '{"samples": 10, "steps": 1, "train_loss": 1.0}' >"$(value "$1" result)"
[ -z "$XDG_CACHE_HOME" ] || echo compiled >"$XDG_CACHE_HOME/kernel"
ls /dev >/var/lib/fl-clientd/dev.new && mv /var/lib/fl-clientd/dev.new /var/lib/fl-clientd/dev
TEXT
client_yaml edge-002 "trainer: command" 'command: {program: [/bin/sh, /opt/trainer.sh, "{task}"], samples: 10}' |
  put client2 "$conf/client.yaml"
check "a device" on client2 touch /dev/gpu0
check "a trainer of one's own" on client2 systemctl restart fl-clientd
wait_for "what it sees" on client2 test -e /var/lib/fl-clientd/dev
goes_on "a program trains"
equal "not the device" "" "$(on client2 grep -x gpu0 /var/lib/fl-clientd/dev)"
sed 's/^SupplementaryGroups=.*//' "$build/systemd/gpu.conf" | drop_in client2 fl-clientd gpu
check "the drop-in for GPUs" on client2 systemctl restart fl-clientd
check "what it saw is forgotten" on client2 rm -f /var/lib/fl-clientd/dev
wait_for "what it sees now" on client2 test -e /var/lib/fl-clientd/dev
equal "the machine's own devices" gpu0 "$(on client2 grep -x gpu0 /var/lib/fl-clientd/dev)"
equal "and can keep what a framework compiled" compiled "$(on client2 cat /var/cache/fl-clientd/kernel)"

### Keys as credentials
echo "a key" | put server /etc/credstore/fl-serverd.server.key
check "a restart with a credential" on server systemctl restart fl-serverd
folder=$(on server cat "/proc/$(prop server fl-serverd MainPID)/environ" | tr '\0' '\n' |
  sed -n 's/^CREDENTIALS_DIRECTORY=//p')
equal "the daemon finds it" "a key" "$(on server cat "$folder/server.key")"
equal "and nobody else" "500 400" \
  "$(on server stat -c %a "$folder" "$folder/server.key" | tr '\n' ' ' | sed 's/ $//')"

### Two federations on one machine
server_yaml 0 | sed -e 's,/fl-serverd,/fl-serverd-two,' -e 's,:7800,:7801,' -e 's/start_clients: 2, min_clients: 2/start_clients: 1/' |
  put server "$conf/server-two.yaml"
client_yaml edge-two | sed -e 's,/fl-clientd,/fl-clientd-two,' -e 's,:7800,:7801,' | put client1 "$conf/client-two.yaml"
check "another server" on server systemctl start fl-serverd@two
check "another client" on client1 systemctl start fl-clientd@two
two_rounds() { on server flctl status --socket /run/fl-serverd-two/admin.sock --json | grep -q '"rounds_committed": [1-9]'; }
wait_for "a round of the other federation" two_rounds
goes_on "there were two"
check "the other one stops" on server systemctl stop fl-serverd@two

### A held socket: nobody is refused while the server is restarted
server_yaml 0 | sed 's/^listen: .*/listen: "*:7800"/' | put server "$conf/server.yaml"
check "the server stops" on server systemctl disable -q --now fl-serverd
check "systemd takes the address" on server systemctl -q enable --now fl-serverd.socket
check "who connects starts the server, or finds it" on client1 bash -c 'exec 9<>/dev/tcp/server/7800'
wait_for "the server that was started so" is_prop server fl-serverd ActiveState active
goes_on "a socket"
put client1 /opt/knock.sh <<'TEXT'
while :; do (exec 9<>/dev/tcp/server/7800) 2>/dev/null && echo in || echo refused; done >/opt/knocks
TEXT
check "somebody knocks" on client1 systemd-run -q --unit=knocker bash /opt/knock.sh
knocks() { wc -l <"$hosts_work/client1/root/opt/knocks"; }
for i in 1 2 3; do
  check "restart $i while somebody knocks" on server systemctl restart fl-serverd
  before=$(knocks)
  knocked() { [ "$(knocks)" -gt $((before + 5)) ]; }
  wait_for "some knocks more" knocked
done
check "the knocking ends" on client1 systemctl stop knocker
check "somebody was let in" grep -q in "$hosts_work/client1/root/opt/knocks"
equal "and never refused" 0 "$(grep -c refused "$hosts_work/client1/root/opt/knocks")"
goes_on "restarts on a held socket"
for h in server client1 client2; do shut_down $h; done
finish
