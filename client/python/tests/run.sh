# shellcheck shell=bash
# Sourced: run_tests MODULE… runs them with what `wants LIBRARY PACKAGE` found to be there.
python=${FL_PYTHON:-/usr/bin/python3}
src=${FL_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)}
skip() { echo "skipped: $*"; exit 77; }
command -v "$python" >/dev/null || skip "python3 is not there"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$python is older than 3.9"
[ "$("$python" -c 'import sys; print(sys.byteorder)')" = little ] || skip "this machine is big-endian"

wants() { # library, Debian's package
  "$python" -c "import $1" 2>/dev/null || skip "$1 (package $2) is not there for $python"
}
run_tests() {
  cd "$src/client/python/tests" || exit 1
  PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 exec "$python" -m unittest -b "$@"
}
