#!/usr/bin/env bash
# Who may do what at the admin socket: the kernel says who asks. With other users of this machine, so root only.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
flctl=$build/flctl
[ "$(id -u)" -eq 0 ] || skip "only root can be somebody else"
[ -n "$(command -v setpriv)" ] || skip "there is no setpriv"
# Groups that every Debian has, and users that need no entry.
admins=staff viewers=games
admins_gid=$(getent group $admins | cut -d: -f3) || skip "there is no group $admins"
viewers_gid=$(getent group $viewers | cut -d: -f3) || skip "there is no group $viewers"
own=54321 other=54322
chmod 711 "$dir"
setpriv --reuid $other --regid $other --clear-groups test -x "$flctl" || skip "$flctl is in a folder of root's"

socket=$dir/admin.sock
# "$as" UID GID GROUPS-or-'' COMMAND…
as=$dir/as
cat >"$as" <<'END'
#!/bin/sh
uid=$1 gid=$2 groups=$3
shift 3
[ -z "$groups" ] || exec setpriv --reuid "$uid" --regid "$gid" --groups "$groups" "$@"
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"
END
chmod 755 "$as"
mode_of() { stat -c '%a %G' "$1"; }
many=$(seq -s, 60000 60060) # more groups than anybody looks at, all behind those of the system

### Groups that are not there
write_server srv "admin_socket: $socket" "admin_group: fl-nobody-has-this" "model: {preset: mlr}"
says "a group that is not there" 3 "srv.yaml:6: key 'admin_group': there is no group 'fl-nobody-has-this'" "$build/fl-serverd" "$dir/srv.yaml"
says "is seen before" 3 "key 'admin_group'" "$build/fl-serverd" --check-config "$dir/srv.yaml"
write_server srv "admin_socket: $socket" "admin_viewers: fl-nobody-has-this" "model: {preset: mlr}"
says "nor viewers" 3 "key 'admin_viewers'" "$build/fl-serverd" "$dir/srv.yaml"

### One group for everything
write_server srv "admin_socket: $socket" "admin_group: $admins" "model: {preset: mlr}"
start_server srv
equal "the socket is the group's" "660 $admins" "$(mode_of "$socket")"
says "root" 0 "is paused" "$flctl" -s "$socket" pause
says "a member of the group" 0 "resumed: " "$as" $other $other "$admins_gid" "$flctl" -s "$socket" resume
says "whose first group it is" 0 "is paused" "$as" $other "$admins_gid" '' "$flctl" -s "$socket" pause
says "who has many groups" 0 "resumed: " "$as" $other $other "$admins_gid,$many" "$flctl" -s "$socket" resume
says "another user does not reach it" 3 "ermission denied" "$as" $other $other '' "$flctl" -s "$socket" status
# Whatever the file says: the kernel is asked, not the file.
chmod 666 "$socket"
says "nor does he with an open socket" 1 "PERMISSION_DENIED: permission denied for user $other: only root, the server's own user (0) and members of the group '$admins' may use this socket" \
  "$as" $other $other '' "$flctl" -s "$socket" status
says "nor in another group" 1 "PERMISSION_DENIED" "$as" $other $other "$viewers_gid" "$flctl" -s "$socket" status
has_line "it is in the log" "$dir/srv.log" "/fl.v1.Admin/Status: permission denied for user $other"
stop srv
equal "the server ends well" 0 "$rc"

### Some may look
write_server srv "admin_socket: $socket" "admin_group: $admins" "admin_viewers: $viewers" "model: {preset: mlr}"
start_server srv
equal "everybody may knock" "666 $admins" "$(mode_of "$socket")"
mkdir -m 777 "$dir/out"
says "status for a viewer" 0 '"rounds_committed": 0' "$as" $other $other "$viewers_gid" "$flctl" -s "$socket" --json status
for command in why rounds clients checkpoints; do
  says "$command for a viewer" 0 "]" "$as" $other $other "$viewers_gid" "$flctl" -s "$socket" --json $command
done
for command in pause resume drain abort-round export "pin --round 0" "rollback 0" "clients forget x" "summaries drop x"; do
  # shellcheck disable=SC2086
  says "$command for a viewer" 1 "permission denied" "$as" $other $other "$viewers_gid" \
    "$flctl" -s "$socket" -o "$dir/out/none.safetensors" $command
done
says "who is in both may act" 0 "is paused" "$as" $other $other "$viewers_gid,$admins_gid" "$flctl" -s "$socket" pause
says "others still may nothing" 1 "PERMISSION_DENIED" "$as" $other $other '' "$flctl" -s "$socket" status
stop srv

### A server that is not root
mkdir "$dir/own" && chown $own "$dir/own" && chmod 711 "$dir/own"
socket=$dir/own/admin.sock
start_own() { # groups or '', lines of YAML…
  local groups=$1
  shift
  write_server srv "admin_socket: $socket" "model: {preset: mlr}" "$@"
  sed -i "s|^state_dir: .*|state_dir: $dir/own/state|; s|^listen: .*|listen: [\"unix:$dir/own/srv.sock\"]|" "$dir/srv.yaml"
  : >"$dir/srv.out"
  "$as" $own $own "$groups" "$build/fl-serverd" "$dir/srv.yaml" >"$dir/srv.out" 2>>"$dir/srv.log" &
  pid_of[srv]=$!
  wait_for "fl-serverd to listen or end" listens srv
}
start_own '' "admin_group: $admins"
equal "one that cannot give it to the group lets everybody knock" "666 UNKNOWN" "$(mode_of "$socket")"
says "and lets in members" 0 "is paused" "$as" $other $other "$admins_gid" "$flctl" -s "$socket" pause
says "and nobody else" 1 "members of the group '$admins' may" "$as" $other $other '' "$flctl" -s "$socket" resume
says "but itself" 0 "resumed: " "$as" $own $own '' "$flctl" -s "$socket" resume
stop srv
start_own "$admins_gid" "admin_group: $admins"
equal "one that is in the group can" "660 $admins" "$(mode_of "$socket")"
says "the server's own user" 0 "is paused" "$as" $own $own '' "$flctl" -s "$socket" pause
says "root" 0 "resumed: " "$flctl" -s "$socket" resume
says "a member" 0 "is paused" "$as" $other $other "$admins_gid" "$flctl" -s "$socket" pause
stop srv
equal "the server ends well" 0 "$rc"
if ! getent group fl-admin >/dev/null; then
  start_own ''
  equal "without a group it is the server's alone" "600 UNKNOWN" "$(mode_of "$socket")"
  chmod 666 "$socket"
  says "a user of the same group may nothing" 1 "only root, the server's own user ($own) may" "$as" $other $own '' "$flctl" -s "$socket" status
  stop srv
fi
finish
