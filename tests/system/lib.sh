# shellcheck shell=bash disable=SC2034
# For the tests of the whole system: real processes of the build folder in a temporary one.
#
#   . "$(dirname "$0")/lib.sh"
#   write_server srv "rounds: 3"      a configuration; further arguments are lines of YAML
#   start_server srv                  waits until it listens; sets $address
#   start_client a DATA [LINES…]      of the server at $address
#   wait_for "3 rounds" at_round srv 3
#   check "what must hold" COMMAND…   counts; so do equal, has_line, check_exit
#   finish                            the line that deploy/test.sh adds up, and the exit code
#
# Nothing here waits for a fixed time: wait_for waits for an event, and gives up only when a program that it needs
# is dead, or nothing but a hang can be the reason, however busy the machine is. All processes end with the test.
set -u
build=${FL_BUILDDIR:-$PWD}
srcdir=${FL_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
python=${FL_PYTHON:-python3}
patience=600 # seconds that only a hang can outlast
hurry=60     # the same in a test that has failed already
dir=$(mktemp -d "${TMPDIR:-/tmp}/fl-integ.XXXXXX") || exit 99
mkfifo "$dir/silence" || exit 99
exec {silence}<>"$dir/silence"
rm "$dir/silence"
checks=0
failures=0
errors=0
address=''
rc=0
declare -gA pid_of=() # also when a function sources this
declare -gA code_of=() # by process: how it ended
declare -gA serves=()  # names of servers

end_all() {
  local pid
  for pid in "${pid_of[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  for pid in "${pid_of[@]}"; do wait "$pid" 2>/dev/null; done
  rm -rf "$dir"
}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

skip() { # why
  echo "skipped: $*"
  exit 77
}

note_failure() {
  failures=$((failures + 1))
  echo "FAILED: $*"
}

# name, command…: the command succeeds
check() {
  local name=$1
  shift
  checks=$((checks + 1))
  "$@" >"$dir/check.out" 2>&1 && return 0
  note_failure "$name: $*"
  head -n 20 "$dir/check.out" | sed 's/^/    /'
  return 1
}

# name, expected, found
equal() {
  checks=$((checks + 1))
  [ "$2" = "$3" ] && return 0
  note_failure "$1: expected '$2', found '$3'"
  return 1
}

# name, file, text: some line of the file holds the text
has_line() {
  checks=$((checks + 1))
  grep -qF -- "$3" "$2" && return 0
  note_failure "$1: no line with '$3' in $(basename "$2")"
  tail -n 12 "$2" | sed 's/^/    /'
  return 1
}
lacks_line() {
  checks=$((checks + 1))
  grep -qF -- "$3" "$2" || return 0
  note_failure "$1: '$3' is in $(basename "$2")"
  return 1
}

# name, expected exit code, expected text on stdout or stderr, command…
says() {
  local name=$1 want=$2 text=$3 code=0
  shift 3
  checks=$((checks + 1))
  # A daemon that starts although it should refuse must not hold the test up.
  timeout -k 5 "$patience" "$@" >"$dir/says.out" 2>&1 || code=$?
  [ "$code" -eq "$want" ] && grep -qF -- "$text" "$dir/says.out" && return 0
  note_failure "$name: exit $code (expected $want), expected text: $text"
  head -n 12 "$dir/says.out" | sed 's/^/    /'
  return 1
}

finish() {
  local log
  if [ $((failures + errors)) -gt 0 ]; then
    for log in "$dir"/*.log; do
      [ -e "$log" ] || continue
      echo "--- end of $(basename "$log")"
      tail -n 10 "$log"
    done
  fi
  [ "$checks" -gt 0 ] || checks=1 errors=1
  echo "$((100 * (checks - failures) / checks))%: Checks: $checks, Failures: $failures, Errors: $errors"
  exit $((failures + errors > 0))
}

# The presets of fl-serverd --help, one a line.
presets_of_help() {
  "$build/fl-serverd" --help | sed -n '/^algorithms:/,/^networks:/s/^  \([^ ]*\) .*/\1/p'
}

# Plain deploy/test.sh: what it leaves out, --all runs
everyday() { [ "${FL_SLOW_TESTS:-yes}" = no ]; }
sanitized() { [ "${FL_SANITIZED:-no}" = yes ]; }

# 1 or 2: as few of them as hold every policy of every slot, or every pair of policies that some preset combines.
# Options do not count: igfl_sa is igfl with another kind of attention.
covering_presets() {
  "$build/tests/system/preset_parts" | "$python" -c '
import itertools, sys
presets = {words[0]: set(itertools.combinations(enumerate(words[1:]), int(sys.argv[1]))) for words in map(str.split, sys.stdin)}
missing = set().union(*presets.values())
while missing:
    name = max(presets, key=lambda p: len(presets[p] & missing))
    missing -= presets[name]
    print(name)' "$1"
}

# items…: shares them out among three ($workers) runs of this script as "--worker ITEMS…", which mostly
# wait for their federations, and takes over what they found.
share_out() {
  local w i mine texts=() n=${workers:-3}
  worker_pids=()
  trap 'kill -TERM "${worker_pids[@]}" 2>/dev/null; end_all' EXIT
  local items=("$@")
  for ((w = 0; w < n; w++)); do
    mine=()
    for i in "${!items[@]}"; do [ $((i % n)) -ne "$w" ] || mine+=("${items[i]}"); done
    [ ${#mine[@]} -gt 0 ] || continue
    texts+=("$dir/worker$w.txt")
    bash "$0" --worker "${mine[@]}" >"$dir/worker$w.txt" 2>&1 &
    worker_pids+=($!)
  done
  for w in "${!worker_pids[@]}"; do
    wait "${worker_pids[w]}" || failures=$((failures + 1))
    grep -v '^[0-9]*%: Checks:' "${texts[w]}"
    checks=$((checks + $(sed -n 's/.*Checks: \([0-9]*\),.*/\1/p' "${texts[w]}")))
  done
  worker_pids=()
}

# Sets $dead when the command of a wait cannot succeed any more: it names a process that has ended, a server has
# failed, or nothing runs at all. What has ended well may have left what the wait is for, so it is looked at once more.
look_for_dead() { # command…
  local name word alive=no
  dead=''
  [ "$1" != ended ] && [ ${#pid_of[@]} -gt 0 ] || return 0
  for name in "${!pid_of[@]}"; do
    if running "$name"; then
      alive=yes
      continue
    fi
    how_ended "$name"
    for word in "$@"; do [ "$word" != "$name" ] || dead="$name has ended, exit code $rc"; done
    # 127: it is not ours to know.
    [ -z "${serves[$name]:-}" ] || [ "$rc" -eq 0 ] || [ "$rc" -eq 127 ] || dead="the server $name has failed, exit code $rc"
  done
  [ -n "$dead" ] || [ "$alive" = yes ] || [ -n "$(jobs -rp)" ] || dead="all that was started has ended"
}

# name of a daemon: the port that its `http:` got
http_port() { grep -oE 'http_port=[0-9]+' "$dir/$1.log" | tail -n 1 | cut -d= -f2; }

# description, command…: until it succeeds, looked at after pauses that grow from 20 ms to a third of a second, since each
# look takes processes. Patience that runs out ends the test.
wait_for() {
  local what=$1 began=$SECONDS looked=$SECONDS dead='' limit=$patience rc=0 pause_ms=20
  shift
  [[ ! $what =~ ^[0-9]+$ ]] || { note_failure "wait_for takes no seconds, only what it waits for: $what $*"; finish; }
  [ $((failures + errors)) -eq 0 ] || limit=$hurry
  until "$@" >/dev/null 2>&1; do
    if [ -n "$dead" ] || [ $((SECONDS - began)) -gt "$limit" ]; then
      checks=$((checks + 1))
      note_failure "waited $((SECONDS - began)) s in vain for: $what${dead:+ ($dead)}"
      finish
    fi
    if [ "$looked" -ne "$SECONDS" ]; then
      looked=$SECONDS
      look_for_dead "$@"
      [ $(((SECONDS - began) % 60)) -ne 0 ] || [ "$SECONDS" -eq "$began" ] ||
        echo "waiting for $((SECONDS - began)) s, at most $limit, for: $what"
    fi
    pause $pause_ms
    [ $pause_ms -ge 300 ] || pause_ms=$((pause_ms + pause_ms / 4))
  done
}
# milliseconds, below a second: without a process, as nothing is ever written there
pause() {
  local fraction=00$1
  read -r -t "0.${fraction: -3}" -u "$silence"
}

# --- data ---

synthetic() { # folder, clients, arguments…
  local out=$1 n=$2
  shift 2
  "$build/fl-data" synthetic --output "$out" --clients "$n" "$@" >"$dir/data.out" 2>&1 || {
    cat "$dir/data.out"
    errors=1
    finish
  }
}

# --- processes ---

running() { [ -n "${pid_of[$1]:-}" ] && kill -0 "${pid_of[$1]}" 2>/dev/null; }
ended() { ! running "$1"; }

# name, of one that has ended: $rc is its exit code. The shell tells it once.
how_ended() {
  local pid=${pid_of[$1]}
  rc=0
  [ -n "${code_of[$pid]:-}" ] || { wait "$pid" 2>/dev/null || rc=$?; code_of[$pid]=$rc; }
  rc=${code_of[$pid]}
}

# name: waits for its end; $rc is its exit code
wait_end() {
  wait_for "the end of $1" ended "$1"
  how_ended "$1"
  unset "code_of[${pid_of[$1]}]" "pid_of[$1]" "serves[$1]"
}

# name [signal]: sends it and waits; $rc is the exit code
# A signal that comes between a shell's fork and its exec is the shell's, and lost: who does not hear is told again.
stop() {
  local told=$SECONDS
  kill -s "${2:-TERM}" "${pid_of[$1]}" 2>/dev/null
  until ended "$1" || [ $((SECONDS - told)) -ge 20 ]; do pause 20; done
  ended "$1" || kill -s "${2:-TERM}" "${pid_of[$1]}" 2>/dev/null
  wait_end "$1">/dev/null
}
kill_hard() { stop "$1" KILL; }

# name, lines of YAML…: on a socket file by default, so that a restarted server has the same address
write_server() {
  local name=$1
  shift
  {
    echo "federation: integ"
    echo "state_dir: \"$dir/$name.state\""
    echo "insecure: yes"
    [[ "$*" == *listen:* ]] || echo "listen: [\"unix:$dir/$name.sock\"]"
    printf '%s\n' "$@"
  } >"$dir/$name.yaml"
}

listens() {
  grep -q '^admin unix:' "$dir/$1.out" || ended "$1" || return 1 # the last one that it listens on
  address=$(sed -n 's/^listening //p' "$dir/$1.out" | head -n 1)
}

# name [arguments…]: starts and waits for the address; 1 when it ended instead
start_server() {
  local name=$1
  shift
  : >"$dir/$name.out"
  "$build/fl-serverd" "$@" "$dir/$name.yaml" >"$dir/$name.out" 2>>"$dir/$name.log" &
  pid_of[$name]=$! serves[$name]=yes
  wait_for "fl-serverd $name to listen" listens "$name"
  running "$name"
}

# name, data folder or '', lines of YAML…
write_client() {
  local name=$1 data=$2
  shift 2
  {
    echo "server: \"$address\""
    [[ " $* " == *" name:"* ]] || echo "name: $name"
    echo "state_dir: \"$dir/$name.state\""
    echo "insecure: yes"
    [ -z "$data" ] || echo "data: {path: \"$data\"}"
    [[ "$*" == *summaries:* ]] || echo "summaries: yes"
    [[ "$*" == *exit_when_done:* ]] || echo "exit_when_done: yes"
    [[ "$*" == *reconnect:* ]] || echo "reconnect: {first: 50ms, longest: 200ms}"
    printf '%s\n' "$@"
  } >"$dir/$name.yaml"
}
run_client() {
  "$build/fl-clientd" "$dir/$1.yaml" >>"$dir/$1.out" 2>>"$dir/$1.log" &
  pid_of[$1]=$!
}
start_client() {
  write_client "$@"
  run_client "$1"
}

# A service manager that notes what daemons started from now on tell it: lines in $dir/notify.log.
notify_socket() {
  "$python" - "$dir/notify.sock" >"$dir/notify.log" 2>&1 <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(65536).decode(), flush=True)
PY
  pid_of[notify]=$!
  wait_for "the notify socket" test -S "$dir/notify.sock"
  export NOTIFY_SOCKET=$dir/notify.sock
}

# --- what a server says ---

ctl() { # server, arguments of flctl…
  local name=$1
  shift
  "$build/flctl" --state-dir "$dir/$name.state" "$@"
}

# A number or word of `flctl status --json`
status_of() { # server, key
  ctl "$1" status --json 2>/dev/null | sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\).*/\1/p"
}
at_round() { # server, number: so many rounds are committed
  local n
  n=$(status_of "$1" rounds_committed)
  [ -n "$n" ] && [ "$n" -ge "$2" ]
}
connected() { # server, number
  [ "$(status_of "$1" clients_connected)" = "$2" ]
}
in_phase() { # server, phase (of any round)
  [ "$(status_of "$1" phase)" = "$2" ]
}
in_log() { grep -qF -- "$2" "$dir/$1.log"; } # name, text

# Python expression over d, the JSON on standard input
json() {
  "$python" -c 'import json, math, sys
d = json.load(sys.stdin)
r = eval(sys.argv[1])
print(r)
sys.exit(r is False)' "$1"
}

# file: prints the digest of the tensors (names, shapes and bytes; not the metadata)
tensors() {
  "$python" - "$1" <<'PY'
import hashlib, json, struct, sys
with open(sys.argv[1], "rb") as f:
    raw = f.read()
(n,) = struct.unpack("<Q", raw[:8])
head = json.loads(raw[8 : 8 + n])
head.pop("__metadata__", None)
h = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
h.update(raw[8 + n :])
assert head and all(t["dtype"] == "F32" for t in head.values()), head
print(h.hexdigest())
PY
}

# file: every number of the model is finite
finite() {
  "$python" - "$1" <<'PY'
import array, json, math, struct, sys
with open(sys.argv[1], "rb") as f:
    raw = f.read()
(n,) = struct.unpack("<Q", raw[:8])
values = array.array("f", raw[8 + n :])
assert len(values) > 0 and all(math.isfinite(v) for v in values)
assert any(v != 0 for v in values)
PY
}
