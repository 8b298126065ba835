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

# Sources that need a mapping to numbers: tables, texts and pictures, with the options of fl-data.
mkdir -p "$dir/in/table" "$dir/in/values" "$dir/in/text" "$dir/one"
printf 'id,age,job,kind\n1,30,smith,yes\n2,,nurse,no\n3,50,"nurse, head",no\n4,20,smith,yes\n' >"$dir/in/table/train.csv"
printf 'id,age,job,kind\n5,30,smith,no\n' >"$dir/in/table/test.csv"
input=$dir/in/table method table "drop: id, missing: mean, encode: index" 2 --drop id --missing mean --encode index
input=$dir/in/table method skipped "drop: \"id,job\", missing: skip, category: age" 3 --drop id,job --missing skip --category age
printf 'rooms,price,size\n3,100,9\n4,250.5,8\n5,300,7\n' >"$dir/in/values/train.csv"
input=$dir/in/values method values "regression: yes, target: price" 2 --regression --target price
printf 'to be, or not to be\n' >"$dir/in/text/train.txt"
input=$dir/in/text method text "window: 5, stride: 2, characters: leaf" 3 --window 5 --stride 2 --characters leaf
"$python" - "$dir" <<'PY'
import os, random, struct, sys, zlib
r = random.Random(3)
for part, n in ("train", 4), ("test", 2):
    for name in "cat", "dog":
        folder = f"{sys.argv[1]}/images/{part}/{name}"
        os.makedirs(folder)
        for i in range(n):
            raw = b"".join(b"\0" + bytes(r.randrange(256) for _ in range(24)) for _ in range(6))
            with open(f"{folder}/{i}.png", "wb") as f:
                f.write(b"\x89PNG\r\n\x1a\n")
                for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", 8, 6, 8, 2, 0, 0, 0)),
                                   (b"IDAT", zlib.compress(raw)), (b"IEND", b"")):
                    f.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
PY
input=$dir/images method pictures "method: shards, shards_per_client: 2, seed: 3" 2 --method shards --shards-per-client 2 --seed 3
input=$dir/images method grey "channels: 1, standardise: pixel" 3 --channels 1 --standardise pixel
check "the channels are part of the data" test "$(cut -d' ' -f6 "$dir/pictures.first")" != "$(cut -d' ' -f6 "$dir/grey.first")"

# What is wrong with them: the line of the experiment, then the file and its line.
# name, expected text, folder, keys
refused() {
  printf 'data:\n  clients: 2\n  set: "%s"\n%s\n' "$3" "${4:-}" >"$dir/bad.yaml"
  says "$1" 2 "$2" "$same_data" "$dir/bad.yaml" "$dir/in/table"
}
refused "a missing value" "bad.yaml:3: key 'data.set': '$dir/in/table/train.csv', line 3, column 2 (age): expected a value, found ''; the option missing" "$dir/in/table"
refused "an unknown column" "bad.yaml:1: key 'data': '$dir/in/table/train.csv': the option target names the column 'salary'" "$dir/in/table" '  target: salary'
refused "a rule that is none" "bad.yaml:4: key 'data.missing': expected one of refuse, mean, skip" "$dir/in/table" '  missing: zero'
refused "two channels" "bad.yaml:4: key 'data.channels': expected 1 (grey), 3 (colour) or 0" "$dir/images" '  channels: 2'
printf 'to\nb\0e or not to be\n' >"$dir/one/train.txt"
refused "a text with NUL" "bad.yaml:3: key 'data.set': '$dir/one/train.txt', line 2, column 2: expected text in UTF-8, found byte 0x00" "$dir/one" '  window: 2'
rm "$dir/one/train.txt"
cp -r "$dir/images/train" "$dir/one/train"
echo "no picture" >"$dir/one/train/dog/1.png"
refused "an image that is no image" "bad.yaml:3: key 'data.set': '$dir/one/train/dog/1.png': expected a PNG or JPEG picture, found neither" "$dir/one"
rm -r "$dir/one/train/dog"
refused "a folder with one class" "at least two classes, found 1: cat" "$dir/one"
cp "$dir/in/table/train.csv" "$dir/one/"
refused "pictures beside a table" "contains data of two kinds, images and" "$dir/one"

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

# What fl-data says of a set that it reads, fl-sim says too.
mkdir "$dir/in/last"
"$python" - "$dir/in/last" <<'PY' || fail "no array was made"
import sys
import numpy
for part, n in (("train", 40), ("test", 10)):
    numpy.save(f"{sys.argv[1]}/{part}-x.npy", numpy.zeros((n, 8, 3), numpy.float32))
    numpy.save(f"{sys.argv[1]}/{part}-y.npy", numpy.arange(n, dtype=numpy.int64) % 2)
PY
told() { # name, text, data, input of the network, layers before the last one
  printf '%s\n' "server: {algorithm: fedavg, model: {input: $4, layers: [$5dense 2]}}" "data: {$3, clients: 2}" "stop: {rounds: 1}" >"$dir/$1.yaml"
  check "$1: it runs" "$build/fl-sim" run "$dir/$1.yaml" --quiet --out "$dir/$1.results"
  equal "$1: and says once" 1 "$(grep -cF "$2" "$dir/check.out")"
}
told last "1 channels of 8 x 3, which looks like channels last" "set: $dir/in/last" "[1, 8, 3]" "flatten, "
told left_out "1 rows with a missing value are left out (data.missing)" "set: $dir/in/table, drop: \"id,job\", missing: skip" "[1]" ""

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
