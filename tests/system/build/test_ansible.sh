#!/usr/bin/env bash
# The role for a fleet is right as far as Ansible can say without hosts, and the configuration that it writes is one
# that the server takes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
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

### A join that fails: the reason is shown, the invitation is not. flctl and fl-clientd are scripts here.
mkdir -p "$dir/bin"
cat >"$dir/play.yml" <<'YAML'
- hosts: edge-001.example
  gather_facts: false
  vars_files: [roles/fl/defaults/main.yml]
  tasks:
    - ansible.builtin.include_tasks: roles/fl/tasks/client.yml
YAML
mkdir -p "$dir/role" && cp -r "$role/." "$dir/role/" && mv "$dir/play.yml" "$dir/role/play.yml"
fake() { # program; its text on standard input
  { echo '#!/bin/sh' && cat; } >"$dir/bin/$1"
  chmod +x "$dir/bin/$1"
}
play() {
  (cd "$dir/role" && PATH=$dir/bin:$PATH ansible-playbook -c local -e ansible_python_interpreter=auto_silent \
    -i inventory.example.yml play.yml)
}
if [ -e /var/lib/fl-clientd/identity/client.pem ]; then
  echo "this machine is a client: joining is not tried"
else
  fake flctl <<<'echo fl1:server:7800:digits:secret'
  fake fl-clientd <<<'cat >/dev/null; echo "fl-clientd: cannot reach the server with fl1:server:7800:digits:secret: connection refused" >&2; exit 1'
  play >"$dir/play.out" 2>&1
  equal "a join that fails ends the play" 2 $?
  has_line "and says why" "$dir/play.out" "cannot reach the server with fl1:... connection refused"
  lacks_line "without the invitation" "$dir/play.out" "secret"
  fake flctl <<<'echo "flctl: invite: no server at the socket" >&2; exit 3'
  play >"$dir/play.out" 2>&1
  equal "an invitation that fails ends the play" 2 $?
  has_line "and says why it failed" "$dir/play.out" "flctl: invite: no server at the socket"
fi

### The client's settings
expression=$("$python" -c 'import sys, yaml
for task in yaml.safe_load(open("roles/fl/tasks/client.yml")):
    if task["name"].startswith("Change"): print(task["ansible.builtin.copy"]["content"])' 2>/dev/null)
if [ -n "$expression" ]; then
  printf 'server: "a:7800"\nlimits:\n  upload_rate: 1M\ndata:\n  path: /srv/fl/data\n' >"$dir/joined.yaml"
  "$python" -c 'import base64, json, sys
print(json.dumps({"fl_client_yaml": {"content": base64.b64encode(open(sys.argv[1], "rb").read()).decode()},
                  "fl_client_settings": {"limits": {"download_rate": "2M"}, "log_level": "debug"}}))' \
    "$dir/joined.yaml" >"$dir/vars.json"
  check "settings are laid over the file" ansible localhost -c local -e ansible_python_interpreter=auto_silent -e "@$dir/vars.json" \
    -m ansible.builtin.copy -a "{\"dest\": \"$dir/changed.yaml\", \"content\": $("$python" -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$expression")}"
  equal "what joining wrote stays, what is set is added" \
    "{'server': 'a:7800', 'limits': {'upload_rate': '1M', 'download_rate': '2M'}, 'data': {'path': '/srv/fl/data'}, 'log_level': 'debug'}" \
    "$("$python" -c 'import sys, yaml; print(yaml.safe_load(open(sys.argv[1])))' "$dir/changed.yaml")"
fi
finish
