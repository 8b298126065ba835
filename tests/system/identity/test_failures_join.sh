#!/usr/bin/env bash
# Each failure of docs/operating.md#failures has its message, and the page says it: here those of a federation's own identity and of
# joining. What is not for good goes on with the same line; nothing that was given out is lost.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
command -v openssl >/dev/null || skip "openssl(1) is not there"
cd "$dir" || exit 99
serverd=$build/fl-serverd
clientd=$build/fl-clientd
write_own() { # name, lines of YAML…
  local name=$1
  shift
  write_server "$name" "model: {preset: dnn60}" "listen: [\"127.0.0.1:0\"]" "identity: {hosts: [127.0.0.1]}" "$@"
  sed -i '/^insecure:/d' "$name.yaml"
}

### The server's folder
write_own srv
documented identity-none "$serverd" srv.yaml
check "the federation gets its identity" "$serverd" --init srv.yaml
cp -rp srv.state kept.state
id=srv.state/identity
again() { rm -rf srv.state && cp -rp kept.state srv.state; }
damaged() { # file: its first bytes only
  head -c 100 "kept.state/identity/$1" >"$id/$1"
}
chmod 644 $id/intermediate.key
documented identity-key-open "$serverd" srv.yaml
again
chmod 755 $id
documented identity-open "$serverd" srv.yaml
again
damaged server.pem
documented identity-half "$serverd" srv.yaml
again
damaged intermediate.key
documented identity-key-half "$serverd" srv.yaml
again
cp kept.state/identity/root.key $id/intermediate.key
documented identity-key-other "$serverd" srv.yaml
again
rm -f $id/identity.db-*
head -c 5000 /dev/urandom >$id/identity.db
documented identity-database "$serverd" srv.yaml
again
if [ "$(id -u)" -eq 0 ]; then
  chown 65534 $id
  documented identity-user "$serverd" srv.yaml
  documented identity-user "$serverd" --init srv.yaml
  again
else
  echo "not run: an identity of another user (only root can make it)"
fi

### A misspelt `federation` is compared with both databases before either takes its name
misspelt() { sed 's/^federation:.*/federation: misspelt/' "$1" >misspelt.yaml; }
write_own named
check "an identity alone" "$serverd" --init named.yaml
misspelt named.yaml
documented identity-federation-empty "$serverd" misspelt.yaml
documented identity-federation-empty "$serverd" --check-config misspelt.yaml
check "nothing is written under that name" test ! -e named.state/federation.db
says "nor by --recover" 4 "belongs to federation 'integ'" "$serverd" --recover misspelt.yaml
write_own fresh
misspelt fresh.yaml
says "a first start with a misspelt name, without an identity" 8 "there is no identity" "$serverd" misspelt.yaml
check "it writes nothing" test ! -e fresh.state
check "so the right name can have an identity" "$serverd" --init fresh.yaml
start_server fresh
stop fresh
rm -r fresh.state
{ cat misspelt.yaml; echo "insecure: yes"; } >plain.yaml
mv fresh.yaml tls.yaml
mv plain.yaml fresh.yaml
start_server fresh # without TLS it needs no identity
stop fresh
mv tls.yaml fresh.yaml
says "--init compares with the records" 8 "belongs to federation 'misspelt'" "$serverd" --init fresh.yaml
check "and makes no identity" test ! -e fresh.state/identity
documented state-federation-empty "$serverd" fresh.yaml
rm -r fresh.state/federation.db* fresh.state/models fresh.state/spool # as it says
check "the documented way out: the identity of the right name" "$serverd" --init fresh.yaml
start_server fresh
stop fresh

