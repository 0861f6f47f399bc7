"""What the tests of agents share: a namespace with nothing but loopback, a small task, a run of the program, its trace."""
import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLIENTS = ROOT / ".cache" / "clients"
INSIDE = "KERNELSEEK_TESTS_IN_NAMESPACE"
RIGHT, START, WORSE = "s.epsilon", "0.5f", "0.25f"  # the text that decides whether the candidate is right
SCENARIO = "llama8b_b8_f32"


def enter_namespace():
    """Runs this program again where there is nothing but loopback; returns "" inside, else why there is no such place."""
    if os.environ.get(INSIDE):
        raise_loopback()
        return ""
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0:
        words.insert(1, "--map-root-user")
    if shutil.which("unshare") is None:
        return "unshare is not installed (package util-linux)"
    tried = subprocess.run(words + ["true"], capture_output=True, text=True)
    if tried.returncode != 0:
        return "no network namespaces here: " + (tried.stderr.strip().splitlines() or ["unshare failed"])[-1]
    os.execvpe(words[0], words + [sys.executable] + sys.argv, {**os.environ, INSIDE: "1"})


def raise_loopback():
    get, put, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(any_socket, get, request))[1]
        fcntl.ioctl(any_socket, put, struct.pack("16sH22x", b"lo", flags | up))


def is_installed(name):
    return (CLIENTS / name / "installed").exists()


class Bench:
    """A folder with a candidate that is wrong, a task on it, and the runs of that task."""

    def __init__(self, build):
        self.kernelseek = str(pathlib.Path(build).resolve() / "bin" / "kernelseek")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelseek-clients-"))
        self.home = self.folder / "home"
        self.home.mkdir()
        naive = (ROOT / "examples" / "rmsnorm_naive.cpp").read_text()
        assert RIGHT in naive
        (self.folder / "rival.cpp").write_text(naive)
        (self.folder / "k.cpp").write_text(naive.replace(RIGHT, START))
        self.right_line = next(line for line in naive.splitlines() if RIGHT in line)
        self.worse_line = self.right_line.replace(RIGHT, WORSE)
        self.start_line = self.right_line.replace(RIGHT, START)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def write_task(self, agent, model, evaluations=8, extra="", questioner="none"):
        (self.folder / "task.toml").write_text(f"""
name = "small"
operator = "rmsnorm"
grid = "demo"
filter = "{SCENARIO}"
candidate = "k.cpp"
goal = "correct == all"
agent = "{agent}"
model = "{model}"
questioner = "{questioner}"
baselines = ["candidate:rival.cpp"]
threads = 1
[budget]
minutes = 5
evaluations = {evaluations}
{extra}
[evaluation]
seconds = 4
[judge]
seconds = 8
hidden_scenarios = 1
""")

    def write_model(self, wire, url, more=""):
        """A provider of our own, with prices that are easy to add up."""
        (self.folder / "scripted.toml").write_text(f"""
name = "scripted"
wire = "{wire}"
url = "{url}"
key_variable = "SCRIPTED_KEY"
first_wait_s = 0.05
{more}
[price]
scripted = {{ input = 1000, cached = 100, output = 2000 }}
""")

    def environment(self, more):
        """Nothing of the caller's environment but the path of programs."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin:" + str(pathlib.Path(sys.executable).parent), "HOME": str(self.home),
                "KERNELSEEK_CACHE": str(ROOT / ".cache"), **more}

    def start(self, arguments, more=None):
        return subprocess.Popen([self.kernelseek] + arguments, cwd=self.folder, env=self.environment(more or {}),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self, arguments, more=None, timeout=240):
        process = self.start(arguments, more)
        out, _ = process.communicate(timeout=timeout)
        return process.returncode, out

    def run_task(self, more=None):
        return self.run(["run", "task.toml", "--runs", str(self.folder / "runs")], more)

    @property
    def run_folder(self):
        return self.folder / "runs" / "small-1"

    def events(self, kind=None):
        lines = (self.run_folder / "trace.jsonl").read_text().splitlines()[1:]
        events = [json.loads(line) for line in lines]
        return [event for event in events if kind in (None, event["kind"])]

    def bodies(self, kind):
        return [event["body"] for event in self.events(kind)]

    def candidate(self):
        return (self.run_folder / "work" / "k.cpp").read_text()

    def everything_written(self):
        """All that a run left for people to read, as one text: trace, records, logs, conversation, report."""
        text = ""
        for path in sorted(self.run_folder.rglob("*")):
            inside_home = (self.run_folder / "agent" / "home") in path.parents
            if path.is_file() and not path.is_symlink() and not inside_home:
                text += path.read_bytes().decode("utf-8", "replace")
        return text
