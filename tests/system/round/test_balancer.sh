#!/usr/bin/env bash
# Clients behind a TCP load balancer of Debian (haproxy) that sends the PROXY protocol: they join and train through it, and the
# server's log and audit have their addresses, not the balancer's. Nobody else can claim an address.
# shellcheck disable=SC2086 # $inside is a command with arguments
# shellcheck source=tests/system/netns.sh
. "$(dirname "$0")/../netns.sh"
netns_begin haproxy
clientd=$build/fl-clientd
synthetic "$dir/data" 1 --seed 3
write_server srv "listen: [\"10.79.0.1:7443\"]" "proxy_protocol_from: [10.79.0.1, \"2001:db8::/32\"]" "model: {preset: dnn60}" \
  "rounds: 1000000" "heartbeat: 200ms" "round: {start_clients: 1, min_responders: 1, retry: 20ms}" \
  "identity: {hosts: [10.78.0.1]}"
sed -i '/^insecure:/d' "$dir/srv.yaml"
check "the federation gets its identity" "$build/fl-serverd" --init "$dir/srv.yaml"
start_server srv || finish
# As in docs/network.md.
cat >"$dir/haproxy.cfg" <<'TEXT'
defaults
  mode tcp
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend fl
  bind 10.78.0.1:7443
  default_backend fl
backend fl
  server one 10.79.0.1:7443 send-proxy-v2 check check-send-proxy
TEXT
haproxy -db -f "$dir/haproxy.cfg" >"$dir/haproxy.out" 2>&1 &
pid_of[haproxy]=$!
wait_for "the load balancer to listen" bash -c "exec 3<>/dev/tcp/10.78.0.1/7443" haproxy

### Through it
ctl srv invite edge-001 >"$dir/line" 2>"$dir/invite.out"
says "it joins" 0 "joined 'integ' as 'edge-001'" $inside "$clientd" --join --invitation "$dir/line" \
  --data "$dir/data/client-000" --state-dir "$dir/edge-001.state" "$dir/edge-001.yaml"
echo "reconnect: {first: 50ms, longest: 200ms}" >>"$dir/edge-001.yaml"
run_inside edge-001
accepted() { # number: so many updates were accepted
  ctl srv clients --json | json "any(c['name'] == 'edge-001' and c['accepted'] >= $1 for c in d)"
}
wait_for "an update through the load balancer" accepted 1
ctl srv audit --json >"$dir/audit.out"
has_line "the audit has the client's address" "$dir/audit.out" "10.78.0.2"
inside bash -c 'echo hello >/dev/tcp/10.78.0.1/7443'
wait_for "the log has the client's address" grep -q "10.78.0.2:[0-9]*: " "$dir/srv.log"

### What is not as it should be
echo hello >/dev/tcp/10.79.0.1/7443
wait_for "a listed address without the header" in_log srv "it does not begin with a header of the PROXY protocol, version 2, for TCP"
header='\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\xc4\x88\x1d\x13'
before=$(ctl srv clients --json | json "sum(c['accepted'] for c in d)")
printf "$header$header" >/dev/tcp/10.79.0.1/7443
wait_for "the federation goes on" accepted $((before + 1))
stop srv
sed -i 's/^proxy_protocol_from:.*/proxy_protocol_from: [192.0.2.1]/' "$dir/srv.yaml"
: >"$dir/srv.log"
start_server srv || finish
printf "$header" >/dev/tcp/10.79.0.1/7443
wait_for "a header from elsewhere is no TLS" grep -q "10.79.0.1:[0-9]*: " "$dir/srv.log"
lacks_line "and names nobody" "$dir/srv.log" "192.0.2.7"
sed 's/^proxy_protocol_from:.*/proxy_protocol_from: [balancer.example]/' "$dir/srv.yaml" >"$dir/bad.yaml"
says "a name instead of an address" 3 "key 'proxy_protocol_from': 'balancer.example': expected an IP address, or a range of them such as 10.0.0.0/8" \
  "$build/fl-serverd" --check-config "$dir/bad.yaml"
finish