### Lines
start_server srv || finish
invite() { ctl srv invite "$@" 2>invite.out || note_failure "flctl invite $*: $(cat invite.out)"; }
join() { # line, more arguments: what has to be run for it, in a folder of its own
  printf '%s\n' "$1" >line
  shift
  rm -rf new.state new.yaml
  joining=("$clientd" --join --invitation line --state-dir new.state "$@" new.yaml)
}
nothing_made() {
  check "$1: no certificate" test ! -e new.state/identity/client.pem
  check "$1: no configuration" test ! -e new.yaml
}
audited() { tail -n "+$((before + 1))" srv.log | grep -F "audit: join" >there.log; }
first=$(invite edge-1)
printf '%s\n' "$first" >line
check "a client joins" "$clientd" --join --invitation line --state-dir edge-1.state edge-1.yaml
join "$first"
before=$(wc -l <srv.log)
documented token-used "${joining[@]}"
nothing_made token-used
# Of refused joins the first of an address within an hour is a line.
wait_for "the audit" audited
documented_log token-used-there there.log
second=$(invite edge-2)
join "${second%???}xyz"
documented token-misspelt "${joining[@]}"
nothing_made token-misspelt
join "${second:0:60}"
documented line-half "${joining[@]}"
nothing_made line-half
join ""
documented line-empty "${joining[@]}"
nothing_made line-empty
join "$second" --name edge-9
documented name-invited "${joining[@]}"
nothing_made name-invited
join "$(sed 's/:[^:]*:\([^:]*\)$/:'"$(printf 'C%.0s' {1..42})A"':\1/' <<<"$second")"
before=$(wc -l <srv.log)
documented pin-other "${joining[@]}"
nothing_made pin-other
tail -n "+$((before + 1))" srv.log >there.log
documented_log pin-other-there there.log
join "$(sed 's/:integ:/:other:/' <<<"$second")"
documented federation-asked "${joining[@]}"
nothing_made federation-asked
token=${second##*:}
ctl srv uninvite -- "${token:0:4}" >/dev/null
join "$second"
documented token-withdrawn "${joining[@]}"
nothing_made token-withdrawn
third=$(invite edge-3 --valid 1s)
over() { ctl srv invitations --all --json | json 'any(i["name"] == "edge-3" and i["ends_ms"] < '"$(date +%s)"'000 for i in d)'; }
wait_for "the end of an invitation" over
join "$third"
documented token-over "${joining[@]}"
nothing_made token-over
many=$(invite 'edge-*' --uses 9)
join "$many" --name edge-1
documented name-taken "${joining[@]}"
nothing_made name-taken
join "$many" --name north-1
documented name-pattern "${joining[@]}"
nothing_made name-pattern
join "$many"
documented name-missing "${joining[@]}"
nothing_made name-missing
ctl srv revoke edge-1 --yes --reason stolen >/dev/null
join "$many" --name edge-1
documented name-revoked "${joining[@]}"
nothing_made name-revoked
documented invite-revoked "$build/flctl" --state-dir srv.state invite edge-1

### Where it goes to
join "$(sed 's/^\(fl1:[^:]*\):[0-9]*:/\1:1:/' <<<"$many")" --name edge-5
documented join-no-server "${joining[@]}"
nothing_made join-no-server
write_server plain "model: {preset: dnn60}" "listen: [\"127.0.0.1:0\"]"
start_server plain
join "$(sed "s/^\(fl1:[^:]*\):[0-9]*:/\1:${address##*:}:/" <<<"$many")" --name edge-5
documented join-plain "${joining[@]}"
nothing_made join-plain
stop plain

### A full disk, after the server has given the certificate: no file may be larger than 1 KiB. Then there is room again.
join "$many" --name edge-6
documented join-disk bash -c 'ulimit -f 1 && exec "$@"' limited "${joining[@]}"
nothing_made join-disk
certificates() { ctl srv certificates "$1" --all --json | json 'len(d)'; }
equal "the server has given one" 1 "$(certificates edge-6)"
check "with room the same line goes on" "${joining[@]}"
equal "it is the same one" 1 "$(certificates edge-6)"

documented join-arguments "$clientd" --join "$many"

### The folder of a client
id=new.state/identity
mkdir data
printf '1,2,0\n3,4,1\n' >data/train.csv
sed -i "s|/srv/fl/data|$dir/data|" new.yaml
chmod 777 $id
documented client-folder-open "$clientd" --join --invitation line new.yaml
chmod 700 $id
cp -rp new.state full.state
back() { rm -rf new.state && cp -rp full.state new.state; }
chmod 644 $id/client.key
documented client-key-open "$clientd" new.yaml
back
head -c 100 full.state/identity/client.pem >$id/client.pem
documented client-half "$clientd" new.yaml
back
cp edge-1.state/identity/client.key $id/client.key
documented client-key-other "$clientd" new.yaml
back
sed -i 's/^name:.*/name: edge-7/' new.yaml
documented client-name "$clientd" new.yaml
sed -i 's/^name:.*/name: edge-6/' new.yaml
sed 's/^state_dir:.*/state_dir: nowhere/' new.yaml >nowhere.yaml
documented client-none "$clientd" nowhere.yaml

### Clocks that are years off
faketime=$(find /usr/lib /usr/lib64 -name libfaketime.so.1 2>/dev/null | head -n 1)
if [ -z "$faketime" ] || ldd "$serverd" | grep -q 'lib[at]san'; then
  echo "not run: clocks that are years off (libfaketime is not here, or does not go with a sanitizer)"
  finish
fi
away() { # span, name, command…: runs in NAME.log
  local span=$1 name=$2
  shift 2
  # The library reads a time in the zone of the host.
  env TZ=UTC0 LD_PRELOAD="$faketime" FAKETIME="$span" "$@" >"$name.log" 2>&1 &
  pid_of[$name]=$!
}
leave() { # name; the library leaves its clock behind
  local pid=${pid_of[$1]}
  stop "$1"
  rm -f "/dev/shm/faketime_shm_$pid" "/dev/shm/sem.faketime_sem_$pid"
}
sed -i '/^reconnect:/d' new.yaml
echo "reconnect: {after_refusal: 20m}" >>new.yaml
away -6y behind "$clientd" new.yaml
wait_for "a clock that is years behind" in_log behind "waiting for the time service"
documented_log clock-behind behind.log
leave behind
before=$(wc -l <srv.log)
away +6y ahead "$clientd" new.yaml
wait_for "a clock that is years ahead" in_log ahead "reconnecting in "
documented_log clock-ahead ahead.log
tail -n "+$((before + 1))" srv.log >there.log
documented_log clock-ahead-there there.log
leave ahead
join "$many" --name edge-8
documented clock-ahead-joining env LD_PRELOAD="$faketime" FAKETIME=+6y "${joining[@]}"
away "@1970-01-01 00:00:10" unset "${joining[@]}"
wait_for "a clock that was never set" in_log unset "waiting for the time service"
documented_log clock-unset unset.log
leave unset
stop srv
rm -r named.state/identity && cp -rp srv.state/identity named.state/
misspelt named.yaml
documented identity-federation "$serverd" misspelt.yaml
documented server-clock-behind env LD_PRELOAD="$faketime" FAKETIME=-6y "$serverd" srv.yaml
finish
