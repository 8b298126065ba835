#!/usr/bin/env bash
# `when: unmetered` asks a NetworkManager on a system bus of the test: each of its values, none there, one that does not
# answer, and a bus that does not: the client waits for neither, and its session goes on.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
command -v dbus-daemon >/dev/null || skip "no dbus-daemon"
"$python" -c 'import dbus.mainloop.glib; from gi.repository import GLib' 2>/dev/null || skip "no python3-dbus, python3-gi"
"$build/fl-clientd" --version >/dev/null
grep -q '^#define HAVE_SYSTEMD 1' "$build/config.h" || skip "built without libsystemd"
synthetic "$dir/data" 1 --seed 3
cat >"$dir/bus.conf" <<XML
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=$dir/bus.sock</listen>
  <policy context="default"><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/><allow user="*"/></policy>
</busconfig>
XML
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$dir/bus.sock
dbus-daemon --config-file="$dir/bus.conf" --nofork >"$dir/bus.out" 2>&1 &
pid_of[bus]=$!
wait_for "the bus" test -S "$dir/bus.sock"
write_server srv "model: {preset: dnn60}" "rounds: 1000000" "round: {retry: 20ms}" "training: {epochs: 1}"
start_server srv || finish
start_client c "$dir/data/client-000" "when: {unmetered: yes, check: 20ms}"
of() { ctl srv clients --json | json "next(c['$1'] for c in d)"; } # key
is() { [ "$(of state 2>/dev/null)" = unavailable ]; }
free() { [ "$(of connected 2>/dev/null)" = True ] && ! is; }
more() { [ "$(of accepted)" -gt "$accepted" ]; }
goes_on() { # name: it is available and trains
  wait_for "$1" free
  accepted=$(of accepted)
  wait_for "$1: an update" more
}
value() { echo "$1" >"$dir/value.new" && mv "$dir/value.new" "$dir/value"; }

goes_on "without NetworkManager"
value 1
"$python" "$srcdir/tests/system/network_manager.py" "$dir/value" >"$dir/manager.out" 2>&1 &
pid_of[manager]=$!
wait_for "NetworkManager" grep -q ready "$dir/manager.out"
wait_for "metered" is
has_line "its owner reads why" "$dir/c.log" "not available (section 'when'): its network is metered, as NetworkManager says"
value 2
goes_on "not metered"
value 3
wait_for "metered, as it guesses" is
value 4
goes_on "not metered, as it guesses"
value 1
wait_for "metered" is
value 0
goes_on "unknown"
value 1
wait_for "metered" is
value hang
goes_on "one that does not answer"
kill -STOP "${pid_of[bus]}"
goes_on "a bus that does not answer"
kill -CONT "${pid_of[bus]}"
value 1
wait_for "metered" is
stop bus
goes_on "no bus"
finish
