#!/usr/bin/env bash
# From nothing to a client that takes part: one command on the server, two on the client's host, nothing
# carried but a line, which nobody sees. What is lost or killed on the way is asked for again with the same
# line; what is refused says why. Then certificates renew themselves, and are taken back.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3

clientd=$build/fl-clientd
# A server that is started again has to be where the line says.
port=$("$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
# name, lines of YAML…
write_tls_server() {
  local name=$1
  shift
  write_server "$name" "listen: [\"127.0.0.1:$port\"]" "model: {preset: dnn60}" \
    "round: {start_clients: 1, min_responders: 1, retry: 20ms}" "identity: {${identity:+$identity, }hosts: [127.0.0.1, localhost]}" "$@"
  sed -i '/^insecure:/d' "$dir/$name.yaml"
}
accepted() { # name of a client: an update of it was accepted
  ctl srv clients --json | json "any(c['name'] == '$1' and c['accepted'] > 0 for c in d)"
}
certificates() { # name: how many of it there are
  ctl srv certificates "$1" --all --json | json 'len(d)'
}
invite() { # arguments of flctl invite…: prints the line, from a file of its own
  ctl srv invite "$@" >"$dir/line" 2>"$dir/invite.out" || note_failure "flctl invite $*: $(cat "$dir/invite.out")"
  cat "$dir/line"
}
on_client=0 on_server=0

### The server: its root, and it runs
write_tls_server srv "rounds: 1000000"
says "a server makes its certificates" 0 "" "$build/fl-serverd" --init "$dir/srv.yaml"
start_server srv || finish

### One command on the server, two on the client's host
began=$EPOCHREALTIME
on_server=$((on_server + 1)); ctl srv invite edge-001 >"$dir/line" 2>"$dir/invite.out"
on_client=$((on_client + 1)); "$clientd" --join --data "$dir/data/client-000" --state-dir "$dir/edge-001.state" \
  "$dir/edge-001.yaml" <"$dir/line" >"$dir/join.out" 2>"$dir/join.log"
equal "fl-clientd --join" 0 $?
on_client=$((on_client + 1)); run_client edge-001
wait_for "the first accepted update" accepted edge-001
took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
echo "from the invitation to the first accepted update: $took s, $on_server command on the server, $on_client on the client"
equal "commands on the server" 1 "$on_server"
equal "commands on the client" 2 "$on_client"
if awk -v load="$(cut -d' ' -f1 /proc/loadavg)" -v n="$(nproc)" 'BEGIN { exit load >= n }'; then
  check "that takes less than 15 s" test "${took%.*}" -lt 15
else
  echo "not asserted: load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) processors"
fi
has_line "says who it is now" "$dir/join.out" "joined 'integ' as 'edge-001'"
has_line "says what to do next" "$dir/join.out" "next: fl-clientd $dir/edge-001.yaml"
equal "the key is for its owner" 600 "$(stat -c %a "$dir/edge-001.state/identity/client.key")"
equal "the folder too" 700 "$(stat -c %a "$dir/edge-001.state/identity")"
has_line "the first configuration names the server" "$dir/edge-001.yaml" "server: [\"$address\", \"localhost:${address##*:}\"]"

### The line is nowhere
# What stands behind the part of the token that is public, as a file: what looks for it must not show it itself.
keep_secret() {
  sed 's/.*:....\(.\{20\}\).*/\1/' "$dir/line" >"$dir/secret.txt"
  equal "there is something to look for" 20 "$(tr -d '\n' <"$dir/secret.txt" | wc -c)"
}
nowhere() { # what, files and folders…
  local what=$1
  shift
  equal "$what: files with the token" "" "$(grep -raFl -f "$dir/secret.txt" "$@" 2>/dev/null)"
}
keep_secret
grep -qF -f "$dir/secret.txt" "$dir/line" || note_failure "the line has no such token"
nowhere "state of the client" "$dir/edge-001.state" "$dir/edge-001.yaml"
nowhere "state of the server" "$dir/srv.state"
nowhere "what both say" "$dir/join.out" "$dir/join.log" "$dir/edge-001.log" "$dir/srv.log" "$dir/srv.out"
ctl srv invitations --all --json >"$dir/invitations.out"
has_line "an invitation is listed" "$dir/invitations.out" "edge-001"
nowhere "the list of invitations, which shows them by their prefix," "$dir/invitations.out"

### Nor in the process list, looked at while a server that does not answer keeps the client waiting
invite edge-002 >/dev/null
keep_secret
kill -STOP "${pid_of[srv]}"
join_edge2() {
  "$clientd" --join --data "$dir/data/client-001" --state-dir "$dir/edge-002.state" "$dir/edge-002.yaml" \
    <"$dir/line" >"$dir/join2.out" 2>"$dir/join2.log" &
  pid_of[join2]=$!
}
join_edge2
wait_for "the key, which comes before the request" test -s "$dir/edge-002.state/identity/next.key"
equal "it is in the process list" 1 "$(tr '\0' ' ' <"/proc/${pid_of[join2]}/cmdline" | grep -c -- --join)"
nowhere "arguments and environment of all processes" /proc/[0-9]*/cmdline /proc/[0-9]*/environ

### Killed there, and the server too: the same line goes on
kill_hard join2
kill -CONT "${pid_of[srv]}"
kill_hard srv
start_server srv || finish
join_edge2
wait_end join2
equal "the same line after two kills" 0 "$rc"
equal "one certificate" 1 "$(certificates edge-002)"
says "the same line once more" 0 "joined 'integ' as 'edge-002'" sh -c "'$clientd' --join '$dir/edge-002.yaml' <'$dir/line'"
equal "still one certificate" 1 "$(certificates edge-002)"
"$clientd" --check-config "$dir/edge-002.yaml" >"$dir/check2.out" 2>&1
has_line "and a configuration that a start takes" "$dir/check2.out" "ok: client 'edge-002'"

### What is refused
line=$(cat "$dir/line")
join_new() { # exit code, text, line, more arguments
  local code=$1 text=$2 with=$3
  shift 3
  rm -rf "$dir/new.state" "$dir/new.yaml"
  printf '%s\n' "$with" >"$dir/new.line"
  says "${what:?}" "$code" "$text" "$clientd" --join --invitation "$dir/new.line" --state-dir "$dir/new.state" "$@" "$dir/new.yaml"
  check "$what: no identity" test ! -e "$dir/new.state/identity/client.pem"
  check "$what: no configuration" test ! -e "$dir/new.yaml"
}
what="a line that another key has used" join_new 7 "was used by another key, for 'edge-002'" "$line"
what="a token that nobody gave" join_new 7 "no invitation has this token" "${line%:*}:AAAA$(printf 'B%.0s' {1..24})"
what="another root" join_new 7 "127.0.0.1" "$(sed 's/:[^:]*:\([^:]*\)$/:'"$(printf 'C%.0s' {1..42})A"':\1/' <<<"$line")"
what="half a line" join_new 3 "new.line" "${line:0:60}"
what="no line at all" join_new 3 "new.line" ""
what="another name than the invitation's" join_new 7 "this invitation is for 'edge-003', but 'edge-004' was requested" "$(invite edge-003)" --name edge-004
what="a name that is an option" join_new 3 "expected 1 to 127 characters of A-Z a-z 0-9 . _ -" "$(invite edge-003)" --name=-edge
what="nobody there" join_new 1 "run the same command with the same invitation again" "$(sed 's/:[0-9]*\([,:]\)/:1\1/g' <<<"$line")"
rm -rf "$dir/new.state" "$dir/new.yaml"
invite edge-005 | sed 's/^\(fl1:[^:]*\):[0-9]*,/\1:1,/' >"$dir/new.line"
says "nobody at the first address" 0 "joined 'integ' as 'edge-005'" "$clientd" --join --invitation "$dir/new.line" --state-dir "$dir/new.state" "$dir/new.yaml"
has_line "the next one is tried" "$dir/says.out" "joining at '127.0.0.1:1' failed: "
has_line "at once" "$dir/says.out" "; trying the next address of the invitation"
has_line "the configuration has both" "$dir/new.yaml" "server: [\"127.0.0.1:1\", \"localhost:${address##*:}\"]"
rm -rf "$dir/new.state" "$dir/new.yaml"
says "a line among the arguments" 2 "invitation refused on the command line" "$clientd" --join "$line"
nowhere "what is said of that" "$dir/says.out"
says "or behind an option" 2 "invitation refused on the command line" "$clientd" --join "--invitation=$line"
printf 'server: "%s"\nname: x\nstate_dir: "%s"\ninsecure: yes\ndata: {path: d}\n' "$address" "$dir/new.state" >"$dir/plain.yaml"
says "for a client in plaintext" 3 "plaintext uses no certificates" "$clientd" --join --invitation "$dir/line" "$dir/plain.yaml"
says "with options of a first configuration beside one" 3 "exists already" \
  "$clientd" --join --invitation "$dir/line" --data x "$dir/edge-002.yaml"
rm -rf "$dir/new.state"
mkdir -p "$dir/new.state/identity" && chmod 777 "$dir/new.state/identity"
what="a folder that others can write to"
says "$what" 4 "chmod 700" "$clientd" --join --invitation "$dir/line" --state-dir "$dir/new.state" "$dir/new.yaml"
rm -rf "$dir/new.state"

### A credential: a fleet's hosts join by themselves, with a configuration that names nobody
mkdir -p "$dir/credentials"
invite 'fleet-*' --uses 2 --labels site=berlin >"$dir/credentials/invitation"
printf 'server: "%s"\nstate_dir: "%s"\ndata: {path: "%s"}\nname: fleet-7\n' "$address" "$dir/fleet.state" \
  "$dir/data/client-001" >"$dir/fleet.yaml"
says "without one it says what is missing" 4 "fl-clientd --join" "$clientd" "$dir/fleet.yaml"
CREDENTIALS_DIRECTORY=$dir/credentials run_client fleet
wait_for "a host that joins by itself" accepted fleet-7
stop fleet
run_client fleet # without the credential
joined_twice() { [ "$(grep -c "joined federation" "$dir/fleet.log")" = 2 ]; }
wait_for "and comes again without it" joined_twice
stop fleet

### One that meets the wrong server asks again, rarely, until it is the right one or somebody stops it
sed 's/fleet-7/fleet-8/; s/fleet.state/fleet8.state/' "$dir/fleet.yaml" >"$dir/fleet8.yaml"
awk -F: -v OFS=: '{$(NF-1) = "0000000000000000000000000000000000000000000" substr($(NF-1), 44)} 1' "$dir/credentials/invitation" >"$dir/wrong"
mkdir "$dir/wrong.d" && mv "$dir/wrong" "$dir/wrong.d/invitation"
CREDENTIALS_DIRECTORY=$dir/wrong.d run_client fleet8
wait_for "that it waits" in_log fleet8 "was refused, retrying within 60 s (the same"
check "it goes on" running fleet8
stop fleet8
equal "and ends when it is told to" 0 "$rc"
echo "reconnect: {after_refusal: 0s}" >>"$dir/fleet8.yaml"
CREDENTIALS_DIRECTORY=$dir/wrong.d run_client fleet8
wait_end fleet8
equal "with after_refusal: 0s a refusal is final" 7 "$rc"

### Root on a host with systemd: the service is started, once all is there that it needs. Here in folders of its own,
### and systemctl(1) is one that writes down what it is asked.
cat >"$dir/with_systemd" <<TEXT
#!/bin/sh
exec unshare -m sh -c 'mount --bind "$dir/root/etc" /etc && mount -t tmpfs none /var/lib && mount -t tmpfs none /run &&
  mkdir -p /run/systemd/system && PATH="$dir/root/bin:\$PATH" && exec "\$@"' sh "\$@" <"$dir/line"
TEXT
mkdir -p "$dir/root/etc/fl" "$dir/root/bin"
cp -a /etc/alternatives /etc/ld.so.cache "$dir/root/etc/" 2>"$dir/copy.out" # which libraries there are
printf '#!/bin/sh\necho "$@" >>"%s"\n[ "$1" != is-active ]\n' "$dir/root/asked" >"$dir/root/bin/systemctl"
chmod +x "$dir/root/bin/systemctl"
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
  invite edge-005 >/dev/null
  says "without the data it is told what is missing" 0 "next: put the data into $dir/none" \
    sh "$dir/with_systemd" "$clientd" --join --data "$dir/none" /etc/fl/client-a.yaml
  check "and nothing is started" test ! -e "$dir/root/asked"
  invite edge-006 >/dev/null
  says "with it the service runs" 0 "fl-clientd is running and starts at each boot" \
    sh "$dir/with_systemd" "$clientd" --join --data "$dir/data/client-000"
  equal "what systemctl was asked" "enable --quiet fl-clientd,is-active --quiet fl-clientd,restart --quiet fl-clientd," \
    "$(tr '\n' , <"$dir/root/asked")"
  has_line "and the configuration is where it is looked for" "$dir/root/etc/fl/client.yaml" 'state_dir: "/var/lib/fl-clientd"'
else
  echo "not run: mount namespaces need root"
fi

### Taken back: a session ends at once, the client says which command helps
sed -i '$a reconnect: {first: 50ms, longest: 200ms, after_refusal: 0s}' "$dir/edge-002.yaml"
run_client edge-002
wait_for "edge-002 to take part" accepted edge-002
ctl srv revoke edge-002 --yes --reason test >/dev/null
wait_end edge-002
equal "who is revoked is refused for good" 7 "$rc"
stop srv

### Certificates of seconds renew themselves, without an end of a session
identity="validity: 10s, back_date: 0s, grace: 1h"
write_tls_server srv "rounds: 1000000"
start_server srv || finish
invite short-1 >"$dir/short.line"
"$clientd" --join --data "$dir/data/client-000" --state-dir "$dir/short-1.state" "$dir/short-1.yaml" \
  <"$dir/short.line" >"$dir/join.out" 2>&1
run_client short-1
renewals() { [ "$(grep -c 'certificate renewed: name=short-1' "$dir/short-1.log")" -ge "$1" ]; }
wait_for "two renewals" renewals 2
equal "in one session" 1 "$(grep -c 'joined federation' "$dir/short-1.log")"
stop short-1

### One that was over when its host came back
over() {
  local end
  end=$(openssl x509 -in "$dir/short-1.state/identity/client.pem" -noout -enddate) &&
    [ "$(date -d "${end#*=}" +%s)" -lt "$(($(date +%s) - 1))" ]
}
if command -v openssl >/dev/null; then
  wait_for "the end of the certificate" over
  : >"$dir/short-1.log"
  run_client short-1
  wait_for "it to be renewed first" in_log short-1 "certificate expired: renewing it first"
  wait_for "and to take part" in_log short-1 "joined federation"
fi
finish
