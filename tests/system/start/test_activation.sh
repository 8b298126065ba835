#!/usr/bin/env bash
# Socket activation: a server that is stopped and started again on a socket that is held for it refuses nobody:
# who connects meanwhile waits and is served. The address it is to listen on has to be among its own.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
grep -q '^#define HAVE_SYSTEMD' "$build/config.h" || skip "built without libsystemd"

synthetic "$dir/data" 1 --seed 3
here=$dir/held
mkdir "$here"
"$python" "$srcdir/tests/system/activate.py" "$here" "$build/fl-serverd" "$dir/srv.yaml" 2>"$dir/srv.log" >"$dir/srv.out" &
pid_of[holder]=$!
wait_for "the socket" test -e "$here/port"
port=$(cat "$here/port")
address=127.0.0.1:$port
there() { # n-th start: it serves
  [ "$(grep -c "' runs: " "$dir/srv.log")" -eq "$1" ]
}
go() {
  touch "$here/go-$1"
  wait_for "start $1" test -e "$here/pid-$1"
  pid_of[srv$1]=$(cat "$here/pid-$1") # not ours to wait for, but to end when this test does
  wait_for "start $1 to serve" there "$1"
}
end() { # n-th start
  kill "$(cat "$here/pid-$1")"
  wait_for "the end of start $1" test -e "$here/code-$1"
  unset "pid_of[srv$1]"
  equal "exit code of start $1" 0 "$(cat "$here/code-$1")"
}
write_server srv "rounds: 0" "model: {preset: dnn60}" "listen: [\"$address\"]"

### Without the server nobody is refused
go 1
start_client a "$dir/data/client-000"
wait_for "a round" at_round srv 1
end 1
before=$(sed -n 's/.* round \([0-9]*\) committed: .*/\1/p' "$dir/srv.log" | tail -n 1)
check "who connects while the server is away is not refused" \
  timeout 60 bash -c "exec 9<>/dev/tcp/127.0.0.1/$port"
go 2
wait_for "the next rounds" at_round srv $((before + 2))
lacks_line "the client was never refused" "$dir/a.log" "refused"
stop a
end 2

### More than one address, the held one among them; and a name that means it
write_server srv "rounds: 0" "model: {preset: dnn60}" "listen: [\"unix:$dir/more.sock\", \"localhost:$port\"]"
go 3
address=unix:$dir/more.sock
before=$(status_of srv rounds_committed)
start_client a "$dir/data/client-000"
wait_for "a round over the other address" at_round srv $((before + 1))
end 3
stop a

### A held address that is not its own
write_server srv "rounds: 0" "model: {preset: dnn60}" "listen: [\"unix:$dir/more.sock\"]"
touch "$here/go-4"
wait_for "the end of start 4" test -e "$here/code-4"
equal "exit code" 6 "$(cat "$here/code-4")"
has_line "it says what to do" "$dir/srv.log" \
  "key 'listen': systemd listens on '127.0.0.1:$port' for this server, but that address is not configured"
finish
