#!/usr/bin/env bash
# The data of an experiment is what fl-data writes and fl-clientd reads, bit for bit, for every method.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
same_data=$build/tests/system/same_data
digits=$srcdir/deploy/data/optdigits

# name, keys of the mapping (one text), clients, arguments of fl-data split…
method() {
  local name=$1 keys=$2 clients=$3 set code=0 from=$digits
  shift 3
  [ -z "${input:-}" ] || from=$input
  set="{set: \"$from\", clients: $clients, $keys}"
  check "$name is split" "$build/fl-data" split --input "$from" --output "$dir/$name" --clients "$clients" "$@"
  echo "data: $set" >"$dir/$name.yaml"
  echo "data: {path: \"$dir/$name\"}" >"$dir/$name.path.yaml"
  "$same_data" "$dir/$name.yaml" "$dir/$name" "$dir/keep" >"$dir/$name.first" 2>&1 || code=$?
  equal "$name: a data set and a partition are the folders ($(cat "$dir/$name.first"))" 0 "$code"
  code=0
  "$same_data" "$dir/$name.yaml" "$dir/$name" "$dir/keep" >"$dir/$name.again" 2>&1 || code=$?
  equal "$name: and so is the partition that was kept" "0 $(cat "$dir/$name.first")" "$code $(cat "$dir/$name.again")"
  code=0
  "$same_data" "$dir/$name.path.yaml" "$dir/$name" >"$dir/$name.path.out" 2>&1 || code=$?
  equal "$name: and so are the folders themselves, hash and all" "0 $(cat "$dir/$name.first")" \
    "$code $(cat "$dir/$name.path.out")"
}

method iid "method: iid, seed: 7" 5 --seed 7
method few "samples: 40, test_share: 0.1" 12 --samples 40 --test-share 0.1
method shards "method: shards, seed: 1, shards_per_client: 3" 20 --method shards --seed 1 --shards-per-client 3
method dirichlet "method: dirichlet, alpha: 0.5, test_share: 0.25, standardise: pixel" 8 \
  --method dirichlet --alpha 0.5 --test-share 0.25 --standardise pixel
method silo "method: silo, shard_size: 30, crop: 6" 9 --method silo --shard-size 30 --crop 6
method device "method: device, rho: 0.3, dirichlet_prior: rho, pool: yes" 7 \
  --method device --rho 0.3 --dirichlet-prior rho --pool yes
method pairs "method: pairs, standardise: pixel, seed: 4" 5 --method pairs --standardise pixel --seed 4
method unpooled "method: pairs, pool: no, test_share: 0, size_seed: 9" 10 \
  --method pairs --pool no --test-share 0 --size-seed 9
method lognormal "method: lognormal-sizes, sigma: 1.5, test_share: 0.1" 9 --method lognormal-sizes --sigma 1.5 --test-share 0.1
method sizes "method: dirichlet-sizes, alpha: 0.5, min_samples: 20, seed: 3" 9 \
  --method dirichlet-sizes --alpha 0.5 --min-samples 20 --seed 3
method noise "noise_share: 0.4, seed: 7" 5 --noise-share 0.4 --seed 7
method noisy "method: pairs, noise_share: 0.3, noise_clients: 0.4, seed: 4" 5 \
  --method pairs --noise-share 0.3 --noise-clients 0.4 --seed 4
check "noise changes the hash" test "$(cut -d' ' -f6 "$dir/noise.first")" != "$(cut -d' ' -f6 "$dir/iid.first")"
for name in iid shards dirichlet silo device pairs lognormal-sizes dirichlet-sizes; do
  equal "every method is tried" 1 "$("$build/fl-data" split --help | grep -cE "^  $name ")"
done
equal "and there are no others" 8 "$("$build/fl-data" split --help | sed -n '/^Methods:/,/^$/p' | grep -c '^  ')"

# A standardisation that comes with the input, and its removal.
check "a standardised input" "$build/fl-data" split --input "$digits" --output "$dir/std" --clients 1 --standardise pixel
input=$dir/std/client-000 method kept "seed: 2" 4 --seed 2
input=$dir/std/client-000 method dropped "seed: 2, standardise: none" 4 --seed 2 --standardise none
check "which differ" test "$(cut -d' ' -f6 "$dir/kept.first")" != "$(cut -d' ' -f6 "$dir/dropped.first")"

# Clients of a generator.
check "synthetic" "$build/fl-data" synthetic --output "$dir/syn" --clients 9 --alpha 1 --beta 0.25 --seed 3
echo "data: {set: synthetic, clients: 9, alpha: 1, beta: 0.25, seed: trial}" >"$dir/syn.yaml"
echo "data: {path: \"$dir/syn\"}" >"$dir/syn.path.yaml"
check "synthetic is generated alike" "$same_data" "$dir/syn.yaml" "$dir/syn" "$dir/keep" 3
cp "$dir/check.out" "$dir/syn.out"
check "and read alike" "$same_data" "$dir/syn.path.yaml" "$dir/syn"
equal "with one hash" "$(cat "$dir/syn.out")" "$(cat "$dir/check.out")"
says "another trial's seed is another federation" 1 "different: client-000" \
  "$same_data" "$dir/syn.yaml" "$dir/syn" "$dir/keep" 4

# What a folder can lack.
says "a client that is gone" 2 "cannot open folder '$dir/iid/client-002'" \
  bash -c "mv '$dir/iid/client-002' '$dir/iid/gone' && '$same_data' '$dir/iid.path.yaml' '$dir/iid'"
mv "$dir/iid/gone" "$dir/iid/client-002"
cp "$dir/few/client-000/train-"* "$dir/iid/client-002/"
says "a client with other files" 2 "samples as split.json says, found 36" "$same_data" "$dir/iid.path.yaml" "$dir/iid"
echo '{"clients": [' >"$dir/few/split.json"
says "a manifest that ends" 2 "split.json', line" "$same_data" "$dir/few.path.yaml" "$dir/few"
echo '{"clients": []}' >"$dir/few/split.json"
says "a manifest without clients" 2 "expected a list of clients; make the folder with fl-data" "$same_data" "$dir/few.path.yaml" "$dir/few"
finish
