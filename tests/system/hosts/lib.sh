# shellcheck shell=bash disable=SC2034,SC2154
# Several hosts on one machine, each with a systemd of its own as PID 1 and an address of its own: systemd-nspawn without
# machined, overlays over one root file system, network namespaces on a bridge. A host is up within a second.
#
#   . "$(dirname "$0")/lib.sh"
#   hosts_begin "$@"          the script runs again in namespaces of its own from here on; skips where that cannot be
#   hosts_up LAYER [HOST…]    boots hosts (default: server client1 client2) with what LAYER holds over the root; '': nothing.
#                             hosts_installed is the LAYER of this build's `make install`
#   on HOST COMMAND…          there, as root, with an empty environment; what is to outlive it: on HOST systemd-run …,
#                             else it stands in the way of shut_down
#   put HOST PATH             standard input as a file there;  copy_to HOST PATH FILE…   files and folders (packages, say)
#   link HOST up|down         its cable
#   cut_power HOST; boot HOST; shut_down HOST
#   prop HOST UNIT PROPERTY   as `systemctl show -P`;   is_prop HOST UNIT PROPERTY VALUE
#   journal HOST UNIT […]     its lines;   in_journal HOST UNIT TEXT
#
# Hosts see each other under their names: server is 10.77.0.1, client1 10.77.0.2 and so on. They see nothing else, and
# nothing of them is left when the script ends, however it ends. For packages instead of `make install`: hosts_up '', then
# copy_to server /root *.deb and on server dpkg -i …; the root has the libraries that our programs need
# (hosts_packages in root.sh). federation.sh has configurations and rounds.
#
# Checks, wait_for, finish come from tests/system/lib.sh. Why it is done as it is:
#   - A cgroup for each host, entered before nspawn starts, else all of them would share /payload.
#   - --register=no --keep-unit: there is no machined and no bus outside. So no machinectl, but nsenter into nspawn's
#     only child.
#   - Everything in a process namespace that dies with the script, in a mount namespace with tmpfs on what nspawn and ip
#     write to; the machine's own network is not touched.
#   - machine-id is filled in, else systemd asks first-boot questions; /var/log/journal is there, so that the journal survives
#     cut_power.

build=${FL_BUILDDIR:-$PWD}
srcdir=${FL_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
hosts_cg=/sys/fs/cgroup
hosts_net=10.77.0
# shellcheck source=tests/system/hosts/root.sh
. "$srcdir/tests/system/hosts/root.sh"

hosts_skip() {
  echo "skipped: $*"
  exit 77
}

# What has to be there, and the root; the reason on standard output when it is not.
hosts_prepare() {
  local program
  [ "$(id -u)" -eq 0 ] || hosts_skip "hosts need root"
  for program in systemd-nspawn mmdebstrap ip nsenter unshare setpriv systemd-id128 flock; do
    command -v $program >/dev/null || hosts_skip "no $program (FL_TEST_PACKAGES of deploy/packages.sh)"
  done
  grep -q '^#define HAVE_SYSTEMD' "$build/config.h" || hosts_skip "built without libsystemd"
  ! grep -q '^FL_SAN_FLAGS = .*-fsanitize' "$build/Makefile" ||
    hosts_skip "programs with sanitizers do not run in the sandbox of the units"
  case $(hosts_value_of systemdsystemunitdir) in
    /lib/systemd/system | /usr/lib/systemd/system | /usr/local/lib/systemd/system) ;;
    *) hosts_skip "this build's units are not installed where systemd looks" ;;
  esac
  unshare --mount --pid --net --fork true 2>/dev/null || hosts_skip "namespaces cannot be made here"
  hosts_root "$hosts_cache/root" ||
    hosts_skip "no root file system: $(grep -E '^E: ' "$hosts_cache/root.log" | tail -n 1)"
}

