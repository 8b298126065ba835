#!/usr/bin/env bash
# fl-data convert: pictures, texts and tables become arrays with a schema, which other folders follow.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
fl_data=$build/fl-data
# name, expected exit code, expected text, arguments of fl-data
prints() { says "$1" "$2" "$3" "$fl_data" "${@:4}"; }

# name, the rest of the arguments: input, output and options
convert() { prints "$1" 0 "samples of" convert --input "$2" --output "$3" "${@:4}"; }

### Tables
mkdir "$dir/table" "$dir/other"
printf 'id,age,job,kind\n1,30,smith,yes\n2,,nurse,no\n3,50,"nurse, head",no\n' >"$dir/table/train.csv"
printf 'id,age,job,kind\n4,20,smith,no\n' >"$dir/table/test.csv"
prints "a missing value has its place" 1 "line 3, column 2 (age): expected a value, found ''" \
  convert --input "$dir/table" --output "$dir/x" --drop id
check "nothing is left of refused work" test ! -e "$dir/x"
convert "a table" "$dir/table" "$dir/arrays" --drop id --missing mean
prints "names of classes are shown" 0 "66.7%  ########################################  'no'" inspect "$dir/arrays"
prints "an unconverted table is announced" 0 "read this set after 'fl-data convert'" inspect "$dir/table" --drop id --missing skip
printf 'id,age,job,kind\n7,60,nurse,yes\n' >"$dir/other/train.csv"
convert "another client by the schema" "$dir/other" "$dir/arrays2" --schema "$dir/arrays/schema.json"
check "the schema is passed on" cmp "$dir/arrays/schema.json" "$dir/arrays2/schema.json"
printf 'id,age,job,kind\n7,60,baker,yes\n' >"$dir/other/train.csv"
prints "a text that the schema does not have" 1 "line 2, column 3 (job): expected one of the values" \
  convert --input "$dir/other" --output "$dir/x" --schema "$dir/arrays/schema.json"
prints "options beside a schema" 2 "--schema has window, characters, columns and rules" \
  convert --input "$dir/other" --output "$dir/x" --schema "$dir/arrays/schema.json" --drop id
echo '{"kind": "table", "labels": []}' >"$dir/bad.json"
prints "a schema that is none" 1 "bad.json': one_hot, missing: expected true or false" \
  convert --input "$dir/other" --output "$dir/x" --schema "$dir/bad.json"
echo '{"kind": "table",' >"$dir/bad.json"
prints "a schema that is no JSON" 1 "bad.json', line 2, column" \
  convert --input "$dir/other" --output "$dir/x" --schema "$dir/bad.json"
prints "a rule that is none" 2 "--missing: expected refuse, mean or skip, found 'zero'" \
  convert --input "$dir/table" --output "$dir/x" --missing zero
prints "an input without data" 1 "train.csv[.gz]; train/CLASS/ with PNG or JPEG pictures; train.txt[.gz]" convert --input "$dir" --output "$dir/x"
prints "split has the options" 0 "3 clients (iid, seed 0), 3 of 3 samples" \
  split --input "$dir/table" --output "$dir/split" --clients 3 --drop id --missing mean
for folder in . client-000 client-002 server; do
  check "the schema is in split/$folder" cmp "$dir/arrays/schema.json" "$dir/split/$folder/schema.json"
done
mkdir "$dir/prices"
printf 'rooms,price\n3,100\n4,250.5\n5,300\n' >"$dir/prices/train.csv"
convert "values to be predicted" "$dir/prices" "$dir/values" --regression
prints "are shown as such" 0 "train: npy, 3 samples of 1 (float32), 1 value to be predicted" inspect "$dir/values"
prints "and are split" 0 "2 clients (iid" split --input "$dir/values" --output "$dir/values2" --clients 2

### Texts
mkdir "$dir/text" "$dir/nul"
printf 'to be, or not to be\n' >"$dir/text/train.txt"
convert "a text" "$dir/text" "$dir/chars" --window 5 --stride 2 --characters leaf
printf 'to\nb\0e' >"$dir/nul/train.txt"
prints "a text with NUL" 1 "line 2, column 2: expected text in UTF-8, found byte 0x00" \
  convert --input "$dir/nul" --output "$dir/x" --window 2

### Suspicious shapes, pictures and archives: files of numpy
if "$python" -c 'import numpy' 2>/dev/null; then
  check "the table as it should be" "$python" - "$dir" <<'PY'
