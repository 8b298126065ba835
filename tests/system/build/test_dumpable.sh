#!/usr/bin/env bash
# Both daemons disable core dumps and the access of other processes of their user to their memory, which contains keys and data.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
if ldd "$build/fl-serverd" | grep -qE 'lib(a|t|m)san'; then
  skip "this build has a sanitizer, which traces its own process"
fi
${CC:-cc} -shared -fPIC -O1 -o "$dir/dumpable.so" "$srcdir/tests/system/dumpable.c" -ldl >"$dir/cc.out" 2>&1 ||
  skip "no C compiler for the library that records the calls: $(head -n 1 "$dir/cc.out")"
synthetic "$dir/data" 1 --seed 5
write_server srv "model: {preset: mlr60}" "rounds: 1"
FL_DUMPABLE=$dir/server.calls LD_PRELOAD=$dir/dumpable.so start_server srv || finish
equal "fl-serverd" "dumpable 0" "$(cat "$dir/server.calls")"
FL_DUMPABLE=$dir/client.calls LD_PRELOAD=$dir/dumpable.so start_client c0 "$dir/data/client-000"
wait_for "a round" at_round srv 1
equal "fl-clientd" "dumpable 0" "$(cat "$dir/client.calls")"
wait_end c0
stop srv
finish
