#!/usr/bin/env bash
# Fresh Debian 12 to a passed test suite: installs what is missing, then lint, a werror build with its tests, and a
# build with ASan and UBSan with its tests (without plain_tests, Makefile.am). Every stage runs, even after a failed one.
# The run ends with its ten slowest tests and with the time of each stage; the last line counts all checks: N passed,
# N failed, N skipped.
#   deploy/test.sh [--fast | --all]
#     --fast    without the sanitizer build
#     --all     everything: also extended_tests and sanitized_extended_tests (Makefile.am) and every variant of a test.
#               Without it the Debian packages, the images, two of the three tests of hosts, the year of the daemons
#               and MNIST are left out; presets, random seeds and faults are every n-th; and most tests run in one of
#               the two builds: unit tests, fuzz replays and peers that break the rules under sanitizers, other
#               scripts and tests of optimised code in the other one, simulations and one script of each kind in both
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
scope=everyday
case "${1:-}" in
  --fast | --all) scope=${1#--} ;;
  -h|--help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
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
# Some 260 programs are linked, in each of two builds. With --all by the compiler's own linker, as what is shipped.
linker=()
if [ "$scope" != all ] && command -v ld.lld >/dev/null; then linker=(LDFLAGS=-fuse-ld=lld); fi
root=$PWD
passed=0 failed=0 skipped=0
began=0 stage='' stages=()
in_minutes() { printf '%3d min %02d s' $(($1 / 60)) $(($1 % 60)); } # seconds
# what is printed [name]: the stage before ends, and the one of that name begins
say() {
  [ -z "$stage" ] || stages+=("$(in_minutes $((SECONDS - began)))  $stage")
  began=$SECONDS stage=${2:-}
  printf '\n== %s\n' "$1"
}
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

# folder, arguments of configure…: the programs and the tests of this scope; what fails is in FOLDER/build.out, what it
# took in FOLDER/build.took
build() {
  local dir=$1 from=$SECONDS
  shift
  mkdir -p "$dir"
  rm -f "$dir/built"
  (cd "$dir" && { [ "$(cat configured 2>/dev/null)" = "$*" ] || "$root/configure" -q "$@"; } && echo "$*" >configured &&
    if [ "$scope" = all ]; then make -s -j"$jobs" all && make -s -k -j"$jobs" check TESTS=; else
      make -s -k -j"$jobs" everyday BESIDE_SANITIZERS="$beside"; fi) >"$dir/build.out" 2>&1 && touch "$dir/built"
  echo $((SECONDS - from)) >"$dir/build.took"
}

# folder: runs the tests of a build
run_suite() {
  local dir=$1 found wanted=check-everyday
  [ "$scope" != all ] || wanted=check-all
  if [ ! -e "$dir/built" ]; then
    tail -n 40 "$dir/build.out"
    echo "the build failed: all of it is in $dir/build.out"
    count 0 1 0
    return
  fi
  find "$dir" -name '*.trs' -delete
  # -k: every test runs, so that one failure does not hide the next.
  (cd "$dir" && make -s -j"$at_once" -k "$wanted" BESIDE_SANITIZERS="$beside" VERBOSE=1) >"$dir/check.out" 2>&1 || {
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

say "configure script" "configure script"
[ -x configure ] && [ configure -nt configure.ac ] && [ configure -nt Makefile.am ] || autoreconf -fi >/dev/null

# The tests of rooms run once, under sanitizers; in both builds with --all, in this one with --fast.
if [ "$scope" = everyday ]; then beside=yes; else beside=no; fi
# Without the variants of a test whose rules its others prove.
[ "$scope" = all ] || export FL_SLOW_TESTS=no FL_CONF_SEEDS=500
# Beside the first build: it leaves a processor idle now and then, and the build waits for nothing of it.
say "lint, and the werror build" "lint, and the werror build beside it"
linted=$(mktemp)
bash tools/lint.sh >"$linted" 2>&1 &
lint=$!
build build-test --enable-werror CFLAGS='-O2 -g1 -pipe' "${linker[@]}"
if wait "$lint"; then found="1 0 0"; else found="0 1 0"; fi
cat "$linted"
rm -f "$linted"
# shellcheck disable=SC2086
count $found

say "tests of the werror build, $at_once at a time" "tests of the werror build"
builds=(build-test)
if [ "$scope" != fast ]; then
  # Beside the tests of the first build, many of which wait. At the same priority: on a busy machine a lower one would
  # leave it no processor. fl-sim-mpi is fl-sim once more, which plain deploy/test.sh does not run under sanitizers.
  builds+=(build-asan)
  # Half the processor time of -O1 with all checks: a null pointer and what lies outside of an object ASan finds, too, and
  # unaligned access is left to --all.
  san=(--enable-werror --enable-sanitize="address,undefined" "${linker[@]}")
  if [ "$scope" = all ]; then
    san+=(CFLAGS='-O1 -g1 -pipe')
  else
    san+=(--without-mpi CFLAGS='-Og -g1 -pipe -fno-sanitize=null,alignment,object-size')
  fi
  (
    build build-asan "${san[@]}"
  ) &
fi
run_suite build-test

if [ "$scope" != fast ]; then
  say "the build with ASan and UBSan" "the rest of the build with ASan and UBSan"
  wait
  say "the tests under ASan and UBSan, $at_once at a time" "tests under ASan and UBSan"
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  # Fewer random seeds: the werror build has tried more of them.
  if [ "$scope" = all ]; then export FL_SIM_SEEDS=60 FL_CONF_SEEDS=300; else export FL_SIM_SEEDS=10 FL_CONF_SEEDS=100; fi
  run_suite build-asan
fi

say "ten slowest tests"
slowest "${builds[@]}"

say "stages"
printf '%s\n' "${stages[@]}"
[ "$scope" = fast ] || echo "($(in_minutes "$(cat build-asan/build.took)")  the build with ASan and UBSan, most of it beside the tests before)"

say "totals"
printf 'took %d min %d s on %d processors\n' $((SECONDS / 60)) $((SECONDS % 60)) "$jobs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