# Stage 1: here on the machine; 2: a mount namespace; 3: a process namespace, in which the script goes on.
hosts_begin() {
  hosts_cache=$build/tests/system/hosts
  hosts_installed=$hosts_cache/installed.${FL_HOSTS_ID:-flh$$}
  case ${FL_HOSTS_STAGE:-1} in
    1)
      hosts_prepare
      hosts_layer "$hosts_installed" || exit 99
      export FL_HOSTS_STAGE=2 FL_HOSTS_ID=flh$$
      unshare --mount --propagation private bash "$0" "$@"
      local rc=$?
      rm -rf "$hosts_installed"
      exit $rc
      ;;
    2) hosts_mount "$@" ;;
    3)
      hosts_id=$FL_HOSTS_ID
      hosts_work=$FL_HOSTS_WORK
      declare -gA hosts_pid=()
      # shellcheck source=tests/system/lib.sh
      . "$srcdir/tests/system/lib.sh"
      ;;
  esac
}

hosts_mount() {
  local rc=0 left='' i d
  # systemd needs no controllers, only a hierarchy; nspawn asks for the named one too.
  if [ "$(stat -f -c %T $hosts_cg)" != cgroup2fs ]; then
    mountpoint -q $hosts_cg || mount -t tmpfs -o mode=755 tmpfs $hosts_cg
    mkdir -p $hosts_cg/unified $hosts_cg/systemd
    mountpoint -q $hosts_cg/unified || mount -t cgroup2 cgroup2 $hosts_cg/unified
    mountpoint -q $hosts_cg/systemd || mount -t cgroup -o none,name=systemd cgroup $hosts_cg/systemd
  fi
  export FL_HOSTS_STAGE=3 FL_HOSTS_WORK
  FL_HOSTS_WORK=$(mktemp -d)
  mkdir -p /run/netns /run/systemd/nspawn
  for d in "$FL_HOSTS_WORK" /run/netns /run/systemd/nspawn; do mount -t tmpfs -o mode=755 tmpfs "$d"; done
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc bash "$0" "$@" || rc=$?
  for i in {1..50}; do # cgroups of processes that were just killed are busy for a moment
    left=$(find $hosts_cg -mindepth 1 -depth -type d -path "*/$FL_HOSTS_ID-*" -print 2>/dev/null)
    [ -n "$left" ] || break
    # shellcheck disable=SC2086
    rmdir $left 2>/dev/null || sleep 0.1
  done
  umount "$FL_HOSTS_WORK" && rmdir "$FL_HOSTS_WORK"
  [ -z "$left" ] || { echo "hosts: left over: $left"; rc=1; }
  exit $rc
}

# --- hosts ---

# Where a process of a host is entered in, in every hierarchy that systemd looks at.
hosts_trees() {
  if [ "$(stat -f -c %T $hosts_cg)" = cgroup2fs ]; then echo $hosts_cg; else echo $hosts_cg/unified $hosts_cg/systemd; fi
}

hosts_init_of() { pgrep -P "${hosts_pid[$1]}" | head -n 1; }

on() {
  local p
  p=$(hosts_init_of "$1")
  shift
  [ -n "$p" ] || return 125
  nsenter -t "$p" -m -u -i -n -p -C -- env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LANG=C.UTF-8 SYSTEMD_PAGER=cat SYSTEMD_COLORS=0 "$@"
}

hosts_is_up() {
  kill -0 "${hosts_pid[$1]}" 2>/dev/null || return 0
  case $(on "$1" systemctl is-system-running 2>/dev/null) in running | degraded) ;; *) return 1 ;; esac
}

