#!/usr/bin/env bash
# Robust rules are those of robust_reference.py, in numpy and from the papers, to 1e-10.
set -u
python=${FL_PYTHON:-/usr/bin/python3}
src=${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}
build=${FL_BUILDDIR:-.}
"$python" -c 'import numpy' 2>/dev/null || { echo "skipped: python3-numpy is not there"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
"$python" "$src/tests/libfl/strategy/robust_reference.py" "$build/tests/libfl/strategy/robust_cases" 1000
