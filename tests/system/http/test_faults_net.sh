#!/usr/bin/env bash
# A firewall drops what a client and its server send each other: `flctl why`, the status page, STATUS of systemd and an alert say
# of which client the server hears nothing, in the same words, and the client says where it cannot connect.
# shellcheck source=tests/system/netns.sh
. "$(dirname "$0")/../netns.sh"
netns_begin
# shellcheck source=tests/system/http/faults.sh
. "$(dirname "$0")/faults.sh"
prometheus_begin
notify_socket
synthetic "$dir/data" 2 --seed 3
serve wall "listen: [\"10.78.0.1:0\"]" "insecure_remote: yes" "heartbeat: 1s" \
  "round: {start_clients: 2, min_clients: 2, min_responders: 2, retry: 20ms, straggler_min: 3s}"
start_client wall-a "$dir/data/client-000" "insecure_remote: yes"
write_client wall-b "$dir/data/client-001" "insecure_remote: yes"
run_inside wall-b
wait_for "a round" at_round wall 1
if iptables -A INPUT -i outer -j DROP 2>"$dir/iptables.out"; then
  echo "a rule of iptables drops the packets"
else
  ip link set outer down
  echo "the link is down, as iptables does not work here: $(tail -n 1 "$dir/iptables.out")"
fi
fault wall unreachable "nothing is received any more (host or network down, or a firewall) from: wall-b"
unreachable() { grep -qF "no connection to '$address'" "$dir/wall-b.log"; }
wait_for "the client to say it, too" unreachable
finish
