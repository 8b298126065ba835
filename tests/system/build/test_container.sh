#!/usr/bin/env bash
# The images are built of the packages, run as nobody in particular, and hold a federation; compose file and
# Kubernetes manifests name what is in them. Built and run by buildah without a runtime (chroot isolation).
# What goes before a command is several words.
# shellcheck disable=SC2046
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib/packages.sh
. "$(dirname "$0")/../../lib/packages.sh"
container=$srcdir/deploy/container

### Compose file and manifests, also where no image can be built
if "$python" -c 'import yaml' 2>/dev/null; then
  check "the files say what the images are" "$python" - "$container" <<'PY'
import pathlib, re, sys, yaml
here = pathlib.Path(sys.argv[1])

def user_of(side):
    text = (here / f"{side}.Containerfile").read_text()
    uid, gid = re.search(r"^USER (\d+):(\d+)$", text, re.M).groups()
    assert f"--uid {uid}" in text, side
    return int(uid), set(re.findall(r"^VOLUME (\S+)$", text, re.M)), set(re.findall(r"^EXPOSE (\d+)$", text, re.M))

server_uid, server_volumes, server_ports = user_of("server")
client_uid, client_volumes, client_ports = user_of("client")
assert not client_ports, "a client listens nowhere"
(port,) = server_ports

compose = yaml.safe_load((here / "compose.yaml").read_text())
services = compose["services"]
assert services["server"]["ports"] == [f"{port}:{port}"]
assert services["server"]["image"] == "fl-server:latest" and services["client"]["image"] == "fl-client:latest"
for name, volumes in ("server", server_volumes), ("client", client_volumes):
    s = services[name]
    assert s["read_only"] and s["cap_drop"] == ["ALL"]
    mounted = {v.split(":")[1]: v.split(":")[0] for v in s["volumes"]}
    for v in volumes:
        assert mounted[v] in compose["volumes"], f"{name}: {v} is lost with its container"

documents = {d["kind"]: d for f in ("server", "clients")
             for d in yaml.safe_load_all((here / "kubernetes" / f"{f}.yaml").read_text())}
stateful, daemons = documents["StatefulSet"]["spec"], documents["DaemonSet"]["spec"]
assert stateful["replicas"] == 1, "the state belongs to one process"
assert documents["Service"]["spec"]["ports"][0]["port"] == int(port)
assert documents["Service"]["spec"]["selector"] == stateful["selector"]["matchLabels"] == stateful["template"]["metadata"]["labels"]
assert daemons["selector"]["matchLabels"] == daemons["template"]["metadata"]["labels"]
for spec, uid in (stateful["template"]["spec"], server_uid), (daemons["template"]["spec"], client_uid):
    assert spec["securityContext"]["runAsUser"] == uid and spec["securityContext"]["runAsNonRoot"]
    names = {v["name"] for v in spec["volumes"]} | {c["metadata"]["name"] for c in stateful["volumeClaimTemplates"]}
    for c in spec["initContainers"] + spec["containers"]:
        assert c["image"] in ("fl-server:latest", "fl-client:latest")
        assert not c["securityContext"]["allowPrivilegeEscalation"] and c["securityContext"]["capabilities"]["drop"] == ["ALL"]
        for m in c["volumeMounts"]:
            assert m["name"] in names, m
server = stateful["template"]["spec"]["containers"][0]
assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(server)
conf = yaml.safe_load(documents["ConfigMap"]["data"]["server.yaml"])
mounts = [m["mountPath"] for m in server["volumeMounts"]]
assert any(conf["state_dir"].startswith(m) for m in mounts if m in server_volumes), "the state is on the volume"
assert conf["listen"].endswith(f":{port}")
assert conf["identity"]["hosts"] == [documents["Service"]["metadata"]["name"]]
PY
fi

