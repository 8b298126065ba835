#!/usr/bin/env bash
# docs/lattice.py by the test vectors of docs/lattice.json, and that tests/interop/vectors.py writes that file; the same
# with docs/dense.py, docs/dense.json and tests/interop/dense_vectors.py, and with docs/hashed.py, docs/hashed.json and
# tests/interop/hashed_vectors.py.
set -u
python=${FL_PYTHON:-/usr/bin/python3}
src=${FL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
command -v "$python" >/dev/null || { echo "skipped: python3 is not there"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$src/docs"
"$python" "$src/tests/interop/vectors.py" && "$python" "$src/tests/interop/dense_vectors.py" &&
  "$python" "$src/tests/interop/hashed_vectors.py"
