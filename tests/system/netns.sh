# shellcheck shell=bash disable=SC2034,SC2154
# A client in a network namespace of its own, which reaches 10.78.0.1 and nothing else; there the test plays what is on the
# way: a proxy, a load balancer.
#
#   . "$(dirname "$0")/../netns.sh"
#   netns_begin PROGRAM…      the script runs again in a namespace from here on, with lib.sh; skips where that cannot be
#   inside COMMAND…           as the client, 10.78.0.2; $inside COMMAND… for what takes a command (says, documented)
#   run_inside CLIENT         as run_client
#
# Here are 10.78.0.1, on the way to the client, and 10.79.0.1, to which the client has no route. The machine's own network is
# not touched, and nothing of it is seen.

netns_skip() {
  echo "skipped: $*"
  exit 77
}

netns_again() { # programs…
  local program user=()
  for program in "$@" ip unshare nsenter; do
    command -v "$program" >/dev/null || netns_skip "no $program (FL_TEST_PACKAGES of deploy/packages.sh)"
  done
  [ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)
  unshare "${user[@]}" --net true 2>/dev/null || netns_skip "network namespaces cannot be made here"
  FL_NETNS=yes exec unshare "${user[@]}" --net bash "$0"
}

netns_apart() { [ "$(readlink "/proc/$netns_inner/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

netns_links() {
  ip link set lo up && ip address add 10.79.0.1/32 dev lo &&
    ip link add outer type veth peer name inner netns "$netns_inner" &&
    ip address add 10.78.0.1/24 dev outer && ip link set outer up &&
    inside ip link set lo up && inside ip address add 10.78.0.2/24 dev inner && inside ip link set inner up
}

netns_begin() {
  [ -n "${FL_NETNS:-}" ] || netns_again "$@"
  # shellcheck source=tests/system/lib.sh
  . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
  unset https_proxy HTTPS_PROXY no_proxy NO_PROXY
  unshare --net sleep infinity &
  pid_of[inside]=$! netns_inner=$!
  wait_for "the namespace of the client" netns_apart
  inside="nsenter --target $netns_inner --net --"
  netns_links >"$dir/net.out" 2>&1 || skip "no veth device: $(tail -n 1 "$dir/net.out")"
}

inside() { $inside "$@"; }

run_inside() {
  inside "$build/fl-clientd" "$dir/$1.yaml" >>"$dir/$1.out" 2>>"$dir/$1.log" &
  pid_of[$1]=$!
}
