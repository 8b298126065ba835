#!/usr/bin/env bash
# Packages of this tree for another processor, and the unit tests run under qemu: everything happens in a
# root of its own (mmdebstrap; Debian's cross compiler and the libraries of that processor), nothing is
# installed on this machine.
#   deploy/cross.sh ARCH [--output DIR] [--tests NAMES] [--limit SECONDS] [--no-packages]
#     ARCH           of Debian: arm64, armhf
#     --output DIR   where root, packages and reports go (default ./build-cross-ARCH)
#     --tests NAMES  all (default), none, kernels (those of libfl/num and libfl/nn), or some: "test_base test_num"
#     --no-packages  the tests alone, built in the root without them
#     --limit SECONDS  of this machine's processor for a part of a test, as one that is played is slow: a test with a part
#                    that is not through by then is named, and is neither passed nor failed (default 7200)
# Ends with the totals of the tests, and with an error where one failed; what each said is in tests/. The root is made once, 1.2 GB.
set -euo pipefail

die() { echo "cross.sh: $*" >&2; exit 1; }
[ $# -ge 1 ] || set -- --help
case "$1" in
  -h|--help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
  arm64) triplet=aarch64-linux-gnu qemu=qemu-aarch64-static ;;
  armhf) triplet=arm-linux-gnueabihf qemu=qemu-arm-static ;;
  *) echo "cross.sh: expected arm64 or armhf, found '$1' (see --help)" >&2; exit 2 ;;
esac
arch=$1 output=build-cross-$1 tests=all limit=7200 packages=yes
shift
while [ $# -gt 0 ]; do
  [ "$1" != --no-packages ] || { packages=no; shift; continue; }
  [ $# -ge 2 ] || { echo "cross.sh: $1 needs a value" >&2; exit 2; }
  case "$1" in
    --output) output=$2 ;;
    --tests) tests=$2 ;;
    --limit) limit=$2 ;;
    *) echo "cross.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
  esac
  shift 2
done
[ "$(id -u)" -eq 0 ] || die "only root makes a root of another Debian"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt-get install mmdebstrap"
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$output"
output=$(cd "$output" && pwd)
root=$output/root

if [ ! -d "$root" ]; then
  echo "a root of Debian 12 with compiler and libraries for $arch"
  wants=(
    "gcc-$triplet" "libc6-dev:$arch" autoconf automake ccache debhelper make pkg-config protobuf-c-compiler
    protobuf-compiler python3-minimal qemu-user-static)
  for library in check libjansson-dev libmicrohttpd-dev libnghttp2-dev libopenblas-serial-dev libpng-dev libprotobuf-c-dev libsqlite3-dev libssl-dev \
    libsystemd-dev libturbojpeg0-dev libuv1-dev libxxhash-dev libyaml-dev zlib1g-dev; do
    wants+=("$library:$arch")
  done
  rm -rf "$root.new"
  # One archive for both: the same library has to have the same version for either processor.
  mmdebstrap --quiet --variant=minbase --architectures="$(dpkg --print-architecture),$arch" \
    --include="$(IFS=,; echo "${wants[*]}")" --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Languages "none"' bookworm "$root.new" "${FL_MIRROR:-http://deb.debian.org/debian}"
  mv "$root.new" "$root"
fi

rm -rf "$root/fl" && mkdir -p "$root/fl/tree" "$root/ccache"
echo "127.0.0.1 localhost" >"$root/etc/hosts"
cd "$source"
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
  done | tar -c --null -T - | tar -x -C "$root/fl/tree"
else
  tar -c --exclude='./build*' . | tar -x -C "$root/fl/tree"
fi
inside() { # command…, in the root, with its own /proc and /dev
  unshare --mount --propagation private -- bash -c '
    root=$1 && shift && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
    exec chroot "$root" "$@"' - "$root" \
    env -i PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CCACHE_DIR=/ccache \
    PKG_CONFIG_LIBDIR="/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig" FL_RUN=$qemu CONFIG_SITE= \
    DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" "$@"
}
if [ "$packages" = yes ]; then
  echo "packages for $arch"
  cp -r "$root/fl/tree/deploy/debian" "$root/fl/tree/debian"
  # -d: what is for the building processor is checked by its use; dpkg knows of no qemu.
  inside sh -c "cd /fl/tree && dpkg-buildpackage -b -us -uc -d -a$arch -Pcross,pkg.fl.nompi" >"$output/build.log" 2>&1 || {
    tail -n 40 "$output/build.log" >&2
    die "the build failed; all of it is in $output/build.log"
  }
  rm -f "$output"/*.deb
  mv "$root"/fl/*.deb "$output/"
  (cd "$output" && ls -- *.deb)
  for program in fl-serverd fl-clientd flctl fl-data fl-sim; do
    inside $qemu "/fl/tree/build/$program" --version
  done
else
  inside sh -c "cd /fl/tree && autoreconf -fi && mkdir -p build && cd build && ../configure --host=$triplet --without-mpi
    CFLAGS='-O2 -g'" >"$output/build.log" 2>&1 || die "cannot be configured; all of it is in $output/build.log"
fi

[ "$tests" != none ] || exit 0
unit=$(inside sh -c "cd /fl/tree/build && printf 'include Makefile\nfl-print:\n\t@echo \$(filter tests/libfl/%% tests/server/%% tests/client/%%,\$(check_PROGRAMS))\n' |
  make -s -f - fl-print")
if [ "$tests" = kernels ]; then
  tests=$(sed -n 's/^check_PROGRAMS += //p' tests/libfl/num/Makefile.inc tests/libfl/nn/Makefile.inc | tr ' ' '\n')
fi
if [ "$tests" != all ]; then
  # shellcheck disable=SC2086 # one word each
  unit=$(for test in $tests; do find tests -name "$(basename "$test").c" | sed 's,\.c$,,'; done)
fi
echo "unit tests under $qemu"
inside sh -c "cd /fl/tree/build && nice make -s -k -j$(nproc) $unit" >"$output/tests.log" 2>&1 ||
  echo "not all were built: see $output/tests.log"
passed=0 failed=0 slow=()
rm -rf "$output/tests" && mkdir "$output/tests"
for test in $unit; do
  log=$output/tests/$(basename "$test").log code=0
  inside sh -c "cd /fl/tree/build && ulimit -t $limit && FL_SRCDIR=/fl/tree FL_BUILDDIR=/fl/tree/build OPENBLAS_NUM_THREADS=1 CK_VERBOSITY=normal \
    CK_DEFAULT_TIMEOUT=86400 nice $qemu ./$test" >"$log" 2>&1 </dev/null || code=$?
  if [ "$code" -eq 0 ]; then
    passed=$((passed + 1))
    [ "$packages" = yes ] || echo "$(basename "$test"): $(tail -n 1 "$log")"
  elif [ "$code" -eq 152 ] || { grep -qa 'signal 24' "$log" && ! grep -aE ':[FE]:' "$log" | grep -qv 'signal 24'; }; then
    slow+=("$(basename "$test")")
  else
    failed=$((failed + 1))
    echo "failed: $test"
    grep -aE ':[FE]:' "$log" | head -n 5 || true
  fi
done
echo "$passed unit tests passed, $failed failed, ${#slow[@]} not through within $limit s${slow[*]:+: ${slow[*]}}"
[ "$failed" -eq 0 ]
