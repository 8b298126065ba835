#!/usr/bin/env bash
# The Debian packages install on a clean machine, upgrade without touching configuration and state, and leave
# nothing but their users behind when they are purged; lintian has nothing to say against them.
# What goes before a command is several words.
# shellcheck disable=SC2046
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib/packages.sh
. "$(dirname "$0")/../../lib/packages.sh"
packages_wanted
packages
root=$dir/root
clean_root "$root"
clean_env=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
inside() { chroot "$root" "${clean_env[@]}" "$@"; }
as() { echo "chroot --userspec=$1:$1 $root ${clean_env[*]}"; } # user: what goes before a command
# Everything that is there and what it may, but what dpkg and the makers of users write about themselves.
contents() {
  find "$root" -xdev -printf '%M %u:%g %P\n' | grep -vE ' (var/(lib/(dpkg|systemd)|log|cache)(/|$)|run/systemd(/|$)|tmp/|proc|sys|dev|root/)' |
    grep -vE ' etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$| etc/\.pwd\.lock$| etc/ld\.so\.cache$' | sort -k 3
}

### The packages themselves
debs=()
for name in fl-server fl-client fl-tools fl-sim python3-fl fl-doc; do
  deb=$(find "$packages" -name "${name}_*.deb")
  check "$name is built" test -s "$deb"
  debs+=("$deb")
done
check "lintian" lintian --allow-root --fail-on error,warning "$packages"/fl_*.changes
size=$(dpkg-deb -f "${debs[1]}" Installed-Size)
check "the client takes $size KB, less than 5 MB" test "$size" -lt 5120
for deb in "${debs[@]}"; do
  equal "$(basename "$deb"): all is root's, for root to write" "" \
    "$(dpkg-deb -c "$deb" | awk '$2 != "root/root" || ($1 !~ /^l/ && substr($1, 6, 1) == "w") ||
      substr($1, 9, 1) == "w" && $1 !~ /^l/ || $1 ~ /[sS]/ { print $1, $2, $6 }')"
done

# OpenBLAS is loaded by name (libfl/num/blas.c), which no tool finds in the programs.
field() { dpkg-deb -f "$(find "$packages" -name "$1_*.deb")" "$2"; } # package, field
for name in fl-server fl-client fl-sim; do check "$name depends on OpenBLAS" grep -qw libopenblas0 <<<"$(field $name Depends)"; done
# Instances of a template are restarted by the package's own lines, which have to come after debhelper's daemon-reload.
restarts_after_reload() { # package
  dpkg-deb -I "$(find "$packages" -name "$1_*.deb")" postinst |
    awk '/daemon-reload/ { reload = NR } /try-restart .fl-[a-z]*@/ { restart = NR } END { exit !(reload && restart > reload) }'
}
for name in fl-server fl-client; do check "$name: daemon-reload before instances restart" restarts_after_reload $name; done
equal "fl-tools does not depend on OpenBLAS" "" "$(field fl-tools Depends | grep -o libopenblas)"

### A clean machine
contents >"$dir/before"
install -d "$root/debs"
cp "${debs[@]}" "$root/debs/"
# What a unit names as its documentation is in the same package: `man:NAME(SECTION)`.
documented() { # package
  local files page
  files=$(dpkg-deb -c "$(find "$packages" -name "$1_*.deb")")
  for page in $(sed -n 's/^Documentation=//p' "$build/systemd/${1}d.service"); do
    page=$(sed -E 's,man:(.*)\((.)\),man\2/\1.\2.gz,' <<<"$page")
    grep -qF "/$page" <<<"$files" || return 1
  done
}
for name in fl-server fl-client; do check "$name has the pages that its unit names" documented $name; done
check "they install" inside sh -c 'dpkg -i /debs/*.deb'
equal "nothing is half installed" "" "$(inside dpkg --audit)"
for user in fl-serverd fl-clientd; do
  IFS=: read -r name _ uid _ _ home shell < <(inside getent passwd $user)
  equal "$user is there" $user "$name"
  check "$user is a system's user" test "$uid" -lt 1000
  equal "$user's home" /var/lib/$user "$home"
  check "$user cannot log in" grep -qE '/(nologin|false)$' <<<"$shell"
  equal "$user has no password" '!*' "$(inside getent shadow $user | cut -d : -f 2)"
  equal "$user.service is installed, not enabled" disabled "$(inside systemctl is-enabled $user.service 2>/dev/null)"
  for unit in "$root/lib/systemd/system/$user"*; do
    unit=$(basename "$unit")
    # A template is verified with a name in it.
    check "$unit" inside systemd-analyze verify --man=no "/lib/systemd/system/${unit/@./@one.}"
  done
done
equal "fl-admin: the server is a member, so that it can give its socket to the group" "fl-serverd" \
  "$(inside getent group fl-admin | cut -d : -f 4)"
check "the template for several federations" test -s "$root/lib/systemd/system/fl-serverd@.service"
equal "fl-serverd.socket is installed, not enabled" disabled "$(inside systemctl is-enabled fl-serverd.socket 2>/dev/null)"
equal "/etc/fl" "drwxr-xr-x root:root" "$(stat -c '%A %U:%G' "$root/etc/fl")"
for program in /usr/sbin/fl-{serverd,clientd} /usr/bin/{flctl,fl-data,fl-sim}; do
  check "$program runs" inside $program --version
  check "$program's page" test -s "$(echo "$root/usr/share/man"/man[18]/"$(basename $program)".[18].gz)"
  check "$program's completion" test -s "$root/usr/share/bash-completion/completions/$(basename $program)"
