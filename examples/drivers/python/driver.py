#!/usr/bin/env python3
"""A driver for Berth in Python, without a library: each machine is an OpenSSH server on this host, its disk a folder.

    driver.py FOLDER [UNITS]

FOLDER keeps the machines, UNITS (default 4) is how many of them there may be. Replace Machine by calls to your platform.
docs/how-to/driver-in-any-language.md says what each request asks for; full_driver.py adds restarts, consoles and volumes.
"""
import fcntl, getpass, json, os, shutil, signal, socket, subprocess, sys, time
from contextlib import suppress
from pathlib import Path

FOLDER, UNITS = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 4
USER = getpass.getuser()
INFO = {"protocol": 1, "name": "sshd", "version": "1.0", "login_user": USER, "capabilities": {
    "stop": True, "resume": True, "restart": False, "attach_volume": "none", "resize_volume": "none",
    "create_visible_within_ms": 0, "keeps_notes": True, "cloud_init_bytes": 0, "inventory": True, "console": False}}
SSHD = """ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
AuthenticationMethods publickey
StrictModes no
PidFile none
ForceCommand cd '{folder}/disk' && export HOME="$PWD" && exec sh -c "${{SSH_ORIGINAL_COMMAND:-exec sh -i}}"
"""


class Machine:
    def __init__(self, ref):
        self.ref, self.folder = ref, FOLDER / ref

    def exists(self):
        return self.folder.is_dir()

    def make(self, spec):
        new = FOLDER / f".new-{self.ref}"  # Renamed when it is complete: half a machine is none.
        shutil.rmtree(new, ignore_errors=True)
        (new / "disk").mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", new / "host_key"], check=True)
        printed = subprocess.check_output(["ssh-keygen", "-lf", new / "host_key.pub"], text=True)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        (new / "authorized_keys").write_text("\n".join(spec["ssh_keys"]) + "\n")
        (new / "sshd_config").write_text(SSHD.format(port=port, folder=self.folder))
        endpoint = {"public_ip": "127.0.0.1", "ssh_port": port, "ssh_username": USER,
                    "host_key_fingerprint": printed.split()[1]}
        (new / "machine.json").write_text(json.dumps({"ref": self.ref, "created_at": int(time.time() * 1000),
                                                      "note": spec["note"], "endpoint": endpoint}))
        new.rename(self.folder)

    def observe(self):
        known = json.loads((self.folder / "machine.json").read_text())
        with socket.socket() as probe:
            answers = probe.connect_ex(("127.0.0.1", known["endpoint"]["ssh_port"])) == 0
        return {**known, "power": "running" if answers else "stopped"}

    def processes(self):
        """Its server, the sessions below that, and whatever runs in its disk."""
        parents, found = {}, set()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                parents[entry.name] = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                command = (entry / "cmdline").read_text(errors="replace").replace("\0", " ")
                if f"-f {self.folder}/sshd_config " in command or (entry / "cwd").readlink().is_relative_to(self.folder):
                    found.add(entry.name)
        while below := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= below
        return found

    def start(self):  # In a session of its own: what is in this driver's process group ends with the driver.
        if not self.processes():
            with open(self.folder / "console.log", "ab") as log:
                subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", self.folder / "sshd_config"],
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def kill(self):
        while pids := self.processes():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def machines():
    return [Machine(path.name) for path in sorted(FOLDER.glob("[!.]*"))]


def done(value):
    return {"outcome": "done", "value": value}


def failed(code, detail):
    return {"outcome": "failed", "code": code, "side_effect": "none", "detail": detail}


def late(request):
    if time.time() * 1000 > request["expires_at"]:
        return failed("transient", "the request came too late and was not begun")


def answer(request):
    method, machine = request["method"], Machine(request.get("ref", ""))
    if method == "info":
        return INFO
    if method == "list":
        return {"answer": "listed", "items": [each.observe() for each in machines()]}
    if method == "get":
        return {"answer": "observed", "value": machine.observe()} if machine.exists() else {"answer": "gone"}
    if method == "inventory":
        free = max(0, UNITS - len(machines()))
        return {"answer": "counted", "free": [{"offer_id": offer["offer_id"], "datacenter": datacenter, "units": free}
                                              for offer in request["offers"] for datacenter in offer["datacenters"]]}
    if too_late := late(request):
        return too_late
    if method == "destroy":
        if machine.exists():
            machine.kill()
            shutil.rmtree(machine.folder)
        return done(None)
    if method == "create" and not machine.exists():
        if len(machines()) >= UNITS:
            return failed("capacity", f"all {UNITS} units are taken")
        machine.make(request["spec"])
    if not machine.exists():
        return failed("gone", f"there is no machine {machine.ref}")
    machine.kill() if method == "stop" else machine.start()
    return once("stopped" if method == "stop" else "running", machine)


def once(power, machine):
    """A step that was begun is pending until it is seen to be over."""
    now = machine.observe()
    return done(now) if now["power"] == power else {"outcome": "pending", "cookie": power, "poll_after_ms": 100}


def serve(answer):
    FOLDER.mkdir(parents=True, exist_ok=True)
    if USER == "root":
        os.makedirs("/run/sshd", exist_ok=True)
    with open(FOLDER / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # A driver of an earlier Berth may still be at its last request.
        for line in sys.stdin:  # Berth closes it when the driver is to end.
            request = json.loads(line)
            try:
                reply = {"id": request["id"], "result": answer(request)}
            except Exception as error:  # Berth takes the outcome for unknown, and looks.
                print(f"{request['method']} failed: {error!r}", file=sys.stderr, flush=True)
                reply = {"id": request["id"], "error": repr(error)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve(answer)
