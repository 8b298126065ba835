"""What figures depend on beside our code: the machine, its system, the compiler and the libraries."""
import ctypes
import os
import re
import shlex
import subprocess

# Figures of machines that differ in these are not compared; in the others of describe() they may differ for a reason.
HARDWARE = ("cpu", "cores", "caches", "memory_mb")

# Name, what loads it here, its function, and what that takes.
LIBRARIES = (
    ("openblas", "libopenblas.so.0", "openblas_get_config", ()),
    ("openssl", "libcrypto.so.3", "OpenSSL_version", (0,)),
    ("sqlite", "libsqlite3.so.0", "sqlite3_libversion", ()),
)

# By their beginning: variables by which libraries choose other kernels, threads or memory.
VARIABLES = ("OPENBLAS_", "OMP_", "GOTO_", "MKL_", "DNNL_", "ONEDNN_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "OPENSSL_ia32cap")


def text_of(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return default


def printed_by(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def found(pattern, text, default="unknown"):
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else default


def cpu():
    about = text_of("/proc/cpuinfo")
    # arm64 has no name there.
    return found(r"^model name\s*:(.*)", about, found(r"^Model name:(.*)", printed_by(["lscpu"])))


def caches():
    """Of the first processor: {"L1d": "48K", …}."""
    folder = "/sys/devices/system/cpu/cpu0/cache"
    sizes = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        level, kind, size = (text_of(f"{folder}/{name}/{key}").strip() for key in ("level", "type", "size"))
        if level and size:
            sizes["L" + level + {"Data": "d", "Instruction": "i"}.get(kind, "")] = size
    return sizes


def scratch(folder):
    """File system and device of a folder: "ext4 on vda, rotational 0" (what the kernel thinks of the device)."""
    at = os.path.realpath(folder)
    best = ("", "unknown", "unknown", "")
    for line in text_of("/proc/self/mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        device, point, kind = fields.split()[2], fields.split()[4], rest.split()
        inside = point == "/" or at == point or at.startswith(point + "/")
        if inside and len(point) >= len(best[0]):
            best = (point, kind[0], os.path.basename(kind[1]), device)
    block = os.path.realpath("/sys/dev/block/" + best[3])
    for queue in (block + "/queue/rotational", os.path.dirname(block) + "/queue/rotational"):
        if text_of(queue):
            return f"{best[1]} on {best[2]}, rotational {text_of(queue).strip()}"
    return f"{best[1]} on {best[2]}"


def library(name, function, arguments):
    """What the library that is loaded here says of itself."""
    try:
        call = getattr(ctypes.CDLL(name), function)
    except (OSError, AttributeError):
        return "none"
    call.restype = ctypes.c_char_p
    return (call(*arguments) or b"unknown").decode("ascii", "replace").strip()


def made(build):
    """A build's source folder, compiler and flags."""
    rules = text_of(os.path.join(build, "Makefile"))
    compiler = shlex.split(found(r"^CC = (.*)$", rules, "cc"))
    return {
        "source": found(r"^abs_top_srcdir = (.*)$", rules, ""),
        "compiler": (printed_by([*compiler, "--version"]).splitlines() or ["unknown"])[0],
        "flags": found(r"^CFLAGS = (.*)$", rules),
        "configure": printed_by([os.path.join(build, "config.status"), "--config"]),
    }


def environment():
    """What is set of VARIABLES, as a text; "none": nothing."""
    return " ".join(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)) or "none"


def describe(build, folder):
    system = os.uname()
    built = made(build)
    return {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "memory_mb": int(found(r"^MemTotal:\s*([0-9]+)", text_of("/proc/meminfo"), "0")) // 1024,
        "kernel": f"{system.sysname} {system.release}",
        "distribution": found(r'^PRETTY_NAME="?([^"\n]*)', text_of("/etc/os-release")),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "unknown",
        "compiler": built["compiler"],
        "flags": built["flags"],
        "configure": built["configure"],
        **{name: library(file, function, arguments) for name, file, function, arguments in LIBRARIES},
        "scratch": scratch(folder),
        "environment": environment(),
    }


def commit(source):
    """The commit of a tree, and whether its files differ from it."""
    head = printed_by(["git", "-C", source, "rev-parse", "--short=12", "HEAD"])
    return head or "unknown", bool(printed_by(["git", "-C", source, "status", "--porcelain", "--untracked-files=no"]))


def differences(one, other, keys):
    """(key, of one, of the other) where they differ; memory may, by what a kernel keeps to itself."""
    out = []
    for key in keys:
        a, b = one.get(key, "none"), other.get(key, "none")
        near = key == "memory_mb" and isinstance(a, int) and isinstance(b, int) and abs(a - b) <= 0.02 * max(a, b)
        if a != b and not near:
            out.append((key, a, b))
    return out
