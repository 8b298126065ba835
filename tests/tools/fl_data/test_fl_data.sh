#!/usr/bin/env bash
# fl-data: its commands, files that numpy opens, messages with exit codes; failed and interrupted work leaves nothing.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
fl_data=$build/fl-data
# name, expected exit code, expected text, arguments of fl-data
prints() { says "$1" "$2" "$3" "$fl_data" "${@:4}"; }

has_numpy() { "$python" -c 'import numpy' 2>/dev/null; }

# 1 000 samples with two features: the number of the sample and its half; label = number mod 10.
mkdir "$dir/in"
{
  echo "number,half,label"
  for ((i = 0; i < 1000; i++)); do echo "$i,$((i / 2)).$((i % 2 * 5)),$((i % 10))"; done
} >"$dir/in/train.csv"
for ((i = 0; i < 50; i++)); do echo "$i,0.5,$((i % 10))"; done | gzip >"$dir/in/test.csv.gz"

### Usage
prints "no command" 2 "expected a command"
prints "help" 0 "inspect" --help
prints "version" 0 "fl-data " --version
prints "slip in a command" 2 "did you mean 'split'?" splitt
for c in split synthetic inspect; do prints "help of $c" 0 "Exit status" "$c" --help; done
prints "split without output" 2 "--output is required" split --input "$dir/in" --clients 3
prints "slip in an option" 2 "did you mean '--clients'?" split --client 3
prints "no value" 2 "--clients needs a value" split --clients
prints "twice" 2 "--seed is given twice" split --seed 1 --seed 2
prints "bad number" 2 "--clients: expected a whole number from 1 to" \
  split --input "$dir/in" --output "$dir/x" --clients 0
prints "bad share" 2 "--test-share: expected a number from 0 to 0.99, found '1.5'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --test-share 1.5
prints "unknown method" 2 "unknown method 'shard'; known: iid, shards, dirichlet, silo, device, pairs" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --method shard
prints "option of another method" 2 "--alpha does not apply to method 'iid'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --alpha 1
prints "option out of range" 2 "alpha: expected 0.0001 to 1000000, found '0'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --method dirichlet --alpha 0
prints "option that is no choice" 2 "dirichlet-prior: expected one of rho_over_C, rho, found 'q'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --method device --dirichlet-prior q
prints "a word that is no choice" 2 "--pool: expected one of as-method, no, yes, found 'maybe'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --pool maybe
prints "no standardisation" 2 "--standardise: expected one of as-input, none, pixel, cifar, found 'z'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --standardise z
prints "bad share of noise" 2 "--noise-share: expected a number from 0 to 1, found '1.5'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --noise-share 1.5
prints "bad share of noisy clients" 2 "--noise-clients: expected a number from 0 to 1, found '-1'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --noise-share 0.1 --noise-clients=-1
prints "noisy clients without noise" 2 "--noise-clients needs --noise-share" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --noise-clients 0.5
prints "option of the other law of sizes" 2 "--sigma does not apply to method 'dirichlet-sizes'" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --method dirichlet-sizes --sigma 1
prints "stray word" 2 "unexpected word 'here'" split here

### What cannot be done leaves nothing behind
prints "no input" 1 "cannot open folder" split --input "$dir/none" --output "$dir/x" --clients 2
prints "too many clients" 1 "1001 clients cannot share 1000 samples" \
  split --input "$dir/in" --output "$dir/x" --clients 1001
prints "too large a minimum" 1 "with at least 400 samples each need more" \
  split --input "$dir/in" --output "$dir/x" --clients 3 --method dirichlet --min-samples 400
prints "nothing to crop" 1 "expected pictures of at least 3 x 3, found samples of 2 x 1 x 1" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --crop 3
prints "no colours" 1 "the means of CIFAR-10 are for three channels" \
  split --input "$dir/in" --output "$dir/x" --clients 2 --standardise cifar
prints "released for other data" 1 "as released there are 20 clients and 10 labels, found 19 and 10" \
  split --input "$dir/in" --output "$dir/x" --clients 19 --method pairs --as-released cifar