# Its systemd says that it is up. A host that does not boot is this machine's matter, not that of what is tested.
boot() {
  local h=$1 state=''
  (
    for t in $(hosts_trees); do
      mkdir -p "$t/$hosts_id-$h"
      echo $BASHPID >"$t/$hosts_id-$h/cgroup.procs"
    done
    exec env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn -q -D "$hosts_work/$h/root" -M "$hosts_id-$h" -b \
      --register=no --keep-unit --network-namespace-path="/run/netns/$hosts_id-$h" --link-journal=no \
      --resolv-conf=off --timezone=off --console=pipe </dev/null >"$hosts_work/$h/console" 2>&1
  ) &
  hosts_pid[$h]=$!
  wait_for "$h to boot" hosts_is_up "$h"
  state=$(on "$h" systemctl is-system-running 2>/dev/null)
  [ -n "$state" ] || hosts_skip "systemd does not boot in systemd-nspawn here: $(tail -n 1 "$hosts_work/$h/console")"
  equal "$h is up" running "$state" || on "$h" systemctl --failed
}

hosts_ended() { ! kill -0 "${hosts_pid[$1]}" 2>/dev/null; }
cut_power() {
  kill -KILL "$(hosts_init_of "$1")"
  wait "${hosts_pid[$1]}" 2>/dev/null
}
shut_down() {
  kill -s RTMIN+4 "$(hosts_init_of "$1")"
  wait_for "$1 to go" hosts_ended "$1"
}
link() { ip -n "$hosts_id-lan" link set "$1" "$2"; }

hosts_make() { # host, layer, number
  local h=$1 layer=$2 n=$3 root=$hosts_work/$1/root u i=0
  ip netns add "$hosts_id-$h"
  ip -n "$hosts_id-lan" link add "$h" type veth peer name eth0 netns "$hosts_id-$h"
  ip -n "$hosts_id-lan" link set "$h" master br0 up
  ip -n "$hosts_id-$h" link set lo up
  ip -n "$hosts_id-$h" addr add "$hosts_net.$n/24" dev eth0
  ip -n "$hosts_id-$h" link set eth0 up
  mkdir -p "$hosts_work/$h"/{upper,work,root}
  mount -t overlay overlay \
    -o "lowerdir=${layer:+$layer:}$hosts_cache/root,upperdir=$hosts_work/$h/upper,workdir=$hosts_work/$h/work" "$root"
  echo "$h" >"$root/etc/hostname"
  echo "127.0.0.1 localhost" >"$root/etc/hosts"
  for u in "${hosts[@]}"; do
    i=$((i + 1))
    echo "$hosts_net.$i $u" >>"$root/etc/hosts"
  done
  rm -f "$root/etc/resolv.conf"
  : >"$root/etc/resolv.conf"
  systemd-id128 new >"$root/etc/machine-id"
  mkdir -p "$root/var/log/journal"
  # None of these fires in a test.
  for u in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    e2scrub_reap.service systemd-pstore.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$u"
  done
}

hosts_up() {
  local layer=$1 h n=0
  shift
  hosts=("$@")
  [ $# -gt 0 ] || hosts=(server client1 client2)
  ip netns add "$hosts_id-lan"
  ip -n "$hosts_id-lan" link add br0 type bridge
  ip -n "$hosts_id-lan" link set br0 up
  for h in "${hosts[@]}"; do
    n=$((n + 1))
    hosts_make "$h" "$layer" $n || { errors=1; finish; }
  done
  for h in "${hosts[@]}"; do boot "$h"; done
}

# --- what is in them ---

put() { # host, path: standard input
  mkdir -p "$hosts_work/$1/root$(dirname "$2")"
  cat >"$hosts_work/$1/root$2"
}
copy_to() { # host, folder there, files and folders
  local h=$1 to=$2
  shift 2
  mkdir -p "$hosts_work/$h/root$to"
  cp -r "$@" "$hosts_work/$h/root$to/"
}
prop() { on "$1" systemctl show "$2" -P "$3"; }
is_prop() { [ "$(prop "$1" "$2" "$3")" = "$4" ]; }
journal() {
  local h=$1 unit=$2
  shift 2
  on "$h" journalctl --no-pager -o cat -u "$unit" "$@"
}
in_journal() { journal "$1" "$2" | grep -qF -- "$3"; }
times_in_journal() { journal "$1" "$2" | grep -cF -- "$3"; }
