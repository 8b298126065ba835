"""What the interop tests share: counting checks, starting daemons, deadlines."""
import atexit
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import grpc

BUILD = os.environ["FL_BUILDDIR"]
DEADLINE = 600  # of anything that must happen: only a hang outlasts it, however busy the machine is

checks = 0
failures = 0
children = []
folders = []


def check(name, ok, detail=""):
    global checks, failures
    checks += 1
    if not ok:
        failures += 1
        print("FAILED: %s%s" % (name, ": %s" % (detail,) if not isinstance(detail, str) or detail else ""), flush=True)
    return bool(ok)


def equal(name, found, expected):
    return check(name, found == expected, "found %r, expected %r" % (found, expected))


def contains(name, text, part):
    return check(name, part in text, "%r is not in %r" % (part, text[-2000:]))


def ends(name, status, work, part=""):
    """work() must fail with this status, and a message that holds `part`."""
    try:
        work()
    except grpc.RpcError as e:
        equal(name, e.code().name, status)
        return contains(name + " (message)", e.details() or "", part)
    return check(name, False, "it succeeded, expected %s" % status)


def until(name, condition):
    """Poll until condition() is true; a failed check when the deadline comes first."""
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            return check(name, False, "not before the deadline")
        threading.Event().wait(0.01)
    return check(name, True)


def page_code():
    """The blocks of Python of docs/clients.md."""
    with open(os.path.join(os.environ["FL_SRCDIR"], "docs", "clients.md")) as f:
        return re.findall("^```python\n(.*?)^```", f.read(), re.MULTILINE | re.DOTALL)


def scratch():
    folder = tempfile.TemporaryDirectory(prefix="fl-interop-")
    folders.append(folder)
    return folder.name


def end_children():
    for child in children:
        if child.poll() is None:
            child.kill()
            child.wait()


atexit.register(end_children)


class Daemon:
    """A daemon of ours with its log in a file."""

    def __init__(self, program, conf, folder, name):
        self.name = name
        self.yaml = os.path.join(folder, name + ".yaml")
        self.log_path = os.path.join(folder, name + ".log")
        with open(self.yaml, "w") as f:
            f.write(conf)
        self.program = program
        open(self.log_path, "wb").close()
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(BUILD, self.program), self.yaml], stdout=subprocess.PIPE, stderr=log)
        children.append(self.process)

    def kill(self):
        """As the power does, then on again."""
        self.process.kill()
        self.process.wait()
        self.start()

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def ended(self, code):
        """It ends by itself with this exit code."""
        try:
            found = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            found = "still running"
        self.sound()
        if not equal("exit code of %s" % self.name, found, code):
            print("".join("    %s\n" % line for line in self.log().splitlines()[-12:]))
        return found == code

    def stop(self):
        self.process.terminate()
        return self.ended(0)

    def sound(self):
        log = self.log()
        check("%s is sound" % self.name,
              "Sanitizer" not in log and "runtime error" not in log, log[-3000:])


class Server(Daemon):
    def __init__(self, folder, name, conf):
        self.state = os.path.join(folder, name + "-state")
        super().__init__("fl-serverd", "federation: %s\nstate_dir: \"%s\"\n"
                         "listen: \"127.0.0.1:0\"\ninsecure: yes\n%s" % (name, self.state, conf),
                         folder, name)
        self.address = None
        for line in self.process.stdout:
            if line.startswith(b"listening "):
                self.address = line.split()[1].decode()
                break
        # The rest of its output must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        check("%s listens" % name, self.address is not None, self.log())
        # Its addresses are opened one after the other: the operator's socket behind this one.
        until("%s takes commands" % name,
              lambda: os.path.exists(os.path.join(self.state, "admin.sock")))

    def channel(self, *options, **more):
        return grpc.insecure_channel(self.address, options=list(options), **more)

    def flctl(self, *arguments):
        run = subprocess.run([os.path.join(BUILD, "flctl"), "--state-dir", self.state, *arguments],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
        return run.stdout.decode()


def clientd(folder, name, address, data, more=""):
    return Daemon("fl-clientd", "server: \"%s\"\nname: %s\nstate_dir: \"%s\"\ninsecure: yes\n"
                  "exit_when_done: yes\nsummaries: yes\nleast_group: 5\n"
                  "data: {path: \"%s\"}\n%s" % (
                      address, name, os.path.join(folder, name + "-state"), data, more),
                  folder, name)


def make_data(folder):
    """Folders with the data of two clients: 60 features, 10 classes."""
    out = os.path.join(folder, "data")
    subprocess.run([os.path.join(BUILD, "fl-data"), "synthetic", "--output", out, "--clients", "2"],
                   check=True, stdout=subprocess.DEVNULL)
    return sorted(os.path.join(out, d) for d in os.listdir(out) if d.startswith("client-"))


def run(main):
    """main(), then the sum; a script that breaks off still says what it counted."""
    try:
        main()
    except Exception as e:  # whatever it is, it is a failure of the test
        traceback.print_exc()
        check("the script came to its end", False, repr(e))
    end_children()
    for folder in folders:
        folder.cleanup()
    share = 100 * (checks - failures) // max(checks, 1)
    print("%d%%: Checks: %d, Failures: %d, Errors: 0" % (share, checks, failures))
    sys.stdout.flush()
    os._exit(1 if failures else 0)  # without waiting for threads of a stuck call
