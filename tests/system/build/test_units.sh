#!/usr/bin/env bash
# The units as installed: systemd finds nothing wrong with them, their sandbox is as tight as it was made, they
# come only with a build that can tell systemd that it is ready, and template and unit say the same.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
command -v systemd-analyze >/dev/null || skip "no systemd-analyze (package systemd)"
inner_make() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" "$@"; }
grep -q '^#define HAVE_SYSTEMD' "$build/config.h" || {
  check "make install" inner_make install-data DESTDIR="$dir/root"
  equal "without libsystemd no unit is installed" "" \
    "$(find "$dir/root" -name '*.service' -o -name '*.socket' -o -path '*sysusers.d/*' -o -path '*tmpfiles.d/*')"
  finish
}
dirs=(systemdsystemunitdir=/usr/lib/systemd/system sysusersdir=/usr/lib/sysusers.d tmpfilesdir=/usr/lib/tmpfiles.d)
check "make install" inner_make install-systemdsystemunitDATA install-sysusersDATA install-tmpfilesDATA \
  install-sbinPROGRAMS "${dirs[@]}" DESTDIR="$dir/root"
units=$dir/root/usr/lib/systemd/system
equal "what is installed" "fl-clientd.service fl-clientd@.service fl-serverd.service fl-serverd.socket fl-serverd@.service" \
  "$(cd "$units" && LC_ALL=C ls | tr '\n' ' ' | sed 's/ $//')"

### verify: the programs stand where the build was told to install them, which is not here. Man pages are looked at by the
### packages.
sbin=$(sed -n 's,^ExecStart=\(.*\)/fl-serverd .*,\1,p' "$units/fl-serverd.service")
mkdir -p "$dir/verify"
for unit in fl-serverd.service fl-clientd.service fl-serverd@one.service fl-clientd@one.service fl-serverd.socket; do
  sed "s,$sbin/,$dir/root$sbin/," "$units/${unit/@one/@}" >"$dir/verify/$unit"
done
cp "$build/systemd/gpu.conf" "$dir/"
verify() { # files…: prints what systemd finds
  systemd-analyze verify --man=no --recursive-errors=no "$@" 2>&1 | grep -v 'Failed to .*bus'
}
for unit in "$dir"/verify/*; do
  equal "verify $(basename "$unit")" "" "$(verify "$unit")"
done
mkdir -p "$dir/verify/fl-clientd.service.d"
cp "$dir/gpu.conf" "$dir/verify/fl-clientd.service.d/"
equal "verify the drop-in for GPUs" "" "$(verify "$dir/verify/fl-clientd.service")"
rm -r "$dir/verify/fl-clientd.service.d"
echo 'RestartSteps=5' | sed '1i [Service]' >"$dir/verify/broken.service"
check "a key that this systemd does not know would be found" test -n "$(verify "$dir/verify/broken.service")"

### The sandbox
exposure() {
  systemd-analyze security --offline=yes --no-pager "$1" 2>/dev/null |
    sed -n 's/.*exposure level for [^:]*: \([0-9.]*\) .*/\1/p'
}
for unit in fl-serverd.service fl-clientd.service fl-serverd@one.service fl-clientd@one.service; do
  level=$(exposure "$dir/verify/$unit")
  # chown, for the group of the admin socket, is a tenth.
  case $unit in fl-serverd*) most=1.4 ;; *) most=1.3 ;; esac
  check "the exposure of $unit is at most $most, found $level" \
    "$python" -c 'import sys; sys.exit(float(sys.argv[1]) > float(sys.argv[2]))' "$level" "$most"
done

### Users and folders
for daemon in fl-serverd fl-clientd; do
  mkdir -p "$dir/$daemon/etc"
  says "the user of $daemon" 0 "Creating user '$daemon'" systemd-sysusers --dry-run --root="$dir/$daemon" \
    "$dir/root/usr/lib/sysusers.d/$daemon.conf"
  check "$daemon is made" systemd-sysusers --root="$dir/$daemon" "$dir/root/usr/lib/sysusers.d/$daemon.conf"
  equal "is the unit's" "$daemon" "$(sed -n 's/^User=//p' "$units/$daemon.service")"
  check "folders of $daemon" systemd-tmpfiles --create --root="$dir/$daemon" \
    "$dir/root/usr/lib/tmpfiles.d/$daemon.conf"
  equal "the place of keys is root's alone" 700 "$(stat -c %a "$dir/$daemon/etc/credstore")"
done

### Several on one machine: all that is an instance's own carries its name, the rest is the same
for daemon in fl-serverd fl-clientd; do
  kind=${daemon#fl-}
  kind=${kind%d}
  equal "$daemon@ differs from $daemon by the instance" "" "$(diff \
    <(sed -e "s/$daemon-%i/$daemon/g; s/$kind-%i\.yaml/$kind.yaml/; s/ of %i\$//" "$units/$daemon@.service") \
    "$units/$daemon.service")"
  for key in StateDirectory RuntimeDirectory LoadCredential ExecStart; do
    equal "$key of $daemon@ is an instance's own" "" \
      "$(grep "^$key=" "$units/$daemon@.service" | grep -v -- '-%i')"
  done
done

### What was found on hosts
for unit in "$units"/*.service; do
  equal "nothing runs before the main process of $(basename "$unit")" "" "$(grep ExecStartPre "$unit")"
  check "$(basename "$unit") can be reloaded" grep -q '^ExecReload=' "$unit"
  check "$(basename "$unit") is watched" grep -q '^WatchdogSec=' "$unit"
done
finish