mkdir "$dir/notest" && cp "$dir/in/train.csv" "$dir/notest"
prints "nothing to pool" 1 "pool is yes, but '$dir/notest' holds no test part" \
  split --input "$dir/notest" --output "$dir/x" --clients 2 --pool yes
prints "too large a minimum of sizes" 1 "with at least 400 samples each need more" \
  split --input "$dir/in" --output "$dir/x" --clients 3 --method lognormal-sizes --min-samples 400
mkdir "$dir/one" "$dir/values"
printf '1,0\n2,0\n3,0\n4,0\n' >"$dir/one/train.csv"
prints "noise of one class" 1 "expected at least 2 classes, found 1" \
  split --input "$dir/one" --output "$dir/x" --clients 2 --noise-share 0.1
printf 'a,price\n1,0.5\n2,0.7\n3,0.1\n4,0.2\n' >"$dir/values/train.csv"
prints "noise of values" 1 "label noise replaces classes, and samples have 1 values to be predicted instead" \
  split --input "$dir/values" --output "$dir/x" --clients 2 --regression --target price --noise-share 0.1
prints "labels that cannot differ" 1 "10 clients cannot get 11 shards of different labels each" \
  split --input "$dir/in" --output "$dir/x" --clients 10 --method silo --shards-per-client 11
mkdir "$dir/bad"
printf '1,2,0\n1,2\n' >"$dir/bad/train.csv"
prints "ragged input" 1 "line 2: expected 3 columns" \
  split --input "$dir/bad" --output "$dir/x" --clients 1
check "nothing is left of refused work" test -z "$(find "$dir" -maxdepth 1 -name 'x*')"
prints "output is a file" 1 "is not a folder" \
  split --input "$dir/in" --output "$dir/in/train.csv" --clients 2
prints "output would replace the input" 1 "would replace the input" \
  split --input "$dir/in" --output "$dir/in/../in" --clients 2 --force

### A split
prints "iid" 0 "5 clients (iid, seed 7), 1000 of 1000 samples, 200 to 200 each, 100 of them for test; server: 50 test" \
  split --input "$dir/in" --output "$dir/iid/" --clients 5 --seed 7 --test-share 0.1
prints "not over an old one" 1 "is not empty: choose another one, or --force to replace it" \
  split --input "$dir/in" --output "$dir/iid" --clients 5
cp -r "$dir/iid" "$dir/before"
prints "force" 0 "seed 7" \
  split --input "$dir/in" --output "$dir/iid" --clients 5 --seed 7 --test-share 0.1 --force
check "the same seed gives the same bytes" diff -r -x split.json "$dir/iid" "$dir/before"
prints "another seed" 0 "seed 8" \
  split --input "$dir/in" --output "$dir/iid8" --clients 5 --seed 8 --test-share=0.1
check "another seed gives other bytes" bash -c "! cmp -s '$dir/iid/client-000/train-x.npy' '$dir/iid8/client-000/train-x.npy'"
check "nothing is left beside" test -z "$(find "$dir" -maxdepth 1 -name 'iid*.*')"
mkdir "$dir/mine"
echo keep >"$dir/mine/letter"
prints "force over foreign files" 0 "the previous contents are kept in" \
  split --input "$dir/in" --output "$dir/mine" --clients 2 --force
check "foreign files are kept" grep -rq keep "$dir"/mine.old-*/letter
mkdir "$dir/empty"
prints "an empty folder is taken" 0 "2 clients" \
  split --input "$dir/in" --output "$dir/empty" --clients 2 --method shards
prints "parents are made" 0 "2 clients (dirichlet" \
  split --input "$dir/in" --output "$dir/a/b/c" --clients 2 --method dirichlet --alpha 5
prints "silo" 0 "10 clients (silo, seed 0), 800 of 1000 samples, 80 to 80 each" \
  split --input "$dir/in" --output "$dir/silo" --clients 10 --method silo --shard-size 40
prints "device" 0 "7 clients (device, seed 0), 994 of 1000 samples, 142 to 142 each" \
  split --input "$dir/in" --output "$dir/device" --clients 7 --method device --rho 0.1
