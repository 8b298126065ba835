#!/usr/bin/env bash
# Fresh Debian 12 to a passed test suite: installs what is missing, then lint, a werror build with its tests, and a
# build with ASan and UBSan with its tests (without plain_tests, Makefile.am). Every stage runs, even after a failed one.
# The run ends with its ten slowest tests, and the last line counts all checks: N passed, N failed, N skipped.
#   deploy/test.sh [--fast | --all]
#     --fast    without the sanitizer build
#     --all     also extended_tests (Makefile.am) and every variant of a test: all presets, more random seeds
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
scope=everyday
case "${1:-}" in
  --fast | --all) scope=${1#--} ;;
  -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") ;;
  *) echo "test.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
esac

# shellcheck source=deploy/packages.sh
. deploy/packages.sh
fl_install_packages "${FL_BUILD_PACKAGES[@]}" "${FL_TEST_PACKAGES[@]}" || exit 2

jobs=$(nproc)
# Tests at a time: more than processors, as many of them mostly wait, for a heartbeat, a timeout or a disk; with half a
# gigabyte of memory for each.
at_once=$(awk -v most=$((3 * jobs)) -v least="$jobs" '/^MemAvailable:/ { n = int($2 / 524288); exit }
  END { at_once = n > most ? most : n < least ? least : n; print at_once }' /proc/meminfo)
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

# folders: the ten slowest tests of this run, from what tests/lib/timed.sh wrote at the end of their logs
slowest() {
  local dir trs
  for dir in "$@"; do
    find "$dir/tests" -name '*.trs' | while read -r trs; do
      grep '^took ' "${trs%.trs}.log" | tail -n 1 | awk -v name="${trs%.trs}" -v dir="$dir" '
        { printf "%7.1f s, %7.1f s of the processors: %s (%s)\n", $2, $5 + $8, substr(name, length(dir) + 2), dir }'
    done
  done | sort -rn | head -n 10
}

# folder, arguments of configure…: the programs and the tests; what fails is in FOLDER/build.out
build() {
  local dir=$1
  shift
  mkdir -p "$dir"
  rm -f "$dir/built"
  (cd "$dir" && { [ -f Makefile ] || "$root/configure" -q "$@"; } && make -s -j"$jobs" all &&
    make -s -k -j"$jobs" check TESTS=) >"$dir/build.out" 2>&1 && touch "$dir/built"
}

# folder: runs the tests of a build
run_suite() {
  local dir=$1 found wanted
  # shellcheck disable=SC2016 # make expands it
  if [ "$scope" = all ]; then wanted='TESTS=$(all_tests)'; else wanted='TESTS=$(everyday_tests)'; fi
  if [ ! -e "$dir/built" ]; then
    tail -n 40 "$dir/build.out"
    echo "the build failed: all of it is in $dir/build.out"
    count 0 1 0
    return
  fi
  find "$dir" -name '*.trs' -delete
  # -k: every test runs, so that one failure does not hide the next.
  (cd "$dir" && make -s -j"$at_once" -k check VERBOSE=1 "$wanted") >"$dir/check.out" 2>&1 || {
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

# Without the variants of a test whose rules its others prove.
[ "$scope" = all ] || export FL_SLOW_TESTS=no
say "werror build and tests, $at_once at a time"
build build-test --enable-werror
builds=(build-test)
if [ "$scope" != fast ]; then
  # Beside the tests of the first build, many of which wait, and behind them where both want a processor.
  builds+=(build-asan)
  (
    renice -n 10 "$BASHPID" >/dev/null
    build build-asan --enable-werror --enable-sanitize=address,undefined CFLAGS='-O2 -g1'
  ) &
fi
run_suite build-test

if [ "$scope" != fast ]; then
  say "the tests under ASan and UBSan, $at_once at a time"
  wait
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  # Fewer random seeds: the werror build has tried them all.
  if [ "$scope" = all ]; then export FL_SIM_SEEDS=60 FL_CONF_SEEDS=300; else export FL_SIM_SEEDS=30 FL_CONF_SEEDS=150; fi
  run_suite build-asan
fi

say "ten slowest tests"
slowest "${builds[@]}"

say "totals"
printf 'took %d min %d s on %d processors\n' $((SECONDS / 60)) $((SECONDS % 60)) "$jobs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
