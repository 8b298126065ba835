#!/usr/bin/env bash
# Fresh Debian 12 to a passed test suite: installs what is missing, then lint, a werror build with
# the tests, and the tests once more under ASan and UBSan. Ends with the totals.
#   deploy/test.sh [--fast]     --fast leaves the sanitizer run out
set -euo pipefail
cd "$(dirname "$0")/.."
fast=no
case "${1:-}" in
  --fast) fast=yes ;;
  -h|--help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") ;;
  *) echo "test.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
esac

# shellcheck source=deploy/packages.sh
. deploy/packages.sh
fl_install_packages "${FL_BUILD_PACKAGES[@]}" "${FL_TEST_PACKAGES[@]}"

jobs=$(nproc)
root=$PWD
say() { printf '\n== %s\n' "$*"; }

run_suite() { # build folder, configure arguments…
  local dir=$1; shift
  mkdir -p "$dir"
  (
    cd "$dir"
    [ -f Makefile ] || "$root/configure" -q "$@"
    make -s -j"$jobs" all
    # -k: every test runs, so that one failure does not hide the next.
    make -s -j"$jobs" -k check VERBOSE=1 >check.out 2>&1 || { grep -E '^(FAIL|ERROR|XPASS):|^# |%: Checks|:[FE]:|Error' check.out | head -120; tail -60 check.out; exit 1; }
    grep -E '^# (TOTAL|PASS|SKIP|FAIL|ERROR):' check.out
  )
}

say "configure script"
[ -x configure ] && [ configure -nt configure.ac ] && [ configure -nt Makefile.am ] || autoreconf -fi >/dev/null

say "lint"
bash tools/lint.sh

say "werror build and tests"
run_suite build-test --enable-werror

if [ "$fast" = no ]; then
  say "the tests under ASan and UBSan"
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  export CK_TIMEOUT_MULTIPLIER=8
  run_suite build-asan --enable-werror --enable-sanitize=address,undefined CFLAGS='-O1 -g'
fi

say "totals"
dirs=(build-test)
[ "$fast" = yes ] || dirs+=(build-asan)
find "${dirs[@]}" -name '*.log' ! -name config.log -exec grep -hE '^[0-9]+%: Checks:' {} + |
  awk '{gsub(/[,:]/,""); c+=$3; f+=$5; e+=$7} END {
    ok = c ? int(100 * (c - f - e) / c) : 0
    printf "%d%%: Checks: %d, Failures: %d, Errors: %d\n", ok, c, f, e; exit !(c > 0 && f + e == 0)}'
