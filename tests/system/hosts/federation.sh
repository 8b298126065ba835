# shellcheck shell=bash disable=SC2034,SC2154
# A federation on hosts of lib.sh, in plaintext: a server and clients that train a small network on synthetic data.

conf=$(hosts_value_of sysconfdir)/fl # on the hosts

federation_data() { # for as many clients as there are hosts but the server
  local h n=0
  synthetic "$dir/data" $((${#hosts[@]} - 1)) --seed 1
  copy_to server /var/lib/fl-data "$dir/data/server"
  for h in "${hosts[@]:1}"; do
    copy_to "$h" /var/lib/fl-data/client "$dir/data/client-$(printf %03d $n)"/.
    n=$((n + 1))
  done
}

server_yaml() { # rounds, lines of YAML…
  local rounds=$1
  shift
  cat <<YAML
federation: digits
state_dir: /var/lib/fl-serverd
listen: "$hosts_net.1:7800"
admin_socket: /run/fl-serverd/admin.sock
insecure: yes
insecure_remote: yes
rounds: $rounds
algorithm: adafl+fedldf
model: {preset: dnn60}
training: {epochs: 40, batch_size: 20, learning_rate: 0.05}
strategy:
  fraction: {start: 1.0, end: 1.0}
round: {start_clients: 2, min_clients: 2, lost_grace: 1m}
evaluation: {data: /var/lib/fl-data/server}
heartbeat: 500ms
YAML
  [ $# -eq 0 ] || printf '%s\n' "$@"
}

client_yaml() { # name, lines of YAML…
  local name=$1
  shift
  cat <<YAML
server: "server:7800"
name: $name
state_dir: /var/lib/fl-clientd
insecure: yes
insecure_remote: yes
reconnect: {first: 100ms, longest: 500ms, when_done: 500ms, after_refusal: 0s}
YAML
  [[ "$*" == *trainer:* ]] || echo "data: {path: /var/lib/fl-data/client}"
  [ $# -eq 0 ] || printf '%s\n' "$@"
}

users() { # the system users, as a package makes them
  local h
  for h in "${hosts[@]}"; do
    check "users of $h" on "$h" systemd-sysusers
    check "folders of $h" on "$h" systemd-tmpfiles --create
  done
}

# --- what the server says ---

status_word() { # word of `flctl status --json`
  on server flctl status --socket /run/fl-serverd/admin.sock --json 2>/dev/null |
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\).*/\1/p"
}
rounds() {
  local n
  n=$(status_word rounds_committed)
  echo "${n:-0}"
}
reached() { [ "$(rounds)" -ge "$1" ]; }
connected() { [ "$(status_word clients_connected)" = "$1" ]; }
on_phase() { [ "$(status_word phase)" = "$1" ]; }
goes_on() { # what happened: three more rounds from now on
  local n
  n=$(rounds)
  wait_for "rounds after $1 (now $n)" reached $((n + 3))
  checks=$((checks + 1))
}
