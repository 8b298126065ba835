#!/usr/bin/env bash
# The operator's side of who takes part: inviting, certificates, revoking, an admin over TLS, the audit; with a client
# that joins and is sent away.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
flctl=$build/flctl
synthetic "$dir/data" 1 --seed 3
state=$dir/srv.state
me="uid $(id -u) ($(id -un))"
port_of() { sed -n "s/^$1 127.0.0.1://p" "$dir/srv.out"; }
c() { # name, exit code, text, arguments…
  local name=$1 want=$2 text=$3
  shift 3
  says "$name" "$want" "$text" "$flctl" -d "$state" "$@"
}

### Command line
c "nobody is invited" 2 "invite: expected the name of a client or a pattern of names, or --many FILE" invite
c "two names" 2 "invite: unexpected argument 'b'" invite a b
c "no name" 2 "invite: 'a/b' is neither a name" invite a/b
c "no label" 2 "invite: 'site' is not a label such as site=lab-7" invite a --labels site
c "no span" 2 "--valid: expected a duration such as 10s, at least 1ms, found 'soon'" invite a --valid soon
for span in 1000us 1ms 1s 1m 1h 1d; do c "a span of $span" 2 "is not a label" --valid $span invite a --labels site; done
c "no uses" 2 "--uses: expected a number from 1 on, found '0'" invite a --uses 0
c "no file of names" 1 "invite: cannot read '$dir/none'" invite --many "$dir/none"
printf 'good-1 site=a\n\n# nobody\nbad/2\n' >"$dir/names"
c "a bad line" 2 "$dir/names:4: 'bad/2' is neither a name (1 to 127 of [A-Za-z0-9._-], not starting with a dot) nor a pattern of names, with * and ?; no invitation was made" invite --many "$dir/names"
c "revoke whom" 2 "revoke: expected a name, or --serial, or --public-key" revoke
c "revoke twice" 2 "revoke: expected a name, or --serial, or --public-key" revoke a --serial 12
c "evict is for names" 2 "evict: expected the name of a client: all of its certificates are revoked" evict --serial 12
c "no serial" 2 "--serial: expected up to 20 bytes in hexadecimal digits" revoke --yes --serial 1g
c "no key" 2 "--public-key: expected 64 hexadecimal digits" disable --public-key 1234
c "no prefix" 2 "uninvite: expected the four letters" uninvite abc
c "a slip" 2 "unknown command 'invit', did you mean 'invite'?" invit
c "an admin without a place" 2 "--output DIR is required" admin-certificate ops-1
c "a server without an identity" 2 "--server needs --identity DIR" --server localhost:1 status

### A server that knows no certificates
write_server srv "model: {preset: dnn60}"
start_server srv
for command in "invite a" invitations "uninvite abcd" certificates "revoke a --yes" "evict a" "disable a" "enable a" audit; do
  # shellcheck disable=SC2086
  c "$command without TLS" 1 "FAILED_PRECONDITION: no address of this server uses TLS" $command
done
c "what is done stands in the log" 0 "paused" pause
has_line "by whom" "$dir/srv.log" "audit: pause: ok by=\"uid $(id -u)\""
stop srv

### One that does
rm -rf "$state"
{
  echo "federation: integ"
  echo "state_dir: \"$state\""
  echo "listen: [\"127.0.0.1:0\"]"
  echo "listen_admin: [\"127.0.0.1:0\"]"
  echo "identity: {hosts: [localhost, 127.0.0.1]}"
  echo "model: {preset: dnn60}"
} >"$dir/srv.yaml"
check "the federation gets its identity" "$build/fl-serverd" --init "$dir/srv.yaml"
start_server srv
wait_for "the admin socket" grep -q "^admin unix:" "$dir/srv.out"
port=$(port_of listening) admin_port=$(port_of admin)
"$flctl" -d "$state" invite edge-01 --labels site=north,rack=7 >"$dir/line" 2>"$dir/explained" || note_failure "invite"
equal "one line" 1 "$(wc -l <"$dir/line")"
check "which is an invitation" grep -qE "^fl1:localhost:$port,127.0.0.1:$port:integ:[A-Za-z0-9_-]{43}:[A-Za-z0-9_-]{28}$" "$dir/line"
token=$(sed 's/.*://' "$dir/line")
prefix=${token:0:4}
has_line "what it is stands elsewhere" "$dir/explained" "flctl: invitation $prefix for 'edge-01', until "
lacks_line "without the secret" "$dir/explained" "${token:4}"
c "it is listed" 0 "$prefix   edge-01" invitations
c "with its labels" 0 "labels site=north rack=7" invitations
c "a file with a bad name invites nobody" 2 "no invitation was made" invite --many "$dir/names"
printf 'fleet-1 site=a\nfleet-2\n' | "$flctl" -d "$state" invite --many - >"$dir/many" 2>"$dir/explained"
equal "a line for each" "fleet-1 fleet-2" "$(cut -f 1 "$dir/many" | paste -sd ' ')"
equal "three are invited" 3 "$("$flctl" -d "$state" invitations --json | json 'len(d)')"
second=$(sed -n 's/^fleet-2.*:\(....\)[^:]*$/\1/p' "$dir/many")
c "one is taken back" 0 "invitation for 'fleet-2' withdrawn, no more clients can join with it" uninvite -- "$second"
c "nobody is invited by an option's name" 1 "'-fleet'" invite -- -fleet
c "twice is as good as once" 0 "no more clients can join with it" uninvite -- "$second"
c "which is not there" 1 "NOT_FOUND: no invitation begins with 'zzzz'" uninvite zzzz
equal "two are left" 2 "$("$flctl" -d "$state" invitations --json | json 'len(d)')"
equal "the other is known" withdrawn "$("$flctl" -d "$state" invitations --all --json | json '[i["state"] for i in d if i["name"] == "fleet-2"][0]')"