check "the choice is written down" grep -q '"dirichlet-prior": "rho_over_C"' "$dir/device/split.json"
prints "pairs pool and keep a test part" 0 \
  "5 clients (pairs, seed 0), 1050 of 1050 samples, 210 to 210 each, 265 of them for test" \
  split --input "$dir/in" --output "$dir/pairs" --clients 5 --method pairs
prints "the server has the test samples of all clients" 0 "server                0      265" \
  inspect "$dir/pairs"
prints "unless told otherwise" 0 "1000 of 1000 samples, 200 to 200 each; server: 50 test samples" \
  split --input "$dir/in" --output "$dir/pairs0" --clients 5 --method pairs --pool no --test-share 0
prints "any method pools" 0 "3 clients (iid, seed 0), 1050 of 1050 samples, 350 to 350 each" \
  split --input "$dir/in" --output "$dir/pooled" --clients 3 --pool yes
check "without test parts there is no server folder" test ! -e "$dir/pooled/server"
prints "sizes by a log-normal law" 0 "8 clients (lognormal-sizes, seed 2), 1000 of 1000 samples, 20 to " \
  split --input "$dir/in" --output "$dir/lognormal" --clients 8 --method lognormal-sizes --sigma 2 --min-samples 20 --seed 2
prints "sizes by a Dirichlet draw" 0 "8 clients (dirichlet-sizes, seed 2), 1000 of 1000 samples, 20 to " \
  split --input "$dir/in" --output "$dir/sizes" --clients 8 --method dirichlet-sizes --alpha 0.2 --min-samples 20 --seed 2
check "the law is written down" grep -q '"alpha": 0.2' "$dir/sizes/split.json"
# 200 samples each, 180 of them for training: 45 labels of each of two clients.
prints "label noise" 0 "100 of them for test, 90 labels of 2 clients replaced; server" split --input "$dir/in" \
  --output "$dir/noise" --clients 5 --seed 7 --test-share 0.1 --noise-share 0.25 --noise-clients 0.4
check "features are those without noise" bash -c "for f in '$dir'/noise/*/t*-x.npy; do cmp \"\$f\" \"\${f/noise/iid}\" || exit 1; done"
check "and labels of test parts" bash -c "for f in '$dir'/noise/*/test-y.npy; do cmp \"\$f\" \"\${f/noise/iid}\" || exit 1; done"
check "the manifest has the noise" bash -c "tr -d ' \n' <'$dir/noise/split.json' |
  grep -q '\"label_noise\":{\"share\":0.25,\"of_clients\":0.4[0-9]*,\"clients\":2,\"labels\":90}'"
check "of each client" test "$(grep -c '"noisy_labels": 45' "$dir/noise/split.json") $(grep -c '"noisy_labels": 0' "$dir/noise/split.json")" = "2 3"
if has_numpy; then
  check "which is that of the files" "$python" -c '
import json, sys
import numpy as np
noise, plain = sys.argv[1:]
for c in json.load(open(noise + "/split.json"))["clients"]:
    a, b = (np.load(d + "/" + c["folder"] + "/train-y.npy") for d in (noise, plain))
    assert (a != b).sum() == c["noisy_labels"] and a.min() >= 0 and a.max() < 10, c
' "$dir/noise" "$dir/iid"
fi
prints "standardised" 0 "2 clients" \
  split --input "$dir/in" --output "$dir/norm" --clients 2 --standardise pixel --test-share 0.1
prints "which inspect shows" 0 "10 classes, standardised per value" inspect "$dir/norm/client-000"
check "one standardisation for all" cmp "$dir/norm/client-000/norm.npy" "$dir/norm/server/norm.npy"
prints "it passes on" 0 "2 clients" \
  split --input "$dir/norm/client-000" --output "$dir/norm2" --clients 2
check "as it was" cmp "$dir/norm/server/norm.npy" "$dir/norm2/client-001/norm.npy"
prints "or is dropped" 0 "2 clients" \
  split --input "$dir/norm/client-000" --output "$dir/norm3" --clients 2 --standardise none
