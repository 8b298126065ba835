#!/usr/bin/env bash
# Fresh Debian 12 to a passed test suite: installs what is missing, then lint, a werror build with
# the tests, and the tests once more under ASan and UBSan, but for plain_tests (Makefile.am). Every part runs,
# whatever became of the one before; the last line counts what all of them checked: N passed, N failed, N skipped.
#   deploy/test.sh [--fast]     --fast leaves the sanitizer run out
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
fast=no
case "${1:-}" in
  --fast) fast=yes ;;
  -h|--help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") ;;
  *) echo "test.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
esac

# shellcheck source=deploy/packages.sh
. deploy/packages.sh
fl_install_packages "${FL_BUILD_PACKAGES[@]}" "${FL_TEST_PACKAGES[@]}" || exit 2

jobs=$(nproc)
root=$PWD
passed=0 failed=0 skipped=0
say() { printf '\n== %s\n' "$*"; }
count() { # passed, failed, skipped
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
  echo "$1 passed, $2 failed, $3 skipped"
}

# folder: the checks that its test programs made. A program that ended badly without a failed check (it
# crashed, say) is one failure, one that skipped itself one skip.
checks_of() {
  find "$1" -name '*.trs' | while read -r trs; do
    printf '%s %s\n' "$(sed -n 's/^:global-test-result: //p' "$trs")" \
      "$(grep -hE '^[0-9]+%: Checks:' "${trs%.trs}.log" | tail -n 1 | tr -cd '0-9 ' | tr -s ' ')"
  done | awk '
    $1 == "SKIP" { skipped++; next }
    { bad = NF > 2 ? $4 + $5 : 0; passed += NF > 2 ? $3 - bad : 0
      if ($1 != "PASS" && bad == 0) bad = 1
      failed += bad }
    END { print passed + 0, failed + 0, skipped + 0 }'
}

run_suite() { # build folder, configure arguments…
  local dir=$1 found
  shift
  mkdir -p "$dir"
  if ! (cd "$dir" && { [ -f Makefile ] || "$root/configure" -q "$@"; } && make -s -j"$jobs" all); then
    echo "the build in $dir failed"
    count 0 1 0
    return
  fi
  find "$dir" -name '*.trs' -delete
  # -k: every test runs, so that one failure does not hide the next. Twice as many at a time as there are
  # processors: many of them mostly wait, for a heartbeat, a timeout or a disk.
  (cd "$dir" && make -s -j"$((2 * jobs))" -k check VERBOSE=1) >"$dir/check.out" 2>&1 || {
    grep -E '^(FAIL|ERROR|XPASS):|^# |%: Checks|:[FE]:|Error|^FAILED' "$dir/check.out" | head -n 120
    tail -n 60 "$dir/check.out"
  }
  grep -E '^# (TOTAL|PASS|SKIP|FAIL|ERROR):' "$dir/check.out"
  grep -hE '^skipped: ' -r "$dir/tests" --include='*.log' | sort | uniq -c
  found=$(checks_of "$dir")
  [ "${found%% *}" -gt 0 ] || found="0 1 0"
  # shellcheck disable=SC2086
  count $found
}

say "configure script"
[ -x configure ] && [ configure -nt configure.ac ] && [ configure -nt Makefile.am ] || autoreconf -fi >/dev/null

say "lint"
if bash tools/lint.sh; then count 1 0 0; else count 0 1 0; fi

say "werror build and tests"
run_suite build-test --enable-werror

if [ "$fast" = no ]; then
  say "the tests under ASan and UBSan"
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  # Trainings that take minutes here, and hours in such a build.
  export FL_SLOW_TESTS=no
  # Of what is drawn, fewer: the werror build has tried them all.
  export FL_SIM_SEEDS=60 FL_CONF_SEEDS=300
  run_suite build-asan --enable-werror --enable-sanitize=address,undefined CFLAGS='-O1 -g'
fi

say "totals"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
