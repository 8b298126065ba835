#!/usr/bin/env bash
# The role for a fleet is right as far as Ansible can say without hosts, and the configuration that it writes is one
# that the server takes.
# shellcheck source=tests/integ/lib.sh
. "$(dirname "$0")/lib.sh"
command -v ansible-playbook >/dev/null || skip "ansible-core is not installed (deploy/packages.sh)"
export ANSIBLE_LOCAL_TEMP=$dir/ansible ANSIBLE_REMOTE_TEMP=$dir/ansible ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
role=$srcdir/deploy/ansible
cd "$role" || exit 99
check "syntax" ansible-playbook --syntax-check -i inventory.example.yml site.yml
if command -v ansible-lint >/dev/null; then
  check "ansible-lint" env HOME="$dir" ansible-lint --offline --nocolor site.yml
fi
check "server.yaml is written" ansible fl_server -i inventory.example.yml -c local -e ansible_python_interpreter=auto_silent \
  -e "@roles/fl/defaults/main.yml" -m ansible.builtin.template -a "src=roles/fl/templates/server.yaml.j2 dest=$dir/written.yaml"
# Plaintext here: the identity is made on the host.
sed -e "s,/var/lib/,$dir/,; s,/run/fl-serverd/,$dir/,; /^identity:/d; s,^listen:.*,listen: \"127.0.0.1:0\"\ninsecure: yes," \
  "$dir/written.yaml" >"$dir/server.yaml"
says "and the server takes it" 0 "ok: federation 'digits'" "$build/fl-serverd" --check-config "$dir/server.yaml"
has_line "who reaches it by which name" "$dir/written.yaml" 'identity: {hosts: ["server.example"]}'
# Every package of Debian that the role copies is one that we make.
while read -r name; do
  check "$name is a package" grep -qx "Package: $name" "$srcdir/deploy/debian/control"
done < <(printf '%s\n' fl-server fl-client; grep -oE "fl-tools" roles/fl/tasks/install.yml)
finish