check "from every folder" test -z "$(find "$dir/norm3" -name norm.npy)"

### Inspect
prints "inspect a set" 0 "train: csv, 1000 samples of 2 (float32), 10 classes" inspect "$dir/in"
prints "inspect a split" 0 "server                0       50      10" inspect "$dir/iid"
prints "inspect nothing" 1 "contains no train data; looked for" inspect "$dir"
prints "inspect no folder" 1 "cannot open folder" inspect "$dir/none"
prints "inspect half a set" 1 "is missing" inspect "$(mkdir "$dir/half" && cp "$dir/iid/client-000/train-x.npy" "$dir/half" && echo "$dir/half")"
prints "inspect without a folder" 2 "expected a folder" inspect
"$fl_data" inspect --json "$dir/iid" >"$dir/iid.json"
check "a full disk is an error" bash -c "! '$fl_data' inspect '$dir/in' >/dev/full 2>&1"

### The public CIFAR-10, whatever batches of it are there
if [ -d "${FL_DATA_DIR:-/nonexistent}/cifar-10" ]; then
  prints "cifar, cropped and standardised" 0 "10 clients (silo" split --input "$FL_DATA_DIR/cifar-10" \
    --output "$dir/cifar" --clients 10 --method silo --crop 24 --standardise cifar
  prints "is what the 24 x 24 network takes" 0 \
    "samples of 3 x 24 x 24 (uint8), 10 classes, standardised per channel" inspect "$dir/cifar/server"
else
  echo "skipped: no cifar-10 under \$FL_DATA_DIR"
fi

### Interrupted work leaves nothing. The signal comes at some moment of a long run.
"$fl_data" synthetic --output "$dir/cut" --clients 2000 >"$dir/interrupted.log" 2>&1 &
pid_of[cut]=$!
wait_for "the folder of a client" compgen -G "$dir/cut.tmp-*/client-0001"
kill -INT "${pid_of[cut]}"
wait_end cut
equal "interrupted work ends as a failure" 1 "$rc"
has_line "with a message" "$dir/interrupted.log" "interrupted"
equal "nothing is left of it" "" "$(compgen -G "$dir/cut*")"

### numpy opens what we write, and we open what it writes.
if has_numpy; then
  check "numpy reads the split" "$python" - "$dir" <<'PY'
import json, sys, numpy as np
base = sys.argv[1]
with open(base + "/iid/split.json") as f:
    m = json.load(f)
assert m["method"] == "iid" and m["seed"] == 7 and len(m["clients"]) == 5, m
assert m["features"] == {"type": "float32", "shape": [2]}, m
seen = []
for c in m["clients"]:
    for part in "train", "test":
        x = np.load(f"{base}/iid/{c['folder']}/{part}-x.npy", allow_pickle=False)
        y = np.load(f"{base}/iid/{c['folder']}/{part}-y.npy", allow_pickle=False)
        assert x.dtype == np.float32 and x.shape == (c[part], 2), (x.dtype, x.shape)
        assert y.dtype == np.int32 and y.shape == (c[part],)
        assert (y == x[:, 0] % 10).all() and (x[:, 1] == x[:, 0] / 2).all()
        seen += [int(v) for v in x[:, 0]]
    assert c["train"] == 180 and c["test"] == 20 and sum(c["labels"].values()) == 200
assert sorted(seen) == list(range(1000))
assert np.load(base + "/iid/server/test-x.npy").shape == (50, 2)
j = json.load(open(base + "/iid.json"))
assert [f["folder"] for f in j["folders"]][-1] == "server", j
assert j["folders"][0]["parts"][0]["samples"] == 180
PY
  mkdir "$dir/np"
  check "numpy writes a set" "$python" - "$dir/np" <<'PY'
import sys, numpy as np
r = np.random.RandomState(1)
for part, n in ("train", 40), ("test", 10):
    np.save(f"{sys.argv[1]}/{part}-x.npy", r.randint(0, 256, (n, 3, 4, 5)).astype(np.uint8))
    np.save(f"{sys.argv[1]}/{part}-y.npy", np.arange(n) % 4)