### A client joins, and takes part
cat >"$dir/edge.yaml" <<END
server: "localhost:$port"
name: edge-01
state_dir: "$dir/edge.state"
data: {path: "$dir/data/client-000"}
summaries: yes
reconnect: {first: 50ms, longest: 200ms}
END
check "it joins" "$build/fl-clientd" --join "$dir/edge.yaml" <"$dir/line"
run_client edge
connected() { [ "$("$flctl" -d "$state" status --json | json 'd["clients_connected"]')" = "$1" ]; }
wait_for "the client" connected 1
c "it has a certificate" 0 "edge-01              client valid" certificates
equal "by the invitation" "['invitation $prefix']" "$("$flctl" -d "$state" certificates edge-01 --json | json '[x["by"] for x in d]')"
c "its key is told with its name" 0 "public key " certificates edge-01
c "the invitation is used" 0 "used          1 of 1" invitations --all
c "who is somebody's slip" 1 "did you mean 'edge-01'?" evict edge-1
c "a misspelled name is not revoked" 1 "NOT_FOUND: 'edge-1' is not known here: it has no certificate, no invitation and no record" revoke edge-1 --yes
has_line "and is told what was meant" "$dir/says.out" "to revoke it all the same, add --force; did you mean 'edge-01'?"
c "nor disabled" 1 "'nobody' is not known here" disable nobody
c "nor is a certificate" 1 "the certificate 5f0a is not known here" revoke --serial 5f0a --yes
c "with --force it is" 0 "'sold-1' is revoked permanently and no client can join by this name again: 0 certificates" revoke sold-1 --force --yes
c "and cannot be invited" 1 "PERMISSION_DENIED: the name 'sold-1' is permanently revoked" invite sold-1
check "a name is invited" "$flctl" -d "$state" invite lent-1 >/dev/null 2>&1
c "so it is disabled" 0 "'lent-1' is disabled until flctl enable" disable lent-1
c "a revocation wants a yes" 2 "revoke: revocation is permanent: without a terminal to confirm it, add --yes" revoke edge-01
cat >"$dir/answer.py" <<'PY'
# What is typed at a terminal, then the command: its exit code, what is printed.
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
while b"[y/N]" not in said:
    said += os.read(fd, 4096)
os.write(fd, sys.argv[1].encode() + b"\n")
try:
    while chunk := os.read(fd, 4096):
        said += chunk
except OSError:
    pass
