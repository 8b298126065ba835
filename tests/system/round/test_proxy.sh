#!/usr/bin/env bash
# A client whose only way out is an HTTP proxy of Debian (tinyproxy), in a network namespace without another route: it joins,
# trains and reconnects through it, an admin reaches the server through it, and each failure of a proxy has its message while
# the federation goes on.
# shellcheck disable=SC2086 # $inside and $join are commands with arguments
# shellcheck source=tests/system/netns.sh
. "$(dirname "$0")/../netns.sh"
netns_begin tinyproxy
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
clientd=$build/fl-clientd
server_host=10.79.0.1
proxy=10.78.0.1:3128

synthetic "$dir/data" 2 --seed 3
write_server srv "listen: [\"$server_host:7443\"]" "listen_admin: [\"$server_host:7444\"]" "model: {preset: dnn60}" \
  "rounds: 1000000" "heartbeat: 200ms" "round: {start_clients: 1, min_responders: 1, retry: 20ms}" \
  "identity: {hosts: [$server_host]}"
sed -i '/^insecure:/d' "$dir/srv.yaml"
check "the federation gets its identity" "$build/fl-serverd" --init "$dir/srv.yaml"
start_server srv || finish

start_proxy() { # lines of its configuration…
  { printf 'Port 3128\nListen 10.78.0.1\nTimeout 600\nMaxClients 50\nLogLevel Connect\nConnectPort 7443\nConnectPort 7444\nConnectPort 9\n'
    printf 'LogFile "%s"\n' "$dir/tinyproxy.log"
    printf '%s\n' "$@"; } >"$dir/tinyproxy.conf"
  tinyproxy -d -c "$dir/tinyproxy.conf" >>"$dir/tinyproxy.out" 2>&1 &
  pid_of[tinyproxy]=$!
  wait_for "the proxy to listen" bash -c "exec 3<>/dev/tcp/10.78.0.1/3128" tinyproxy
}
start_proxy "BasicAuth ann s3cret"
equal "the client has no other way to the server" 1 \
  "$(inside bash -c "exec 3<>/dev/tcp/$server_host/7443" 2>/dev/null; echo $?)"
check "it reaches the proxy" inside bash -c "exec 3<>/dev/tcp/10.78.0.1/3128"

### Joining: what is wrong is said, and the invitation remains valid
ctl srv invite edge-001 >"$dir/line" 2>"$dir/invite.out"
password() { printf '%s\n' "$1" >"$dir/password" && chmod 600 "$dir/password"; }
join="$inside $clientd --join --invitation $dir/line --data $dir/data/client-000 --state-dir $dir/edge-001.state $dir/edge-001.yaml"
documented proxy-password $join --proxy "http://$proxy"
password ann:wrong
documented proxy-password-wrong $join --proxy "http://$proxy" --proxy-credentials "$dir/password"
chmod 644 "$dir/password"
documented proxy-password-open $join --proxy "http://$proxy" --proxy-credentials "$dir/password"
documented proxy-scheme $join --proxy "https://$proxy"
says "the password in the environment" 7 "proxy $proxy of https_proxy: 401 Unauthorized: it rejected" \
  env https_proxy="http://ann:other@$proxy" $join
password ann:s3cret
says "with the right one it joins" 0 "joined 'integ' as 'edge-001'" $join --proxy "http://$proxy" --proxy-credentials "$dir/password"
has_line "the first configuration has the proxy" "$dir/edge-001.yaml" "proxy: \"http://$proxy\""
has_line "and the file" "$dir/edge-001.yaml" "proxy_credentials: \"$dir/password\""

### It trains through the proxy, also after the proxy was restarted
accepted() { # name, number: so many updates of it were accepted
  ctl srv clients --json | json "any(c['name'] == '$1' and c['accepted'] >= $2 for c in d)"
}
echo "reconnect: {first: 50ms, longest: 200ms}" >>"$dir/edge-001.yaml"
run_inside edge-001
wait_for "an update through the proxy" accepted edge-001 1
has_line "the proxy has seen it" "$dir/tinyproxy.log" "CONNECT $server_host:7443"
stop tinyproxy
wait_for "the client to miss the proxy" in_log edge-001 "proxy $proxy of 'proxy': cannot connect to $proxy: connection refused"
documented_log proxy-away "$dir/edge-001.log"
start_proxy "BasicAuth ann s3cret"
before=$(ctl srv clients --json | json "sum(c['accepted'] for c in d)")
wait_for "an update after the proxy was restarted" accepted edge-001 $((before + 1))