PY
  prints "a set of numpy is read" 0 "train: npy, 40 samples of 3 x 4 x 5 (uint8), 4 classes" \
    inspect "$dir/np"
  prints "and split" 0 "4 clients" split --input "$dir/np" --output "$dir/np4" --clients 4 --method shards
  check "bytes stay bytes, in their shape" "$python" - "$dir" <<'PY'
import sys, numpy as np
base = sys.argv[1]
x = np.load(base + "/np/train-x.npy")
parts = [np.load(f"{base}/np4/client-00{k}/train-x.npy") for k in range(4)]
assert all(p.dtype == np.uint8 and p.shape == (10, 3, 4, 5) for p in parts)
assert sorted(a.tobytes() for p in parts for a in p) == sorted(a.tobytes() for a in x)
assert (np.load(base + "/np4/server/test-x.npy") == np.load(base + "/np/test-x.npy")).all()
PY
  # The whole federation against the generator that published it.
  prints "synthetic" 0 "100 clients (synthetic, seed 0), 205795 samples, 0 of them for test" \
    synthetic --output "$dir/syn" --test-share 0
  check "synthetic is numpy's, value for value" "$python" - "$dir/syn" <<'PY'
import sys, numpy as np
r = np.random.RandomState(0)
n = 100
sizes = (r.lognormal(4, 2, n).astype(int) + 50) * 5
u, v = r.normal(0, 0.5, n), r.normal(0, 0.5, n)
cov = np.diag((np.arange(60) + 1.0) ** -1.2)
mu = np.array([r.normal(v[i], 1, 60) for i in range(n)])
for i in range(n):
    w, b = r.normal(u[i], 1, (60, 10)), r.normal(u[i], 1, 10)
    x = r.multivariate_normal(mu[i], cov, sizes[i])
    got = np.load(f"{sys.argv[1]}/client-{i:03d}/train-x.npy")
    assert got.shape == x.shape and np.abs(got - x).max() < 1e-5, i
    y = np.load(f"{sys.argv[1]}/client-{i:03d}/train-y.npy")
    assert (y != np.argmax(x @ w + b, axis=1)).sum() == 0, i
PY
else
  echo "skipped: $python has no numpy, the files were not checked with it"
fi
prints "synthetic with a local test part" 0 "4 clients (synthetic, seed 3)" \
  synthetic --output "$dir/syn4" --clients 4 --seed 3 --alpha 1 --beta 1
prints "its parts and the pooled test part" 0 "server" inspect "$dir/syn4"
prints "seed too large" 2 "--seed: expected a whole number from 0 to 4294967295" \
  synthetic --output "$dir/x" --seed 4294967296

### The public sets, when they are there
if [ -d "${FL_DATA_DIR:-/nonexistent}/mnist" ]; then
  prints "mnist shards" 0 "100 clients (shards, seed 1), 60000 of 60000 samples, 600 to 600 each; server: 10000" \
    split --input "$FL_DATA_DIR/mnist" --output "$dir/mnist" --clients 100 --method shards --seed 1
  # docs/models.md#the-splits-of-the-papers: training parts of 1167 to 3834 samples, 70 000 samples in all.
  prints "mnist pairs" 0 "70000 of 70000 samples, 1556 to 5112 each, 17507 of them for test" \
    split --input "$FL_DATA_DIR/mnist" --output "$dir/pairs20" --clients 20 --method pairs --standardise pixel
  prints "its largest client" 0 "client-000         3834     1278       2   0:2441 1:2671" inspect "$dir/pairs20"
  prints "its smallest client" 0 "client-011         1167      389       2   2:841 3:715" inspect "$dir/pairs20"
  prints "mnist is inspected" 0 "test: idx, 10000 samples of 1 x 28 x 28 (uint8), 10 classes" \
    inspect "$FL_DATA_DIR/mnist"
else
  echo "skipped: no mnist under \$FL_DATA_DIR"
fi

finish
