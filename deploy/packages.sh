# Sourced by quickstart.sh and test.sh: which Debian 12 packages are needed, and how they get here.
# shellcheck shell=bash

# A/B: either will do, A is installed when both are missing. The engine uses one thread: the OpenBLAS
# without threads is as fast, starts none before main() and needs no address space for them (the other one
# spins for ever under a small limit). With both installed Debian's alternatives pick the threaded one.
# shellcheck disable=SC2034
FL_BUILD_PACKAGES=(
  gcc make autoconf automake pkg-config
  protobuf-c-compiler protobuf-compiler libprotobuf-c-dev
  libuv1-dev libnghttp2-dev libmicrohttpd-dev libssl-dev libopenblas-serial-dev/libopenblas-pthread-dev libyaml-dev libsqlite3-dev
  zlib1g-dev libpng-dev libturbojpeg0-dev libjansson-dev libxxhash-dev libsystemd-dev check)
# lld links the test programs in a quarter of the time. Open MPI is for fl-sim-mpi: 11 MB to fetch, 48 MB on disk. pandas, for the data frames of fl_sim, has 38 MB on disk.
# shellcheck disable=SC2034
FL_TEST_PACKAGES=(
  git clang-format-14 shellcheck python3 python3-numpy python3-grpcio python3-protobuf protobuf-compiler-grpc
  systemd openssl gnuplot-nox man-db prometheus
  python3-pyflakes python3-sklearn python3-torch python3-pandas
  dh-python python3-pip python3-setuptools python3-wheel
  debhelper lintian mmdebstrap fakeroot dpkg-dev buildah python3-yaml ansible-core
  qemu-user-static systemd-container iproute2 util-linux procps xz-utils faketime chromium
  tinyproxy-bin haproxy lld)
# What deploy/package.sh needs besides those of the build.
# shellcheck disable=SC2034
FL_PACKAGE_PACKAGES=(debhelper dh-python fakeroot dpkg-dev)
# And for --wheel, which needs no others.
# shellcheck disable=SC2034
FL_WHEEL_PACKAGES=(python3-pip python3-setuptools python3-wheel)

fl_has_package() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'
}

# Install those of "$@" that are missing, with sudo when not root. Touches no network when all are
# there.
fl_install_packages() {
  local missing=() p
  for p in "$@"; do
    fl_has_package "${p%%/*}" || fl_has_package "${p##*/}" || missing+=("${p%%/*}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installing: ${missing[*]}"
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "need root or sudo to install: ${missing[*]}" >&2; return 1; }
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq || echo "apt-get update failed, trying with the lists that are here" >&2
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}