done
check "python3-fl runs" inside python3 -c 'import fl_trainer; fl_trainer.save'
check "also as a program" inside python3 -m fl_trainer save --help

### What the examples say works as the daemons' users
for user in fl-serverd fl-clientd; do
  equal "the folder of $user" "750 $user:$user" "$(inside stat -c '%a %U:%G' /var/lib/$user)"
done
inside install -d -m 0750 -o fl-serverd -g fl-serverd /run/fl-serverd
says "the server's example wants an identity" 0 "has its identity in" $(as fl-serverd) fl-serverd --init \
  /usr/share/doc/fl-server/examples/server.yaml
says "the server's example" 0 "ok: federation 'digits'" $(as fl-serverd) fl-serverd --check-config \
  /usr/share/doc/fl-server/examples/server.yaml
check "a split of the digits that come with fl-sim" inside fl-data split --input /usr/share/fl/data/optdigits \
  --output /var/lib/fl-data --clients 2 --method iid
mv "$root/var/lib/fl-data/client-000" "$root/var/lib/fl-data/client"
# In plaintext: without a server nobody joins.
sed -e 's,^# insecure: yes,insecure: yes,' -e 's,^server:.*,server: "127.0.0.1:7800",' \
  "$root/usr/share/doc/fl-client/examples/client.yaml" >"$root/tmp/client.yaml"
says "the client's example" 0 "ok: client 'edge-001'" $(as fl-clientd) fl-clientd --check-config /tmp/client.yaml

### A machine without OpenBLAS
# As dpkg would leave it: the names by which it is loaded are links of update-alternatives.
links=$(cd "$root" && find usr/lib -name 'libopenblas.so.0*' | sort)
check "it was there" test -n "$links"
# shellcheck disable=SC2086
tar -C "$root" -cf "$dir/openblas.tar" $links && (cd "$root" && rm $links)
missing="libopenblas.so.0: cannot open shared object file: No such file or directory: install it (Debian: apt-get install libopenblas0-serial)"
says "a client that trains by itself says what is missing" 3 "$missing" $(as fl-clientd) fl-clientd --check-config /tmp/client.yaml
says "and a server" 3 "$missing" $(as fl-serverd) fl-serverd --check-config /usr/share/doc/fl-server/examples/server.yaml
cat >"$root/tmp/command.yaml" <<'YAML'
server: "127.0.0.1:7800"
name: edge-001
insecure: yes
state_dir: /var/lib/fl-clientd
trainer: command
command: {program: [/bin/true, "{task}"], samples: 10}
YAML
says "a client whose program trains needs none" 0 "trainer command" $(as fl-clientd) fl-clientd --check-config /tmp/command.yaml
tar -C "$root" -xf "$dir/openblas.tar"
rm -rf "${root:?}/var/lib/fl-data" "${root:?}/var/lib/fl-serverd/identity" "$root"/tmp/{client,command}.yaml

### An upgrade keeps configuration and state
cp "$root/usr/share/doc/fl-server/examples/server.yaml" "$root/etc/fl/server.yaml"
echo "# the operator's own line" >>"$root/etc/fl/server.yaml"
inside chown root:fl-serverd /etc/fl/server.yaml
inside chmod 0640 /etc/fl/server.yaml
cp "$root/usr/share/doc/fl-client/examples/client.yaml" "$root/etc/fl/client.yaml"
# One of several on this machine.
cp "$root/etc/fl/server.yaml" "$root/etc/fl/server-two.yaml"
install -d -m 0750 "$root/var/lib/fl-serverd-two"
$(as fl-serverd) sh -c 'umask 077 && mkdir /var/lib/fl-serverd/identity && echo key >/var/lib/fl-serverd/identity/server.key'
$(as fl-clientd) sh -c 'umask 077 && echo result >/var/lib/fl-clientd/result.bin'
theirs() {
  (cd "$root" && find etc/fl var/lib/fl-serverd* var/lib/fl-clientd -printf '%M %U:%G %s %p\n' -type f -exec sha256sum {} + | sort)
}
theirs >"$dir/theirs"
newer() { # deb: the same with a later version
  local at=$dir/newer
  rm -rf "$at"
  dpkg-deb -R "$1" "$at" && sed -i 's/^Version: .*/&+next/; s/(= \([^)]*\))/(= \1+next)/' "$at/DEBIAN/control" &&
    dpkg-deb --root-owner-group -b "$at" "$root/debs/"
}
rm "$root"/debs/*
for deb in "${debs[@]}"; do check "a later $(basename "$deb")" newer "$deb"; done
check "they upgrade" inside sh -c 'dpkg -i /debs/*.deb'
check "to the later version" grep -q 'next$' <(inside dpkg-query -W -f '${Version}\n' fl-server)
equal "configuration and state are as they were" "" "$(diff "$dir/theirs" <(theirs))"

### Removed and purged
check "they are removed" inside dpkg --remove fl-server fl-client fl-tools fl-sim python3-fl fl-doc
equal "which leaves configuration and state" "" "$(diff "$dir/theirs" <(theirs))"
check "and come back" inside sh -c 'dpkg -i /debs/*.deb'
equal "to the same configuration and state" "" "$(diff "$dir/theirs" <(theirs))"
echo "unit" >"$root/etc/fl/notes"
check "they are purged" inside dpkg --purge fl-server fl-client fl-tools fl-sim python3-fl fl-doc
check "what is not theirs in /etc/fl stays" test -s "$root/etc/fl/notes"
rm -r "$root/etc/fl/notes" "$root/debs"
check "and nothing else is in it" rmdir "$root/etc/fl"
contents >"$dir/after"
equal "nothing is left" "" "$(diff "$dir/before" "$dir/after")"
finish
