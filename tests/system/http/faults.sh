# shellcheck shell=bash disable=SC2034,SC2154
# Servers with an HTTP port, a Prometheus that scrapes them with the alerts of deploy/prometheus, and where a problem is shown.
# The names of servers and the texts of problems are all that tests say: every surface has to hold the same words.
#
#   . "$(dirname "$0")/faults.sh"        after lib.sh
#   prometheus_begin [SED EXPRESSION]    starts it with the rules, their waiting times shortened; skips where there is none
#   serve NAME LINES…                    a server that is scraped
#   on_small_disk NAME COMMAND…          a server whose state folder is a disk of 4 MB; fill_disk NAME
#   fault NAME KIND TEXT                 waits until `fl_problem`, flctl why, the page, STATUS and an alert show it

declare -gA port_of=() socket_of=() # by server

write_ask() {
  cat >"$dir/ask.py" <<'PY'
import html, json, re, sys, urllib.parse, urllib.request
what, port = sys.argv[1:3]
def get(path, of=None):
    return urllib.request.urlopen("http://127.0.0.1:%s%s" % (of or port, path), timeout=60).read().decode()
def ask(path):
    return json.loads(get("/api/v1/" + path))["data"]
if what == "firing":  # those that fire, as "alert/server"
    ports = dict(a.split("=") for a in sys.argv[3:])
    print(" ".join(sorted({a["labels"]["alertname"] + "/" + ports[a["labels"]["instance"].split(":")[1]]
                           for a in ask("alerts")["alerts"] if a["state"] == "firing"})))
elif what == "alert":  # the name of one of this server that fires and says this
    of, text = sys.argv[3:]
    print(next(a["labels"]["alertname"] for a in ask("alerts")["alerts"]
               if a["state"] == "firing" and a["labels"]["instance"].endswith(":" + of)
               and text in a["annotations"]["summary"] + a["annotations"].get("problems", "")))
elif what == "sum":
    print(sum(float(r["value"][1]) for r in ask("query?query=" + urllib.parse.quote(sys.argv[3]))["result"]))
elif what == "problem":  # the text of this kind that holds this
    kind, text = sys.argv[3:]
    found = re.findall(r'^fl_problem\{kind="%s",text="((?:[^"\\]|\\.)*)"\} 1$' % kind, get("/metrics"), re.M)
    print(next(t for t in (re.sub(r"\\(.)", r"\1", t) for t in found) if text in t))
elif what == "problems":  # how many there are
    print(len(re.findall(r'^fl_problem\{.*\} 1$', get("/metrics"), re.M)))
elif what == "page":
    why = re.search(r'<p class="why".*?>(.*?)</p>', get("/"), re.S)
    sys.exit(sys.argv[3] not in html.unescape(why.group(1)))
PY
}

prometheus_begin() { # expression of sed that changes rules
  local found
  found=$(command -v prometheus) || found=${FL_PROMETHEUS:-}
  [ -n "$found" ] || skip "prometheus (package prometheus) is not installed"
  write_ask
  # The rules as they are, but for the time that they wait.
  sed -E -e 's/for: [0-9]+[smh]/for: 0s/' ${1:+-e "$1"} "$srcdir/deploy/prometheus/fl-alerts.yaml" >"$dir/alerts.yaml"
  mkdir "$dir/targets"
  cat >"$dir/prometheus.yaml" <<TEXT
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: fl-server
    file_sd_configs: [{files: ["$dir/targets/*.json"], refresh_interval: 1s}]
TEXT
  prometheus_port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$found" --config.file="$dir/prometheus.yaml" --storage.tsdb.path="$dir/tsdb" \
    --web.listen-address="127.0.0.1:$prometheus_port" >"$dir/prometheus.log" 2>&1 &
  pid_of[prometheus]=$!
}

ask() { "$python" "$dir/ask.py" "$1" "$prometheus_port" "${@:2}"; }

# name: scraped from now on
scrape() {
  wait_for "the HTTP port of $1" test -n "$(http_port "$1")"
  port_of[$1]=$(http_port "$1")
  echo "[{\"targets\": [\"127.0.0.1:${port_of[$1]}\"], \"labels\": {\"server\": \"$1\"}}]" >"$dir/targets/$1.new"
  mv "$dir/targets/$1.new" "$dir/targets/$1.json"
}

describe_server() { # name, lines of YAML…
  local listen="listen: [\"unix:$dir/$1.sock\"]" model="model: {preset: dnn60}"
  [[ " ${*:2}" != *" listen:"* ]] || listen=''
  [[ " ${*:2}" != *" model:"* ]] || model=''
  write_server "$1" "$model" "http: {listen: [\"127.0.0.1:0\"]}" "$listen" "${@:2}"
}
serve() { # name, lines of YAML…
  describe_server "$@"
  start_server "$1"
  scrape "$1"
}

firing() { # all alerts that fire, as alert/server
  local name ports=()
  for name in "${!port_of[@]}"; do ports+=("${port_of[$name]}=$name"); done
  ask firing "${ports[@]}"
}
fires() { [[ " $(firing) " == *" $1 "* ]]; } # alert/server

shown_problem() { [ -n "$("$python" "$dir/ask.py" problem "${port_of[$1]}" "$2" "$3" 2>/dev/null)" ]; }
shown_why() { timeout 60 "$build/flctl" --socket "${socket_of[$1]:-$dir/$1.state/admin.sock}" why | grep -qF -- "$2"; }
shown_page() { "$python" "$dir/ask.py" page "${port_of[$1]}" "$2"; }
shown_status() { grep -F "STATUS=" "$dir/notify.log" | grep -qF -- "$2"; }
shown_alert() { [ -n "$(ask alert "${port_of[$1]}" "$2" 2>/dev/null)" ]; }

# name of the server, kind, text that names cause and subject
fault() {
  local began text surface took=''
  began=$(date +%s%3N)
  wait_for "$1: the metric fl_problem of kind $2" shown_problem "$1" "$2" "$3"
  took+=" metric $(($(date +%s%3N) - began)) ms"
  text=$("$python" "$dir/ask.py" problem "${port_of[$1]}" "$2" "$3")
  for surface in why page status alert; do
    wait_for "$1: $surface to show: $text" "shown_$surface" "$1" "$text"
    took+=", $surface $(($(date +%s%3N) - began)) ms"
    checks=$((checks + 1))
  done
  echo "$1: $text: $(ask alert "${port_of[$1]}" "$text"), since it was injected at most:$took"
}

# name, command…: in a mount namespace where its state folder is a small disk
on_small_disk() {
  local user=()
  [ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)
  mkdir -p "$dir/$1.state"
  unshare "${user[@]}" --mount true 2>/dev/null || return 1
  : >"$dir/$1.out"
  # shellcheck disable=SC2016
  unshare "${user[@]}" --mount bash -c 'mount -t tmpfs -o size=4m,mode=700 none "$0" && exec "$@"' "$dir/$1.state" \
    "${@:2}" >"$dir/$1.out" 2>>"$dir/$1.log" &
  pid_of[$1]=$! serves[$1]=yes
  wait_for "$1 to listen" listens "$1"
}
fill_disk() { # name: not a byte is left
  dd if=/dev/zero of="/proc/${pid_of[$1]}/root$dir/$1.state/file" bs=4096 >"$dir/dd.out" 2>&1
}
