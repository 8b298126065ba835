#!/usr/bin/env bash
# A client with several addresses in `server`: it takes the first one that works, also when another does not answer, is not of
# this name or is another federation's, and finds the next when its own goes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 1 --seed 3
clientd=$build/fl-clientd
write_tls() { # name, hosts, lines of YAML…
  local name=$1 hosts=$2
  shift 2
  write_server "$name" "model: {preset: dnn60}" "rounds: 1000000" "heartbeat: 200ms" \
    "round: {start_clients: 1, min_responders: 1, retry: 20ms}" "identity: {hosts: [$hosts]}" "$@"
  sed -i '/^insecure:/d' "$dir/$name.yaml"
}
port_of() { # name, number of the line
  sed -n 's/^listening .*:\([0-9]*\)$/\1/p' "$dir/$1.out" | sed -n "$2p"
}
write_tls srv "127.0.0.1, 127.0.0.2" "listen: [\"127.0.0.1:0\", \"127.0.0.2:0\", \"127.0.0.3:0\"]"
write_tls other "127.0.0.1, 127.0.0.4" "listen: [\"127.0.0.4:0\"]"
for name in srv other; do
  check "$name gets its identity" "$build/fl-serverd" --init "$dir/$name.yaml"
  start_server $name || finish
done
one=127.0.0.1:$(port_of srv 1) two=127.0.0.2:$(port_of srv 2) three=127.0.0.3:$(port_of srv 3) foreign=127.0.0.4:$(port_of other 1)
ctl srv invite a >"$dir/line" 2>"$dir/invite.out"
says "it joins" 0 "joined 'integ' as 'a'" "$clientd" --join --invitation "$dir/line" --data "$dir/data/client-000" \
  --state-dir "$dir/a.state" "$dir/first.yaml"
{ sed '/^server:/d' "$dir/first.yaml"
  printf 'server: ["127.0.0.5:1", "%s", "%s", "%s", "%s"]\nreconnect: {first: 20ms, longest: 100ms}\n' "$foreign" "$three" "$one" "$two"
} >"$dir/a.yaml"
check "the addresses are accepted" "$clientd" --check-config "$dir/a.yaml"
accepted() { # number: so many updates were accepted
  ctl srv clients --json | json "any(c['name'] == 'a' and c['accepted'] >= $1 for c in d)"
}
run_client a
wait_for "an update at the fourth address" accepted 1
has_line "nothing listens at the first" "$dir/a.log" "no connection to '127.0.0.5:1': cannot connect to 127.0.0.5:1: connection refused: nothing listens there; check host and port, and that its program runs; trying '$foreign' next"
has_line "the second is another federation's" "$dir/a.log" "is not trusted here"
has_line "the certificate is not for the third" "$dir/a.log" "is not that of '127.0.0.3', its names are 127.0.0.1, 127.0.0.2"
has_line "it is this one's server" "$dir/a.log" "trying '$one' next"
lacks_line "the fifth is not needed" "$dir/a.log" "trying '$two' next"

### The address goes, the server remains
stop srv
sed -i "s/^listen: .*/listen: [\"$two\"]/" "$dir/srv.yaml"
start_server srv || finish
before=$(ctl srv clients --json | json "sum(c['accepted'] for c in d)")
wait_for "an update at the fifth address" accepted $((before + 1))
has_line "the fourth did not answer" "$dir/a.log" "trying '$two' next"
check "it runs" running a

### What cannot be
bad() { # text, value of server
  { sed '/^server:/d' "$dir/first.yaml"; echo "server: $2"; } >"$dir/bad.yaml"
  says "server: $2" 3 "$1" "$clientd" --check-config "$dir/bad.yaml"
}
bad "bad.yaml:6: key 'server': expected 1 to 16 addresses, found 0" "[]"
bad "expected 1 to 16 addresses, found 17" "[$(printf '"127.0.0.1:7", %.0s' {1..17})]"
bad "the port is missing" "[\"$one\", fl.example.org]"
finish
