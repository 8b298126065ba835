#!/usr/bin/env bash
# docs/deploy.md as it stands: three empty machines, the packages, an invitation for each client, a finished federation over
# TLS. Then what becomes of it: an upgrade and a lost host in the middle of a round, certificates that are renewed, a client
# that is revoked.
# shellcheck source=tests/system/hosts/lib.sh
. "$(dirname "$0")/lib.sh"
hosts_begin "$@"
# shellcheck source=tests/system/hosts/federation.sh
. "$(dirname "$0")/federation.sh"
# shellcheck source=tests/lib/packages.sh
. "$(dirname "$0")/../../../lib/packages.sh"
packages_wanted
packages
page=$srcdir/docs/deploy.md
hosts_up ''
# One server, and the data of its clients where the page has them.
for h in server client1 client2; do on "$h" mkdir -p /root /srv/fl; done
copy_to server /root "$packages"/fl-{server,tools}_*.deb
synthetic "$dir/data" 2 --seed 1
for k in 1 2; do
  copy_to "client$k" /root "$packages"/fl-client_*.deb
  copy_to "client$k" /srv/fl/data "$dir/data/client-00$((k - 1))"/.
  on "client$k" chmod -R a+rX /srv
done

# heading, host: its blocks there, as one script
blocks() {
  awk -v heading="## $1" -v fence="\`\`\`sh $2" '
    /^## / { there = index($0, heading) == 1 }
    inside && /^```$/ { inside = 0; next }
    inside
    there && $0 == fence { inside = 1 }' "$page"
}
# what, heading, host: runs them there with what comes on standard input; $dir/ran.out is what they said
as_written() {
  local script
  script=$(blocks "$2" "$3")
  checks=$((checks + 1))
  [ -n "$script" ] || { note_failure "$1: no block for $3 below '$2' in docs/deploy.md"; return; }
  on "$3" bash -ec "cd /root; export DEBIAN_FRONTEND=noninteractive; $script" >"$dir/ran.out" 2>"$dir/ran.err" && return
  note_failure "$1"
  tail -n 20 "$dir/ran.out" "$dir/ran.err"
  finish
}

### The page
started=$SECONDS
as_written "the server" "2 The server" server </dev/null
mapfile -t lines < <(grep '^fl1:' "$dir/ran.out")
equal "an invitation for each" 2 "${#lines[@]}"
invited=$SECONDS
for k in 1 2; do as_written "client $k" "3 The clients" "client$k" <<<"${lines[k - 1]}"; done
wait_for "the first round" reached 1
echo "from the invitations to the first committed round: $((SECONDS - invited)) s"
wait_for "all rounds" reached 20
echo "from the packages to the last of 20 rounds: $((SECONDS - started)) s"
as_written "what it does" "4 What it does" server </dev/null
has_line "all is done" "$dir/ran.out" "20 done of 20"
has_line "by edge-001" "$dir/ran.out" "edge-001"
equal "over TLS" 0 "$(on server grep -c insecure /etc/fl/server.yaml)"
for h in server client1 client2; do
  for k in 1 2; do
    token=${lines[k - 1]##*:}
    checks=$((checks + 1))
    ! on "$h" journalctl --no-pager | grep -qF -- "${token:4}" || note_failure "the secret of client $k is in the journal of $h"
  done
done
equal "keys are the service's alone" "fl-clientd 600" "$(on client1 stat -c '%U %a' /var/lib/fl-clientd/identity/client.key)"

### An upgrade in the middle of a round
on server sed -i -e 's/^rounds: .*/rounds: 0/' -e 's/epochs: 1,/epochs: 40,/' -e 's/min_clients: 2/min_clients: 1/' \
  -e 's/^identity: .*/identity: {hosts: [server], validity: 2m}/' /etc/fl/server.yaml
check "more rounds" on server systemctl restart fl-serverd
goes_on "more rounds were asked for"
newer() { # package
  local deb
  deb=$(echo "$packages/$1"_*.deb)
  rm -rf "$dir/deb"
  dpkg-deb -R "$deb" "$dir/deb" && sed -i 's/^Version: .*/&+next/' "$dir/deb/DEBIAN/control" &&
    dpkg-deb --root-owner-group -b "$dir/deb" "$dir/$(basename "${deb%_*}")+next_amd64.deb" >/dev/null
}
for p in fl-server fl-tools fl-client; do check "a newer $p" newer $p; done
on server sh -c 'rm /root/*.deb'
copy_to server /root "$dir"/fl-{server,tools}_*+next_*.deb
wait_for "a round" on_phase TRAINING
as_written "the upgrade" "Upgrade" server </dev/null
version() { on "$1" dpkg-query -W -f '${Version}' "$2"; }
check "the server is the newer one" grep -q next <<<"$(version server fl-server)"
check "a backup was made" on server test -s /root/before-upgrade/SHA256SUMS
goes_on "the server was upgraded"
on client1 sh -c 'rm /root/*.deb'
copy_to client1 /root "$dir"/fl-client_*+next_*.deb
check "a client is upgraded in a round" on client1 sh -c 'apt-get install --yes /root/fl-client_*.deb'
wait_for "both clients" connected 2
goes_on "a client was upgraded"

### A host that is lost in the middle of a round
wait_for "a round" on_phase TRAINING
cut_power client2
boot client2
wait_for "client 2 to be back" connected 2
goes_on "a client's host lost its power"

### A host that was installed anew takes its name back, for two minutes at a time; that is renewed by itself
check "edge-002 is sent away" on server flctl evict edge-002 --reason "stolen, and found again"
wait_for "it to be gone" connected 1
wait_for "it to know why" in_journal client2 fl-clientd "stolen, and found again"
status_says() { prop "$1" "$2" StatusText | grep -qF "$3"; } # host, unit, text
wait_for "systemctl status to say why" status_says client2 fl-clientd "stolen, and found again"
on client2 sh -c 'systemctl stop fl-clientd; rm -rf /var/lib/fl-clientd/identity'
line=$(on server flctl invite edge-002 2>/dev/null)
on client2 sh -c 'd=/etc/systemd/system/fl-clientd.service.d; mkdir -p $d; printf "[Service]\nExecStartPre=/bin/false\n" >$d/broken.conf
  systemctl daemon-reload'
on client2 fl-clientd --join <<<"$line" >"$dir/join.out" 2>"$dir/join.err"
equal "joining succeeds also when the service does not start" 0 $?
has_line "and says that it does not run" "$dir/join.err" "warning: joined, but the service did not start: 'systemctl restart fl-clientd' failed"
on client2 sh -c 'rm -r /etc/systemd/system/fl-clientd.service.d; systemctl daemon-reload; systemctl reset-failed fl-clientd'
check "and comes" on client2 systemctl start fl-clientd
wait_for "both clients" connected 2
renewed() { on server flctl audit --json | json 'any(l["what"] == "renew" and l["object"] == "edge-002" for l in d)'; }
wait_for "its certificate to be renewed" renewed
joins=$(times_in_journal client2 fl-clientd "joined federation")
goes_on "a certificate was renewed"
equal "over the running session" "$joins" "$(times_in_journal client2 fl-clientd "joined federation")"

### A client that is revoked
check "edge-001 is revoked" on server flctl revoke edge-001 --yes --reason "sold"
wait_for "it to be gone" connected 1
wait_for "it to know why" in_journal client1 fl-clientd "sold"
goes_on "a client was revoked"
finish