print(said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
says "at a terminal it is asked for" 1 "not confirmed, nothing was changed" \
  "$python" "$dir/answer.py" n "$flctl" -d "$state" revoke edge-01
has_line "and says what it means" "$dir/says.out" "revoke client or admin 'edge-01' permanently, with its certificates, their keys and the name?"
c "nothing is changed" 0 "edge-01              client valid" certificates
c "a client is disabled" 0 "'edge-01' is disabled until flctl enable: 1 certificate, 1 session; it ends within a second" disable edge-01 --reason "looks odd"
wait_for "it to be away" connected 0
c "that is seen" 0 "edge-01              client disabled" certificates
stop edge
: >"$dir/edge.log" # Its first run was told so, too.
run_client edge
wait_for "it to be told why" in_log edge "looks odd"
stop edge
c "and enabled" 0 "'edge-01' is enabled and may connect at its next attempt: within a minute" enable edge-01
run_client edge
wait_for "it to be back" connected 1
serial=$("$flctl" -d "$state" certificates edge-01 --json | json 'd[0]["serial"]')
c "one certificate is revoked" 0 "the certificate $serial is revoked permanently" revoke --yes --serial "$serial" --reason stolen
wait_for "it to be away" connected 0
stop edge

### An admin over TLS
c "an admin gets a certificate" 0 "admin.key, admin.pem and roots.pem" admin-certificate ops-1 --output "$dir/ops"
equal "its key is its own" 600 "$(stat -c %a "$dir/ops/admin.key")"
c "nothing is written over" 1 "exists already: choose another --output" admin-certificate ops-1 --output "$dir/ops"
c "a name is had once" 1 "ALREADY_EXISTS" admin-certificate ops-1 --output "$dir/again"
check "then no key is left behind" test ! -e "$dir/again"
remote=("$flctl" --server "localhost:$admin_port" --identity "$dir/ops")
says "it looks" 0 "federation  integ" "${remote[@]}" status
says "and acts" 0 "paused by the operator: from afar" "${remote[@]}" pause --reason "from afar"
says "not where clients are" 1 "UNIMPLEMENTED" "$flctl" --server "localhost:$port" --identity "$dir/ops" status
says "a folder without an identity" 1 "flctl admin-certificate NAME --output DIR, and use DIR as --identity" \
  "$flctl" --server "localhost:$admin_port" --identity "$dir" status
says "no server listens there" 3 "no fl-serverd at 'localhost:1'" "$flctl" --server localhost:1 --identity "$dir/ops" status
faketime=$(find /usr/lib /usr/lib64 -name libfaketime.so.1 2>/dev/null | head -n 1)
if [ -n "$faketime" ] && ! ldd "$flctl" | grep -q 'lib[at]san'; then
  says "in its last third the command is named" 0 "run on the server's host: flctl admin-certificate ops-1 --output DIR" \
    env LD_PRELOAD="$faketime" FAKETIME=+25d "${remote[@]}" status
else
  echo "not run: an admin's certificate in its last third (libfaketime is not here, or does not go with a sanitizer)"
fi
c "it is disabled" 0 "'ops-1' is disabled until flctl enable: 1 certificate" disable ops-1
says "and may nothing" 1 "PERMISSION_DENIED: 'ops-1' was disabled at " "${remote[@]}" status

### Who did what
for command in resume "abort-round --reason why-not" "pin --round 0" "unpin --round 0" "rollback 999999" "clients forget nobody"; do
  # shellcheck disable=SC2086
  "$flctl" -d "$state" $command >/dev/null 2>&1
done
"$flctl" -d "$state" -o "$dir/model.safetensors" export >/dev/null 2>&1
kill -HUP "${pid_of[srv]}"
wait_for "the reload to be written down" in_log srv "audit: reload $dir/srv.yaml: ok"
"$flctl" -d "$state" audit --json >"$dir/audit.json"
audit() { json "$1" <"$dir/audit.json"; }
for what in invite withdraw join disable enable revoke pause resume abort-round pin unpin rollback forget export reload "admin certificate"; do
  equal "$what is in the audit" True "$(audit "any(l['what'] == '$what' for l in d)")"
done
equal "with who did it" "['$me']" "$(audit "sorted({l['who'] for l in d if l['what'] in ('invite', 'disable', 'pin', 'export')})")"
equal "an admin by its certificate" True "$(audit "any(l['what'] == 'pause' and l['who'].startswith('admin ops-1, serial ') and l['object'] == 'from afar' for l in d)")"
equal "what came of it" True "$(audit "any(l['what'] == 'rollback' and l['object'] == 'round 999999' and l['result'] != 'ok' for l in d)")"
equal "numbers and times run on" True "$(audit 'all(a["number"] < b["number"] and a["time_ms"] <= b["time_ms"] for a, b in zip(d, d[1:]))')"
equal "the newest two" 2 "$("$flctl" -d "$state" audit --last 2 --json | json 'len(d)')"
for file in "$dir/srv.log" "$dir/audit.json" "$state/identity/identity.db"; do
  lacks_line "no secret in $(basename "$file")" "$file" "${token:4}"
done
c "drain is the last" 0 "the server" drain
wait_end srv
equal "the server ends well" 0 "$rc"
start_server srv
equal "and outlives a restart" True "$("$flctl" -d "$state" audit --json | json 'd[-1]["what"] == "drain"')"
stop srv
finish
