#!/usr/bin/env bash
# Default deny: every method of every .proto, as the descriptors of reflection tell them, called by everybody over real
# connections; what has to come of it is the table of docs/security.md and nothing else.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
flctl=$build/flctl
probe=$build/tests/system/access_probe
state=$dir/srv.state
"$probe" 2>&1 | grep -q '^usage' || skip "access_probe is not built"
config() { # name, federation
  {
    echo "federation: $2"
    echo "state_dir: \"$dir/$1.state\""
    echo "listen: [\"127.0.0.1:0\"]"
    echo "listen_insecure: [\"127.0.0.1:0\"]"
    echo "listen_admin: [\"127.0.0.1:0\"]"
    # Certificates may begin a day ago: there are some that are over already.
    echo "identity: {hosts: [localhost], back_date: 24h, grace: 12h}"
    echo "model: {preset: mlr60}"
  } >"$dir/$1.yaml"
}
config srv integ
config other other
check "the federation has its identity" "$build/fl-serverd" --init "$dir/srv.yaml"
check "another one too" "$build/fl-serverd" --init "$dir/other.yaml"
mkdir "$dir/c"
synthetic "$dir/data" 1
"$probe" make "$state/identity" "$dir/other.state/identity" "$dir/c" >"$dir/made" || note_failure "no certificates"
serial_of() { awk -v k="$1" '$1 == k {print $2}' "$dir/made"; }
key_of() { awk -v k="$1" '$1 == k {print $3}' "$dir/made"; }
start_server srv
wait_for "the admin socket" grep -q "^admin unix:" "$dir/srv.out"
port=$(sed -n 's/^listening 127.0.0.1://p' "$dir/srv.out" | sed -n 1p)
plain_port=$(sed -n 's/^listening 127.0.0.1://p' "$dir/srv.out" | sed -n 2p)
admin_port=$(sed -n 's/^admin 127.0.0.1://p' "$dir/srv.out")
# --force: these certificates were not issued by the server.
check "a serial is revoked" "$flctl" -d "$state" revoke --yes --force --serial "$(serial_of revoked-serial)"
check "a key is revoked" "$flctl" -d "$state" revoke --yes --force --public-key "$(key_of revoked-key)"
check "a name is revoked" "$flctl" -d "$state" revoke --yes --force revoked-name
check "an admin is revoked" "$flctl" -d "$state" revoke --yes --force revoked-admin
check "a client is disabled" "$flctl" -d "$state" disable --force disabled

