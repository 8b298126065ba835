# shellcheck shell=bash disable=SC2154
# For tests of what is installed: the Debian packages of this tree and a clean root to install them in, both made
# once and kept in the build folder. Source after tests/system/lib.sh.
#
#   packages_wanted        skips the test where packages cannot be built or a root cannot be made
#   packages               builds them if the tree has changed; $packages is their folder
#   root_of_debian         $root_tar is a minimal Debian with what the packages depend on
#   clean_root DIR         the same, unpacked: and none of them is installed

packages_wanted() {
  local program
  [ "$(id -u)" -eq 0 ] || skip "only root makes a clean root to install packages in"
  for program in dpkg-buildpackage dh lintian mmdebstrap fakeroot; do
    command -v $program >/dev/null || skip "$program is not installed (deploy/packages.sh)"
  done
}

# What the packages are made of: neither tests nor benches.
tree_hash() {
  (cd "$srcdir" && if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z -co --exclude-standard
  else
    find . -path './build*' -prune -o -type f -print0
  fi | grep -zvE '^(\./)?(tests|bench)/' | sort -z | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c 1-16)
}

# description, folder, command…: makes the folder once, also when several tests come at a time
kept() {
  local what=$1 folder=$2
  shift 2
  mkdir -p "$(dirname "$folder")"
  (
    flock 9
    [ ! -e "$folder" ] || exit 0
    rm -rf "$folder.new" && mkdir "$folder.new" && "$@" "$folder.new" && mv "$folder.new" "$folder"
  ) 9>"$(dirname "$folder")/lock" >"$dir/kept.out" 2>&1 && return 0
  checks=$((checks + 1))
  note_failure "$what could not be made"
  tail -n 30 "$dir/kept.out"
  finish
}

build_packages() {
  # Older ones are of no use to anybody.
  find "$build/packages" -mindepth 1 -maxdepth 1 -name 'tree-*' ! -path "$1" -exec rm -rf {} +
  # Not a part of the make that runs the test, nor under its sanitizers.
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u ASAN_OPTIONS -u UBSAN_OPTIONS \
    bash "$srcdir/deploy/package.sh" --output "$1"
}
packages() {
  packages=$build/packages/tree-$(tree_hash)
  kept "packages of the tree" "$packages" build_packages
}

root_packages() { # the first of each alternative that the packages depend on, without our own
  local deb
  for deb in "$packages"/{fl-{server,client,tools,sim},python3-fl}_*.deb; do dpkg-deb -f "$deb" Depends; done |
    tr ',' '\n' | sed -E 's/\|.*//; s/\(.*\)//; s/:any//; s/ //g' | grep -v '^fl-' | sort -u
}
build_root() {
  # shellcheck disable=SC2046
  mmdebstrap --quiet --variant=minbase --include="$(printf '%s\n' "${root_wants[@]}" | paste -sd,)" \
    --aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
    bookworm "$1/root.tar" $(find /etc/apt/sources.list.d /etc/apt/sources.list -name 'debian.sources' -o -name sources.list \
      -size +0 | head -n 1)
}
root_of_debian() {
  # The OpenBLAS that starts no threads.
  mapfile -t root_wants < <({ root_packages; echo libopenblas0-serial; } | sort -u)
  root_tar=$build/packages/root-$(printf '%s\n' "${root_wants[@]}" | sha256sum | cut -c 1-16)
  kept "a root of Debian" "$root_tar" build_root
  root_tar+=/root.tar
}
clean_root() {
  root_of_debian
  mkdir -p "$1" && tar -x -C "$1" --exclude='./dev/*' -f "$root_tar"
}
