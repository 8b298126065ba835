#!/usr/bin/env bash
# The examples for Slurm do what they say when Slurm's variables are set: an array of seeds, and one run by
# several processes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
examples=$srcdir/deploy/examples/slurm
export PATH=$build:$PATH
cd "$dir" || exit 99
cat >e.yaml <<END
server:
  algorithm: fedavg
  model: {input: [64], layers: [dense 10]}
  training: {epochs: 1, batch_size: 10, learning_rate: 0.05}
data: {set: $srcdir/deploy/data/optdigits, method: iid, clients: 6, seed: 3}
stop: {rounds: 3}
trials: {seeds: [4, 5]}
END
check "both seeds run in one" fl-sim run e.yaml --quiet --out one
for seed in 4 5; do
  check "seed $seed runs as a job of an array" env SLURM_ARRAY_TASK_ID=$seed SLURM_CPUS_PER_TASK=1 bash "$examples/array.sbatch" e.yaml array
  check "with the same rounds" cmp one/*/seed-$seed/rounds.csv array/seed-$seed/*/seed-$seed/rounds.csv
done
if command -v mpirun >/dev/null && [ -x "$build/fl-sim-mpi" ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  # Open MPI frees little of its own when it ends; what is ours is looked at where there is no MPI.
  export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
  check "it runs by two processes" env SLURM_NTASKS=2 bash "$examples/mpi.sbatch" e.yaml mpi
  check "with the same results" cmp one/results.csv mpi/results.csv
fi
if command -v shellcheck >/dev/null; then check "shellcheck" shellcheck -s bash "$examples"/*.sbatch; fi
finish