import json, sys, numpy as np
base = sys.argv[1]
x, y = np.load(base + "/arrays/train-x.npy"), np.load(base + "/arrays/train-y.npy")
assert x.dtype == np.float32 and x.tolist() == [[30, 0, 0, 1], [40, 1, 0, 0], [50, 0, 1, 0]], x
assert y.dtype == np.int32 and y.tolist() == [1, 0, 0], y
assert np.load(base + "/arrays/test-x.npy").tolist() == [[20, 0, 0, 1]]
assert np.load(base + "/arrays2/train-x.npy").tolist() == [[60, 1, 0, 0]]
schema = json.load(open(base + "/arrays/schema.json"))
assert schema["labels"] == ["no", "yes"] and schema["columns"][1]["mean"] == 40, schema
assert [c["role"] for c in schema["columns"]] == ["dropped", "number", "category", "label"], schema
v = np.load(base + "/values/train-y.npy")
assert v.dtype == np.float32 and v.tolist() == [[100], [250.5], [300]], v
leaf = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
text = "to be, or not to be\n"
cx, cy = np.load(base + "/chars/train-x.npy"), np.load(base + "/chars/train-y.npy")
assert len(leaf) == 80 and cx.shape == (8, 5), cx.shape
for i in range(8):
    assert "".join(leaf[int(c)] for c in cx[i]) + leaf[cy[i]] == text[2 * i:2 * i + 6], i
PY
  check "pictures and archives are made" "$python" - "$dir" <<'PY'
import os, struct, sys, zlib, numpy as np
base = sys.argv[1]
def png(path, a):
    kind = {1: 0, 3: 2}[a.shape[2]]
    raw = b"".join(b"\0" + row.tobytes() for row in a)
    def chunk(t, d):
        return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", a.shape[1], a.shape[0], 8, kind, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
r = np.random.RandomState(3)
for part, n in ("train", 4), ("test", 2):
    for name in "cat", "dog":
        os.makedirs(f"{base}/images/{part}/{name}")
        for i in range(n):
            a = r.randint(0, 256, (6, 8, 3)).astype(np.uint8)
            np.save(f"{base}/{part}-{name}-{i}.npy", a)
            png(f"{base}/images/{part}/{name}/{i}.png", a)
os.makedirs(base + "/npz"); os.makedirs(base + "/last"); os.makedirs(base + "/both")
x = r.randint(0, 256, (9, 4, 5)).astype(np.uint8)
np.savez_compressed(base + "/npz/data.npz", x_train=x, y_train=np.arange(9) % 3, x_test=x[:2], y_test=np.arange(2))
np.savez(base + "/both/train.npz", x=x, y=np.linspace(0, 1, 9))
np.save(base + "/last/train-x.npy", np.zeros((4, 28, 3), np.uint8))
np.save(base + "/last/train-y.npy", np.arange(4) % 2)
PY
  convert "pictures" "$dir/images" "$dir/pictures"
  convert "an archive of both parts" "$dir/npz" "$dir/npzout"
  prints "an archive of one part" 0 "train: npz, 9 samples of 1 x 4 x 5 (uint8), 1 value to be predicted" inspect "$dir/both"
  check "pixels and archives as they were" "$python" - "$dir" <<'PY'
import sys, numpy as np
base = sys.argv[1]
for part, n in ("train", 4), ("test", 2):
    x, y = np.load(f"{base}/pictures/{part}-x.npy"), np.load(f"{base}/pictures/{part}-y.npy")
    assert x.shape == (2 * n, 3, 6, 8) and y.tolist() == [0] * n + [1] * n
    for k, name in enumerate(("cat", "dog")):
        for i in range(n):
            assert (x[k * n + i] == np.load(f"{base}/{part}-{name}-{i}.npy").transpose(2, 0, 1)).all()
with np.load(base + "/npz/data.npz") as z:
    assert (np.load(base + "/npzout/train-x.npy")[:, 0] == z["x_train"]).all()
PY
  prints "channels last are suspicious" 0 "warning: '$dir/last': samples are read as 1 channels of 28 x 3, which looks like channels last" \
    inspect "$dir/last"
  head -c 60 "$dir/images/train/dog/1.png" >"$dir/cut" && cp "$dir/cut" "$dir/images/train/dog/1.png"
  prints "a truncated picture" 1 "train/dog/1.png': damaged or truncated PNG" convert --input "$dir/images" --output "$dir/x"
  echo "no picture" >"$dir/images/train/dog/1.png"
  prints "an image that is no image" 1 "train/dog/1.png': expected a PNG or JPEG picture, found neither" \
    convert --input "$dir/images" --output "$dir/x"
  rm -r "$dir/images/train/dog"
  prints "a folder with one class" 1 "at least two classes, found 1: cat" convert --input "$dir/images" --output "$dir/x"
else
  echo "skipped: $python has no numpy, arrays and pictures were not checked with it"
fi

finish