### The init container of the clients, with the capabilities that the manifest leaves it, at the first start and at the next
if "$python" -c 'import yaml' 2>/dev/null && [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  "$python" - "$container/kubernetes/clients.yaml" "$dir/lib" >"$dir/init" <<'PY'
import sys, yaml
init = yaml.safe_load(open(sys.argv[1]))["spec"]["template"]["spec"]["initContainers"][0]
have = init["securityContext"]["capabilities"]
assert have["drop"] == ["ALL"]
print("-all," + ",".join("+" + name.lower() for name in have["add"]))
for word in init["command"]:
    print(word.replace("/host", sys.argv[2]))
PY
  mapfile -t init <"$dir/init"
  mkdir -p "$dir/lib/fl-clientd" # as the kubelet does for type DirectoryOrCreate
  chmod 711 "$dir"
  as_kubelet() { setpriv --bounding-set "${init[0]}" --inh-caps=-all "${init[@]:1}"; }
  as_client() { setpriv --reuid 7801 --regid 7801 --clear-groups --bounding-set=-all "$@"; }
  check "the folder is prepared" as_kubelet
  equal "for the client's user" "7801 750" "$(stat -c '%u %a' "$dir/lib/fl-clientd")"
  check "the client creates its state folder in it" as_client mkdir -m 0700 "$dir/lib/fl-clientd/state"
  check "the next start of the pod" as_kubelet
fi

### The images
# They are made of the packages, for which the product is built once more. Without them test_install.sh installs the same
# programs, and tests/system/hosts runs them as services of users of their own.
if everyday; then
  echo "no images are built (FL_SLOW_TESTS=no)"
  finish
fi
command -v buildah >/dev/null || skip "buildah is not installed (deploy/packages.sh); the manifests: $checks checks, $failures failures"
packages_wanted
packages
root_of_debian
# Storage of our own, which ends with this test.
cat >"$dir/storage.conf" <<TOML
[storage]
driver = "vfs"
graphroot = "$dir/storage"
runroot = "$dir/storage.run"
TOML
export CONTAINERS_STORAGE_CONF=$dir/storage.conf BUILDAH_ISOLATION=chroot
make_base() {
  local c
  c=$(buildah from scratch) && buildah add -q "$c" "$root_tar" / && buildah commit -q --rm "$c" fl-base
}
check "a base of Debian" make_base
build_images() {
  bash "$container/build.sh" --packages "$packages" --base localhost/fl-base --tag test --tool buildah
}
check "the images are built" build_images || finish

of_image() { # side, key
  buildah inspect --type image "fl-$1:test" | json "json.dumps(d['Docker']['config']['$2'], separators=(',', ':'))"
}
for side in server client; do
  check "$side: not root" grep -qE '^"78[0-9]+:78[0-9]+"$' <<<"$(of_image $side User)"
  check "$side: it says how it is" grep -qE '"Test":\["CMD","fl' <<<"$(of_image $side Healthcheck)"
  equal "$side: what it keeps" "{\"/var/lib/fl-${side}d\":{}}" "$(of_image $side Volumes)"
done

### A federation of them
synthetic "$dir/data" 1 --seed 5
mkdir -p "$dir/etc/server" "$dir/etc/client"
cat >"$dir/etc/server/server.yaml" <<YAML
federation: boxes
state_dir: /var/lib/fl-serverd
listen: "127.0.0.1:0"
admin_socket: /run/fl-serverd/admin.sock
insecure: yes
rounds: 2
algorithm: fedavg
model: {preset: dnn60}
training: {epochs: 1, batch_size: 20, learning_rate: 0.05}
YAML
server_box=$(buildah from --pull-never fl-server:test)
client_box=$(buildah from --pull-never fl-client:test)
# side, box, command…: as a runtime would, with the image's user
in_box() {
  local side=$1 box=$2
  shift 2
  buildah run --user "$(of_image "$side" User | tr -d '"')" --volume "$dir/etc/$side:/etc/fl:ro" \
    --volume "$dir/data:/srv/fl:ro" "$box" -- "$@"
}
in_box server "$server_box" /usr/sbin/fl-serverd /etc/fl/server.yaml >"$dir/server.out" 2>"$dir/server.log" &
pid_of[server]=$!
healthy() { in_box server "$server_box" flctl status; }
wait_for "the server's container to be healthy" healthy
address=$(sed -n 's/^listening //p' "$dir/server.out" | head -n 1)
cat >"$dir/etc/client/client.yaml" <<YAML
server: "$address"
name: box
state_dir: /var/lib/fl-clientd
insecure: yes
exit_when_done: yes
data: {path: /srv/fl/client-000}
YAML
in_box client "$client_box" /usr/sbin/fl-clientd /etc/fl/client.yaml >"$dir/client.out" 2>"$dir/client.log"
equal "the client's container ends when all is done" 0 $?
check "2 rounds" grep -qE '^rounds +2' <(healthy)
says "connected knows a connection" 1 "no connection" unshare --net bash -c 'sh "$1"' - "$container/connected"
# The container has no process namespace of its own here: the daemon is found by its configuration.
daemon=$(pgrep -f "^/usr/sbin/fl-serverd /etc/fl/server.yaml" | while read -r p; do
  [ "$(cut -d ' ' -f 2 <<<"$(grep Uid "/proc/$p/status" | tr '\t' ' ')")" != 7800 ] || echo "$p"
done | head -n 1)
check "it runs as 7800" test -n "$daemon" || finish
kill -TERM "$daemon"
wait_end server
equal "it ends well when it is stopped" 0 "$rc"
finish
