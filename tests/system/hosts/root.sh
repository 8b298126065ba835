# shellcheck shell=bash disable=SC2034,SC2154
# What hosts are made of, kept below the build folder: a minimal Debian 12 (20 to 30 s, once) and what `make install` of
# this build brings. Sourced by lib.sh, before its namespaces.

# systemd, what a test looks around with, and the libraries that our programs need (deploy/packages.sh has
# their -dev packages).
hosts_packages=(systemd systemd-sysv dbus iproute2 procps
  libuv1 libnghttp2-14 libmicrohttpd12 libopenblas0 libopenblas0-serial libyaml-0-2 libsqlite3-0 zlib1g libprotobuf-c1 libssl3 libjansson4
  libsystemd0 libxxhash0)

# folder: a root file system, made when it is not there or was made of other packages. Two tests that come at once
# make it once.
hosts_root() {
  local root=$1 sources=/etc/apt/sources.list.d/debian.sources stamp
  [ -e $sources ] || sources=/etc/apt/sources.list
  stamp="bookworm ${hosts_packages[*]}"
  mkdir -p "$(dirname "$root")"
  (
    flock 9
    [ "$(cat "$root.stamp" 2>/dev/null)" != "$stamp" ] || exit 0
    rm -rf "$root" "$root.stamp"
    # In a mount namespace of its own: what it mounts is gone when it is killed. Files are not synced: a root that was not
    # finished has no stamp. Manuals stay: a filter of paths runs a Python program for each package, half the time of all.
    unshare --mount --propagation private mmdebstrap -q --variant=minbase --include="$(IFS=,; echo "${hosts_packages[*]}")" \
      --aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
      --dpkgopt='force-unsafe-io' \
      bookworm "$root" "$sources" >"$root.log" 2>&1 || exit 1
    echo "$stamp" >"$root.stamp"
  ) 9>"$root.lock"
}

# A variable of the build's Makefile, with what it refers to filled in.
hosts_value_of() {
  printf 'include %s/Makefile\nfl-print:\n\t@echo $(%s)\n' "$build" "$1" |
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" -f - fl-print
}

# folder: programs, units, users and folders as installed, without benches, tests, documents.
hosts_layer() {
  rm -rf "$1"
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" install-sbinPROGRAMS install-binPROGRAMS \
    install-systemdsystemunitDATA install-sysusersDATA install-tmpfilesDATA bin_PROGRAMS="flctl fl-data" DESTDIR="$1" >/dev/null
}
