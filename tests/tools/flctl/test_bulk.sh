#!/usr/bin/env bash
# Verbs of flctl for several clients: by pattern and by label, a list of them first, a confirmation, what failed, and an
# audit entry for each.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
synthetic "$dir/data" 3 --seed 3
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
write_server srv "listen: [\"127.0.0.1:$port\"]" "rounds: 1" "model: {preset: dnn60}" "round: {start_clients: 9}"
sed -i '/^insecure:/d' "$dir/srv.yaml"
check "init" "$build/fl-serverd" --init "$dir/srv.yaml"
start_server srv || finish
join() { # name, data, site
  ctl srv invite "$1" --labels "site=$3" >"$dir/line" 2>/dev/null
  write_client "$1" "$dir/data/client-00$2" "name: $1" "exit_when_done: no" "labels: {site: $3}"
  sed -i '/^insecure:/d' "$dir/$1.yaml"
  check "$1 joins" "$build/fl-clientd" --join "$dir/$1.yaml" <"$dir/line"
  run_client "$1"
}
join edge-1 0 north
join edge-2 1 south
join core-1 2 north
connected() { ctl srv status | grep -qF "3 connected"; }
wait_for "three clients" connected
c() { # name, exit code, text, arguments…
  says "$1" "$2" "$3" "$build/flctl" -d "$dir/srv.state" "${@:4}" </dev/null
}
names() { ctl srv "$@" --dry-run 2>"$dir/names.err" | paste -sd ' '; } # of a command
states() { ctl srv clients --json | json '" ".join("%s:%s" % (x["name"], x["state"]) for x in sorted(d, key=lambda x: x["name"]))'; }
audited() { ctl srv audit --json | json '" ".join(x["object"] for x in d if x["what"] == "'"$1"'")'; }

### What is chosen
equal "by pattern" "edge-1 edge-2" "$(names clients quarantine 'edge-*')"
equal "by label" "core-1 edge-1" "$(names clients quarantine --label site=north)"
equal "values of one key are alternatives" "core-1 edge-1 edge-2" "$(names clients quarantine --label site=north --label site=south)"
equal "both have to match" "edge-1" "$(names clients forget 'edge-*' --label site=north)"
equal "certificates" "edge-1 edge-2" "$(names revoke 'edge-*')"
equal "certificates by label" "core-1 edge-1" "$(names disable --label site=north)"
equal "one name" "edge-1" "$(names evict edge-1)"
equal "a list as JSON" '["edge-1", "edge-2"]' "$(ctl srv disable 'edge-*' --dry-run --json | json 'd' | tr "'" '"')"
equal "nothing was changed by that" "core-1:idle edge-1:idle edge-2:idle" "$(states)"
c "none" 1 "clients quarantine: no known client is chosen by 'x*'" clients quarantine 'x*' --yes
c "none to release" 1 "no known client is chosen by '*'" clients release '*' --yes
c "none to enable" 1 "no known client is chosen by '*'" enable '*' --yes

### Usage
c "a pattern that the shell expanded" 2 "unexpected argument 'edge-2': write a pattern in quotes" clients quarantine edge-1 edge-2 --dry-run
c "no pattern" 2 "'a/*' is neither a name" clients quarantine 'a/*'
c "no label" 2 "--label: expected KEY=VALUE such as site=lab-7, found 'north'" clients quarantine --label north
c "no client at all" 2 "expected the name of a client, a pattern of names or --label" clients quarantine --dry-run
c "not by serial number" 2 "not with --serial" disable --label site=north --serial 01
c "a verb without clients" 2 "only for commands that take the name of a client" pause --dry-run
c "nor a command that is no verb" 2 "only for commands that take the name of a client" backup "$dir/copy" --dry-run

### Without a terminal and --yes nothing happens
c "how many, and which" 2 "clients quarantine: that is 3 clients: core-1, edge-1, edge-2; without a terminal to confirm it, add --yes" clients quarantine '*'
equal "nothing was changed" "core-1:idle edge-1:idle edge-2:idle" "$(states)"

### At a terminal it asks
cat >"$dir/terminal.py" <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.write(fd, sys.argv[1].encode() + b"\n")
out = b""
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    out += data
sys.stdout.write(out.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
says "with the number and the names" 1 "clients quarantine for 2 clients: edge-1, edge-2? [y/N]" \
  "$python" "$dir/terminal.py" n "$build/flctl" -d "$dir/srv.state" clients quarantine 'edge-*'
has_line "no is no" "$dir/says.out" "not confirmed, nothing was changed"
equal "nothing was changed" "core-1:idle edge-1:idle edge-2:idle" "$(states)"
says "yes is yes" 0 "edge-2: client 'edge-2' is not selected until" \
  "$python" "$dir/terminal.py" y "$build/flctl" -d "$dir/srv.state" clients quarantine 'edge-*'
c "and back" 0 "client 'edge-1' is released" clients release '*' --yes

### Each is one call
c "quarantine by pattern" 0 "edge-2: client 'edge-2' is not selected until" clients quarantine 'edge-*' --yes --reason "for the test"
equal "these two" "core-1:idle edge-1:quarantined edge-2:quarantined" "$(states)"
has_line "an audit entry for one" "$dir/srv.log" "quarantine edge-1: for the test"
has_line "and for the other" "$dir/srv.log" "quarantine edge-2: for the test"
equal "release says of each what was done" "edge-1 True client 'edge-1' is released: it can be selected from the next round on, edge-2 True client 'edge-2' is released: it can be selected from the next round on" \
  "$(ctl srv clients release '*' --yes --json | json '", ".join("%s %s %s" % (x["name"], x["done"], x["answer"]["text"]) for x in d)')"
c "disable by label" 0 "edge-1: " disable --label site=north --yes
equal "an audit entry for each" "core-1 edge-1" "$(audited disable | tr ' ' '\n' | sort | paste -sd ' ')"
equal "enable is for those" "core-1 edge-1" "$(names enable '*')"
c "enable one: no confirmation for one" 0 "core-1: " enable 'core-*'
c "revoke asks also for one" 2 "revoke: that is 1 client: core-1; without a terminal" revoke 'core-*'

### What failed
c "forget by pattern" 0 "edge-2: 1 client forgotten" clients forget 'edge-2*'
back() { ctl srv status | grep -qF "2 connected"; }
wait_for "edge-2 and core-1" back
c "what failed is named" 1 "summaries drop: failed for " summaries drop '*' --yes
stop srv
c "a server that is gone" 3 "no fl-serverd at" clients quarantine '*' --yes
finish