### An admin behind the proxy
check "an admin's certificate" ctl srv admin-certificate root --output "$dir/admin"
export https_proxy="http://ann:s3cret@$proxy"
says "flctl takes the proxy of the environment" 0 "rounds_committed" $inside "$build/flctl" --json --server $server_host:7444 \
  --identity "$dir/admin" status
export https_proxy="http://$proxy"
says "and says what it needs" 3 "proxy $proxy of https_proxy: 407 Proxy Authentication Required" $inside "$build/flctl" \
  --server $server_host:7444 --identity "$dir/admin" status
unset https_proxy
says "the options do it too" 0 "rounds_committed" $inside "$build/flctl" --json --server $server_host:7444 \
  --identity "$dir/admin" --proxy "$proxy" --proxy-credentials "$dir/password" status
says "without a proxy there is no way" 3 "unreachable" $inside "$build/flctl" --server $server_host:7444 --identity "$dir/admin" status

### Failures of proxies, each said by a client that goes on
other() { # name, server, lines of YAML…: a second client with the same certificate
  local name=$1 server=$2
  shift 2
  { sed "/^server:/d; /^proxy/d; /^reconnect:/d; s/edge-001.state/$name.state/" "$dir/edge-001.yaml"
    printf 'server: "%s"\nreconnect: {first: 50ms, longest: 200ms, connect_timeout: %s}\n' "$server" "${timeout:-10s}"
    printf '%s\n' "$@"; } >"$dir/$name.yaml"
  mkdir "$dir/$name.state" && cp -rp "$dir/edge-001.state/identity" "$dir/$name.state/"
  run_inside "$name"
}
credentials="proxy_credentials: \"$dir/password\""
other refused $server_host:22 "proxy: $proxy" "$credentials"
wait_for "a port that the proxy does not allow" in_log refused "403 Access violation: it does not allow connections to $server_host:22"
documented_log proxy-port "$dir/refused.log"
other away $server_host:9 "proxy: $proxy" "$credentials"
wait_for "a server that is away" in_log away "500 Unable to connect: it cannot reach $server_host:9"
documented_log proxy-server-away "$dir/away.log"
"$python" -c 'import socket
s = socket.create_server(("10.78.0.1", 3129))
print("listens", flush=True)
held = []
while True:
    held.append(s.accept())' >"$dir/silent.out" 2>&1 &
pid_of[silent]=$!
wait_for "a proxy that says nothing" grep -q listens "$dir/silent.out"
timeout=300ms other silence $server_host:7443 "proxy: 10.78.0.1:3129"
wait_for "that it does not answer" in_log silence "timed out after 300 ms: it accepts connections but does not answer CONNECT $server_host:7443"
documented_log proxy-silent "$dir/silence.log"
before=$(ctl srv clients --json | json "sum(c['accepted'] for c in d)")
wait_for "the federation goes on" accepted edge-001 $((before + 1))
for name in refused away silence; do check "$name goes on" running $name; done

### A configuration is checked as a start would
{ sed '/^proxy/d' "$dir/edge-001.yaml"; echo "proxy: http://ann:s3cret@$proxy"; } >"$dir/bad.yaml"
says "a password in the file" 3 "belong into a file that others cannot read" "$clientd" --check-config "$dir/bad.yaml"
{ sed '/^proxy/d' "$dir/edge-001.yaml"; echo "proxy: proxy.example"; } >"$dir/bad.yaml"
says "a proxy without a port" 3 "bad.yaml:" "$clientd" --check-config "$dir/bad.yaml"
{ sed '/^proxy_/d' "$dir/edge-001.yaml"; echo "proxy_credentials: $dir/none"; } >"$dir/bad.yaml"
says "credentials that are not there" 3 "cannot open '$dir/none'" "$clientd" --check-config "$dir/bad.yaml"
equal "no password in a log" "" "$(grep -lF s3cret "$dir"/*.log "$dir"/*.out)"
finish
