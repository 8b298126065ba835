#!/usr/bin/env bash
# Debian packages of this tree: fl-server, fl-client, fl-tools, fl-sim, fl-sim-mpi (where Open MPI is),
# python3-fl and fl-doc. Builds with dpkg-buildpackage in a copy of the tree, which is removed afterwards.
#   deploy/package.sh [--wheel] [--output DIR] [--install]
#     --wheel        the Python packages fl_trainer, fl_strategy and fl_sim as a wheel for pip instead; needs no network
#     --output DIR   where the packages go (default ./build-packages)
#     --install      install the Debian packages that are missing for the build first
set -euo pipefail

die() { echo "package.sh: $*" >&2; exit 1; }
output=build-packages install=no wheel=no
while [ $# -gt 0 ]; do
  case "$1" in
    --output) [ $# -ge 2 ] || { echo "package.sh: --output needs a folder" >&2; exit 2; }; output=$2; shift 2 ;;
    --install) install=yes; shift ;;
    --wheel) wheel=yes; shift ;;
    -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "package.sh: unknown argument '$1' (see --help)" >&2; exit 2 ;;
  esac
done
root=$(cd "$(dirname "$0")/.." && pwd)
if [ "$install" = yes ]; then
  # shellcheck source=deploy/packages.sh
  . "$root/deploy/packages.sh"
  if [ "$wheel" = yes ]; then
    fl_install_packages "${FL_WHEEL_PACKAGES[@]}"
  else
    fl_install_packages "${FL_BUILD_PACKAGES[@]}" "${FL_PACKAGE_PACKAGES[@]}"
  fi
fi
if [ "$wheel" = yes ]; then
  python=${FL_PYTHON:-/usr/bin/python3}
  "$python" -c 'import setuptools, wheel, pip' 2>/dev/null ||
    die "$python has no pip, setuptools or wheel: apt-get install python3-pip python3-setuptools python3-wheel, or run with --install"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # In a copy: setuptools builds in the folder that it reads.
  cp -r "$root/LICENSE" "$root"/client/python/{fl_trainer,fl_sim.py,fl_strategy.py,pyproject.toml} "$work/"
  mkdir -p "$output"
  "$python" -m pip wheel --quiet --no-build-isolation --no-deps --no-index --disable-pip-version-check \
    --wheel-dir "$output" "$work"
  cd "$output"
  ls -- fl_trainer-*.whl
  exit 0
fi
for program in dpkg-buildpackage dh fakeroot; do
  command -v "$program" >/dev/null ||
    die "$program is missing: apt-get install dpkg-dev debhelper fakeroot, or run with --install"
done
mkdir -p "$output"
output=$(cd "$output" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/fl"
cd "$root"
# What git would keep; a tree without git (a tarball) as it is.
if git rev-parse --git-dir >/dev/null 2>&1; then
  git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
  done | tar -c --null -T - | tar -x -C "$work/fl"
else
  tar -c --exclude='./build*' . | tar -x -C "$work/fl"
fi
cp -r "$work/fl/deploy/debian" "$work/fl/debian"

if [ -d /usr/lib/ccache ] && command -v ccache >/dev/null; then
  # debhelper gives the build a home of its own. The work folder has another name each time.
  CCACHE_DIR=$(ccache --get-config cache_dir)
  export CCACHE_DIR PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=yes
fi
pkg-config --exists 'ompi-c >= 4.0' || export DEB_BUILD_PROFILES="${DEB_BUILD_PROFILES:-} pkg.fl.nompi"
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-parallel=$(nproc)}

cd "$work/fl"
dpkg-buildpackage -b -us -uc >"$output/build.log" 2>&1 || {
  tail -n 40 "$output/build.log" >&2
  die "the build failed; all of it is in $output/build.log"
}
rm -f "$output"/*.deb "$output"/*.changes "$output"/*.buildinfo
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$output/"
cd "$output"
ls -- *.deb