# address, what it is, who calls (a column of the table, or nobody), arguments of the probe
call() {
  local what=$1 as=$2 name=$3
  shift 3
  "$probe" call "$@" >"$dir/called" 2>>"$dir/probe.log" || note_failure "the probe as $name at $what"
  sed "s/^/$what $as $name /" "$dir/called" >>"$dir/all"
}
: >"$dir/all"
for place in clients:localhost:$port admins:localhost:$admin_port; do
  what=${place%%:*} at=${place#*:}
  call "$what" stranger nobody "$at" tls "$dir/c"
  for who in lapsed client admin; do call "$what" $who $who "$at" tls "$dir/c" $who; done
  for who in server expired expired-admin future foreign foreign-admin revoked-serial revoked-key revoked-name revoked-admin disabled; do
    call "$what" nobody $who "$at" tls "$dir/c" $who
  done
  call "$what" nobody plaintext "$at" plain
done
call clients plain plain "127.0.0.1:$plain_port" plain
call admins local root "unix:$state/admin.sock" plain

cat >"$dir/compare.py" <<'END'
import re, sys
page, calls = sys.argv[1:3]
columns, table = None, {}
for line in open(page):
    cells = [c.strip() for c in line.strip().strip("|").split("|")]
    if cells[0] == "calls":
        columns = cells[1:]
    elif columns and line.startswith("| `"):
        service, names = re.match(r"`([\w.]+)`: (.*)", cells[0]).groups()
        for name in names.split(", "):
            path = "/%s/%s" % (service, name)
            assert path not in table, path + " stands there twice"
            table[path] = {c for c, yes in zip(columns, cells[1:]) if yes}
    elif not line.startswith("|"):
        columns = None
seen, bad, tried = set(), [], 0
for line in open(calls):
    place, column, name, path, result = line.split()
    seen.add(path)
    tried += 1
    if path not in table:
        if path != "/fl.v1.Federation/NoSuchMethod":
            bad.append("%s has no row" % path)
        want = {"absent", "cut"} if column == "nobody" else {"absent"}
    elif (place == "admins") != path.startswith("/fl.v1.Admin/"):
        want = {"absent", "cut"} if column == "nobody" else {"absent"}
    elif column in table[path]:
        want = {"reached"}
    else:
        want = {"refused", "cut"} if column == "nobody" else {"refused"}
    if result not in want:
        bad.append("%s at the address of %s calls %s: %s, expected %s" % (name, place, path, result, " or ".join(sorted(want))))
for path in sorted(set(table) - seen):
    bad.append("%s is in the table and in no .proto" % path)
for line in sorted(set(bad)):
    print(line)
print("%d calls, %d methods" % (tried, len(seen) - 1))
sys.exit(bool(bad))
END
check "the table holds" "$python" "$dir/compare.py" "$srcdir/docs/security.md" "$dir/all"
tail -n 1 "$dir/check.out"
equal "everybody called everything" "$(($(wc -l <"$dir/called") * 34))" "$(wc -l <"$dir/all")"
equal "all methods of all .proto are called" "$(($(cat "$srcdir"/proto/fl/v1/*.proto "$srcdir"/proto/grpc/*.proto | grep -c '^ *rpc ') + 2))" "$(wc -l <"$dir/called")"
# Those that are cut say why: who is nobody never gets as far as a call.
for who in expired future foreign server; do
  equal "$who does not get in" cut "$(awk -v w=$who '$1 == "clients" && $3 == w {print $5}' "$dir/all" | sort -u)"
done
for text in "the certificate begins" "the certificate ended" "is not trusted here" "is not for a client"; do
  has_line "the log says so: $text" "$dir/srv.log" "$text"
done

### Strangers with tokens that nobody gave: as many as they like, and whoever was invited still gets in
check "they are answered" "$probe" crowd "localhost:$port" "$dir/c" 200
# The first ones hear that there is no such token, then the budget of their address is used up.
equal "in two ways" "PERMISSION_DENIED UNAVAILABLE" "$(cut -d' ' -f2 "$dir/check.out" | sort -u | paste -sd ' ')"
check "and who is gone before the answer harms nobody" "$probe" gone "localhost:$port" "$dir/c" 50
checks=$((checks + 1))
lines=$("$flctl" -d "$state" audit --last 1000 --json | json 'sum(l["what"] == "join" for l in d)')
[ "$lines" -ge 1 ] && [ "$lines" -le 3 ] || note_failure "$lines lines of audit for 250 wrong tokens"
printf 'server: "localhost:%s"\nname: edge-01\nstate_dir: "%s"\ndata: {path: "%s"}\n' "$port" "$dir/edge.state" "$dir/data/client-000" >"$dir/edge.yaml"
"$flctl" -d "$state" invite edge-01 2>/dev/null >"$dir/line"
check "an invited one joins from the same address" "$build/fl-clientd" --join "$dir/edge.yaml" <"$dir/line"

### A client without TLS: any name but one that has a certificate, or is revoked
plain_client() { # name of the files, name that it says
  write_client "$1" "$dir/data/client-000" "name: $2" "exit_when_done: no" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 0s}"
  run_client "$1"
}
refused() { # what, name of the files, text
  wait_end "$2"
  equal "$1" 7 "$rc"
  has_line "$1: it hears why" "$dir/$2.log" "$3"
}
address=127.0.0.1:$plain_port
plain_client own edge-01
refused "a name that has joined is refused in plaintext" own "'edge-01' has a certificate and is refused without TLS"
plain_client out revoked-name
refused "a revoked name is refused in plaintext" out "'revoked-name' was revoked"
"$flctl" -d "$state" disable --force edge-07 >/dev/null 2>&1
plain_client off edge-07
refused "a disabled name that never had a certificate, too" off "'edge-07' was disabled"
"$flctl" -d "$state" disable --force edge-08 >/dev/null 2>&1
write_client cured "$dir/data/client-000" "name: edge-08" "exit_when_done: no" "reconnect: {first: 50ms, longest: 200ms, after_refusal: 24h}"
run_client cured
wait_for "that it is refused" in_log cured "the server refused this client: 'edge-08' was disabled"
has_line "the client logs when it asks again" "$dir/cured.log" "flctl enable edge-08 on the server); reconnecting in "
"$flctl" -d "$state" enable edge-08 >/dev/null 2>&1
wait_for "a name that is enabled again joins within longest, not after_refusal" in_log srv "client 'edge-08' joined from"
stop cured
for k in 2 3; do
  plain_client plain-$k edge-0$k
  wait_for "edge-0$k without TLS" in_log srv "client 'edge-0$k' joined from"
done
"$flctl" -d "$state" revoke --yes edge-03 >/dev/null 2>&1
refused "a name that is revoked loses its session in plaintext" plain-3 "'edge-03' was revoked"
"$flctl" -d "$state" invite edge-02 2>/dev/null >"$dir/line"
sed "s,edge,edge-02,; s,^name:.*,name: edge-02," "$dir/edge.yaml" >"$dir/edge-02.yaml"
check "its name joins with a certificate" "$build/fl-clientd" --join "$dir/edge-02.yaml" <"$dir/line"
refused "a name that gets a certificate loses its session in plaintext" plain-2 "'edge-02' has a certificate"

### The other way round: nobody is taken for a server but a server
equal "a server is" "/t.T/M reached" "$("$probe" serve "$dir/c" server 2>>"$dir/probe.log")"
for who in client admin foreign; do
  equal "the certificate of $who is not a server's" "/t.T/M cut" "$("$probe" serve "$dir/c" $who 2>>"$dir/probe.log")"
done
stop srv
equal "the server ends well" 0 "$rc"
finish
