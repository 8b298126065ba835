#!/usr/bin/env bash
# mpirun fl-sim run: whole trials and the trainings of one round are spread over processes, with the same
# files for 1, 2 and 4 of them; one that dies ends the run with its name, and the same command goes on.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
fl_sim=$build/fl-sim
cd "$dir" || exit 99

# --- without MPI ---
mkdir alone && cp "$fl_sim" alone/
echo 'server: {}' >empty.yaml
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 says "without its MPI it says what is missing" 1 "install package fl-sim-mpi" \
  alone/fl-sim run empty.yaml --out x
check "and has run nothing" test ! -e x

command -v mpirun >/dev/null || skip "mpirun (package openmpi-bin) is not installed"
[ -x "$build/fl-sim-mpi" ] || skip "this build has no MPI (package libopenmpi-dev, --with-mpi)"
# Processes of a container may not read each other's memory; one machine need not be named or bound.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
# Open MPI frees little of its own when it ends; what is ours is looked at where there is no MPI.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
on() { # processes, arguments of fl-sim run…
  local n=$1
  shift
  timeout -k 5 "$patience" mpirun --oversubscribe --bind-to none -n "$n" "$fl_sim" run "$@"
}
files_of() { (cd "$1" && find . \( -name 'rounds.*' -o -name clients.jsonl -o -name summary.json -o -name results.csv \) -print0 | sort -z | xargs -0 sha256sum); }

cat >e.yaml <<END
server:
  algorithm: fedldf
  model: {input: [64], layers: [dense 32, relu, dense 10]}
  training: {epochs: 1, batch_size: 5, learning_rate: 0.05}
  evaluation: {every: 2, clients: yes}
client: {data: {validation: 0.2}}
data: {set: $srcdir/deploy/data/optdigits, method: dirichlet, alpha: 0.5, clients: 20, seed: 3}
world: {uplink: {uniform: [1Mbit/s, 8Mbit/s]}, downlink: 20Mbit/s, train: {samples_per_s: 200}, drop: {chance: 0.1, away: 20s}}
stop: {rounds: 6}
trials: 2
sweep: {server.algorithm: [fedldf, scaffold, fedmcsa]}
END

# --- more trials than processes, and what is left of them ---
check "it runs alone" "$fl_sim" run e.yaml --quiet --clients --out alone.results
files_of alone.results >sums
equal "4 files a trial and the table" 25 "$(wc -l <sums)"
for n in 1 2 4; do
  check "it runs on $n" on "$n" e.yaml --clients --out "on-$n"
  files_of "on-$n" >"sums-$n"
  check "the files of $n processes are the same" cmp sums "sums-$n"
done
equal "all trials are noted in run.json" 6 "$("$python" -c 'import json; print(len(json.load(open("on-4/run.json"))["trials"]))')"

# --- one trial ---
for algorithm in fedldf scaffold fedmcsa; do
  more=(--clients --set trials=1 --set "name=$algorithm" --set "sweep={server.algorithm: [$algorithm]}")
  check "$algorithm runs alone" "$fl_sim" run e.yaml --quiet "${more[@]}" --out "$algorithm-1"
  for n in 2 4; do
    check "$algorithm runs on $n" on "$n" e.yaml "${more[@]}" --out "$algorithm-$n"
    check "one trial of $algorithm by $n processes is the same" cmp <(files_of "$algorithm-1") <(files_of "$algorithm-$n")
  done
done

# --- one that dies ---
rank_pid() { # pid of mpirun, rank
  local pid
  for pid in $(pgrep -P "$1"); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2"; then echo "$pid"; fi
  done
}
has_rank() { [ -n "$(rank_pid "$@")" ]; }
long=(e.yaml --clients --set trials=1 --set name=long --set 'sweep={server.algorithm: [scaffold]}' --set stop.rounds=120)
check "the long one runs alone" "$fl_sim" run "${long[@]}" --quiet --out long
kills=0
for rank in 1 0; do
  rm -f "killed/algorithm=scaffold/seed-1/rounds.jsonl"
  mpirun --oversubscribe --bind-to none -n 3 "$fl_sim" run "${long[@]}" --out killed >kill.log 2>&1 &
  pid=$!
  pid_of[mpirun]=$pid
  wait_for "rank $rank" has_rank "$pid" "$rank"
  wait_for "some rounds" test -s "killed/algorithm=scaffold/seed-1/rounds.jsonl"
  kill -KILL "$(rank_pid "$pid" "$rank")" 2>>kill.log && kills=$((kills + 1))
  wait "$pid"
  rc=$?
  check "rank $rank was killed and the run ended" test "$rc" != 0
  has_line "it says which died" kill.log "rank $rank with PID"
  check "unfinished" test ! -e killed/results.csv
done
equal "two were killed" 2 "$kills"
check "it goes on with another number" on 2 "${long[@]}" --out killed
check "after two kills the files are the same" cmp <(files_of long) <(files_of killed)

# --- an error of one ---
rm -rf "on-2/2-algorithm=scaffold/seed-2" on-2/results.csv && : >"on-2/2-algorithm=scaffold/seed-2"
on 2 e.yaml --clients --out on-2 >abort.log 2>&1
rc=$?
check "a trial that cannot be written ends the run" test "$rc" != 0
check "with rank, machine, trial and reason" grep -qE "rank [01] of 2 on .*algorithm=scaffold, seed 2: .*seed-2" abort.log
rm "on-2/2-algorithm=scaffold/seed-2"
check "and it goes on" on 2 e.yaml --clients --out on-2
check "with the same files" cmp sums <(files_of on-2)

# --- processors that compute in another way ---
core() { env "$@" OPENBLAS_VERBOSE=2 LD_PRELOAD=libopenblas.so.0 /bin/true 2>&1 | sed -n 's/^Core: //p'; }
if [ "$(core A=)" != Prescott ] && [ "$(core OPENBLAS_CORETYPE=Prescott)" = Prescott ]; then
  timeout -k 5 "$patience" mpirun --oversubscribe --bind-to none -n 1 "$fl_sim" run e.yaml --out unlike : \
    -n 1 env OPENBLAS_CORETYPE=Prescott "$fl_sim" run e.yaml --out unlike >unlike.log 2>&1
  rc=$?
  check "another kernel of OpenBLAS ends the run" test "$rc" != 0
  has_line "both are named" unlike.log "rank 1 of 2 on "
  check "with what helps" grep -q "OpenBLAS 'Prescott' and the first one by .*OPENBLAS_CORETYPE" unlike.log
  check "nothing was computed" test ! -e unlike/results.csv
fi

# --- what is wrong is said once ---
on 3 e.yaml --set nothing=1 --out refused >refused.log 2>&1
check "an unknown key is refused" test $? != 0
equal "by one of them" 1 "$(grep -c "unknown key 'nothing'" refused.log)"
check "nothing ran" test ! -e refused
finish
