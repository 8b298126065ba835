#!/usr/bin/env bash
# OpenBLAS is loaded by who multiplies: a client whose own program trains takes part where it is not installed,
# and whoever needs it says so at the start. Hidden by a file of its name that is no library, which the loader finds first.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$(dirname "$0")/../failures.sh"
library=$(sed -n 's/^#define FL_BLAS_LIBRARY "\(.*\)"$/\1/p' "$build/config.h")
mkdir "$dir/hidden" "$dir/other"
echo "no library" >"$dir/hidden/$library"
without=(env "LD_LIBRARY_PATH=$dir/hidden${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")

### No program is linked with it
for program in fl-serverd fl-clientd flctl fl-data fl-sim; do
  readelf -d "$build/$program" >"$dir/$program.needed"
  has_line "$program is linked with libraries" "$dir/$program.needed" "(NEEDED)"
  lacks_line "$program is not linked with OpenBLAS" "$dir/$program.needed" blas
  check "$program says its version without it" "${without[@]}" "$build/$program" --version
done

### A client whose program trains
synthetic "$dir/data" 2 --seed 3
# Trained as little as can be: the model comes back as it went.
cat >"$dir/back.py" <<'TEXT'
import json, shutil, sys
task = json.load(open(sys.argv[1]))
shutil.copy(task["model"], task["result_model"])
json.dump({"samples": 10, "steps": 1, "train_loss": 1.0}, open(task["result"], "w"))
TEXT
command=("trainer: command" "command: {program: [\"$python\", \"$dir/back.py\", \"{task}\"], samples: 10}")
# Its file has the version in its name: libopenblas-r0.3.21.so.
loaded() { grep -q "${library%%.*}" "/proc/${pid_of[$1]}/maps" && echo yes || echo no; } # name
write_server srv "rounds: 2" "model: {preset: dnn60}" "algorithm: adafl+fedldf" "when_finished: stay" \
  "strategy: {fraction: {start: 1.0, end: 1.0}}" "round: {start_clients: 2, min_responders: 2}"
start_server srv
start_client builtin "$dir/data/client-000" "exit_when_done: no"
start_client program "" "${command[@]}" "exit_when_done: no"
wait_for "two rounds" at_round srv 2
equal "who multiplies has it" yes "$(loaded builtin)"
equal "who has a program has it not" no "$(loaded program)"
for name in program builtin srv; do stop $name; done

write_server alone "rounds: 2" "model: {preset: dnn60}" "round: {start_clients: 1}"
start_server alone
write_client hidden "" "${command[@]}"
says "the file is checked without it" 0 "trainer command" "${without[@]}" "$build/fl-clientd" --check-config "$dir/hidden.yaml"
export LD_LIBRARY_PATH=$dir/hidden${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
start_client hidden "" "${command[@]}"
unset LD_LIBRARY_PATH
wait_for "two rounds of a client without it" at_round alone 2
wait_end hidden
equal "which ends with the federation" 0 "$rc"
stop alone

### Who needs it says what is missing
write_client wants "$dir/data/client-000"
documented client-blas-missing "${without[@]}" "$build/fl-clientd" "$dir/wants.yaml"
documented client-blas-missing "${without[@]}" "$build/fl-clientd" --check-config "$dir/wants.yaml"
documented blas-missing "${without[@]}" "$build/fl-serverd" "$dir/srv.yaml"
documented blas-missing "${without[@]}" "$build/fl-serverd" --check-config "$dir/srv.yaml"
says "fl-sim" 1 "apt-get install libopenblas0-serial" "${without[@]}" "$build/fl-sim" run \
  "$srcdir/deploy/examples/what-would-it-save.yaml"
# Another library of that name: not all of its functions are there.
zlib=$(ldd "$build/fl-serverd" | awk '$1 ~ /^libz\.so/ { print $3 }')
ln -s "$zlib" "$dir/other/$library"
says "another library of that name" 3 "undefined symbol: cblas_sgemm" env "LD_LIBRARY_PATH=$dir/other" \
  "$build/fl-serverd" --check-config "$dir/srv.yaml"
finish
