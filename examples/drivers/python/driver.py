#!/usr/bin/env python3
"""A driver for Berth in Python, without a library: each machine is an OpenSSH server on this host, its disk a folder. A
volume is a folder too, which a machine that has it finds in its home as volumes/REF.

    driver.py FOLDER [UNITS]

FOLDER keeps the machines, UNITS (default 4) is how many of them there may be. docs/how-to/driver-in-any-language.md says
what each request asks for. Replace what stands in Machine and Volume by calls to your platform.
"""
import fcntl, getpass, json, os, shutil, signal, socket, subprocess, sys, time
from pathlib import Path

FOLDER, UNITS = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 4
CAPABILITIES = {"stop": True, "resume": True, "restart": True, "attach_volume": "hot", "resize_volume": "attached",
                "create_visible_within_ms": 0, "keeps_notes": True, "cloud_init_bytes": 0, "inventory": True,
                "console": True}
SSHD_CONFIG = """ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/sshd.pid
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
ForceCommand cd '{folder}/disk' && export HOME="$PWD" && exec sh -c "${{SSH_ORIGINAL_COMMAND:-exec sh -i}}"
"""


class Machine:
    def __init__(self, ref):
        self.ref, self.folder = ref, FOLDER / ref
        self.disk = self.folder / "disk"

    def exists(self):
        return self.folder.is_dir()

    def make(self, spec):
        """Under another name first, so that a machine is there as a whole or not at all."""
        new = FOLDER / f".new-{self.ref}"
        shutil.rmtree(new, ignore_errors=True)
        (new / "disk").mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", new / "host_key"], check=True)
        printed = subprocess.run(["ssh-keygen", "-lf", new / "host_key.pub"], check=True, capture_output=True, text=True)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        (new / "authorized_keys").write_text("\n".join(spec["ssh_keys"]) + "\n")
        (new / "sshd_config").write_text(SSHD_CONFIG.format(port=port, folder=self.folder))
        (new / "machine.json").write_text(json.dumps({"created_at": int(time.time() * 1000), "note": spec["note"],
            "port": port, "fingerprint": printed.stdout.split()[1], "is_built": False}))
        new.rename(self.folder)

    def read(self):
        return json.loads((self.folder / "machine.json").read_text())

    def change(self, **fields):
        (self.folder / "machine.json.new").write_text(json.dumps({**self.read(), **fields}))
        (self.folder / "machine.json.new").rename(self.folder / "machine.json")

    def processes(self):
        """Its server, the sessions below that, and whatever runs in its disk."""
        parents, found = {}, set()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command, cwd = (entry / "cmdline").read_bytes().replace(b"\0", b" "), os.readlink(entry / "cwd")
                if f"-f {self.folder}/sshd_config ".encode() in command + b" " or f"{cwd}/".startswith(f"{self.disk}/"):
                    found.add(int(entry.name))
            except OSError:
                continue
        while below := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= below
        return found

    def is_running(self):
        with socket.socket() as probe:
            return bool(self.processes()) and probe.connect_ex(("127.0.0.1", self.read()["port"])) == 0

    def start(self):
        """In a session of its own: what is in this driver's process group ends with the driver."""
        if os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        if not self.processes():
            with open(self.folder / "console.log", "ab") as console:
                subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", self.folder / "sshd_config"], stdin=subprocess.DEVNULL,
                                 stdout=console, stderr=console, start_new_session=True)
        for _ in range(100):
            if self.is_running():
                return self.change(is_built=True)
            time.sleep(0.02)

    def kill(self):
        while pids := self.processes():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
                except OSError:
                    pass
            time.sleep(0.01)

    def observe(self):
        known = self.read()
        endpoint = {"public_ip": "127.0.0.1", "ssh_port": known["port"], "ssh_username": getpass.getuser(),
                    "host_key_fingerprint": known["fingerprint"]}
        power = "running" if self.is_running() else "stopped" if known["is_built"] else "building"
        return {"ref": self.ref, "power": power, "created_at": known["created_at"], "note": known["note"],
                "endpoint": endpoint}


class Volume:
    def __init__(self, ref):
        self.ref, self.folder = ref, FOLDER / ".volumes" / ref

    def exists(self):
        return self.folder.is_dir()

    def make(self, spec):
        new = self.folder.with_name(f".new-{self.ref}")
        shutil.rmtree(new, ignore_errors=True)
        (new / "data").mkdir(parents=True)
        (new / "volume.json").write_text(json.dumps({"ref": self.ref, "created_at": int(time.time() * 1000),
            "size_gb": spec["size_gb"], "note": spec["note"], "attached_to": []}))
        new.rename(self.folder)

    def observe(self):
        return json.loads((self.folder / "volume.json").read_text())

    def change(self, **fields):
        (self.folder / "volume.json.new").write_text(json.dumps({**self.observe(), **fields}))
        (self.folder / "volume.json.new").rename(self.folder / "volume.json")

    def attach(self, machine):
        """The record first: a link without one would never be removed."""
        self.change(attached_to=sorted({*self.observe()["attached_to"], machine.ref}))
        link = machine.disk / "volumes" / self.ref
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self.folder / "data")

    def detach(self, machine):
        (machine.disk / "volumes" / self.ref).unlink(missing_ok=True)
        self.change(attached_to=[ref for ref in self.observe()["attached_to"] if ref != machine.ref])

    def destroy(self):
        for ref in self.observe()["attached_to"]:
            self.detach(Machine(ref))
        shutil.rmtree(self.folder)


def volumes():
    folder = FOLDER / ".volumes"
    return [Volume(path.name) for path in sorted(folder.glob("[!.]*"))] if folder.is_dir() else []

def machines():
    return [Machine(path.name) for path in sorted(FOLDER.iterdir()) if path.is_dir() and path.name[0] != "."]

def done(value):
    return {"outcome": "done", "value": value}

def failed(code, detail):
    return {"outcome": "failed", "code": code, "side_effect": "none", "detail": detail}

def observed_when(power, machine):
    """A step that was begun is pending until it is seen to be over."""
    now = machine.observe()
    return done(now) if now["power"] == power else {"outcome": "pending", "cookie": power, "poll_after_ms": 200}


def answer(request):
    method, machine = request["method"], Machine(request.get("ref", ""))
    if method == "info":
        if 1 not in request["protocols"]:
            raise ValueError(f"this driver speaks version 1, and not one of {request['protocols']}")
        return {"protocol": 1, "name": "sshd", "version": "1.0", "login_user": getpass.getuser(), "capabilities": CAPABILITIES}
    if method == "list":
        return {"answer": "listed", "items": [each.observe() for each in machines()]}
    if method == "inventory":
        free = max(0, UNITS - len(machines()))
        return {"answer": "counted", "free": [{"offer_id": offer["offer_id"], "datacenter": datacenter, "units": free}
                                             for offer in request["offers"] for datacenter in offer["datacenters"]]}
    if method == "get":
        return {"answer": "observed", "value": machine.observe()} if machine.exists() else {"answer": "gone"}
    if method.startswith("volumes."):
        return answer_volume(request, method, Volume(request.get("ref", "")))
    if method == "console":
        return {"text": (machine.folder / "console.log").read_text(errors="replace")[-16384:] if machine.exists() else None}
    if is_late(request):
        return LATE
    if method == "create":
        if not machine.exists() and len(machines()) >= UNITS:
            return failed("capacity", f"all {UNITS} units are taken")
        if not machine.exists():
            machine.make(request["spec"])
        machine.start()
        return observed_when("running", machine)
    if method == "destroy":
        if machine.exists():
            machine.kill()
            for volume in volumes():
                volume.detach(machine)
            shutil.rmtree(machine.folder)
        return done(None)
    if method in ("stop", "start", "restart") and not machine.exists():
        return failed("gone", f"there is no machine {machine.ref}")
    if method == "stop":
        machine.kill()
        return observed_when("stopped", machine)
    if method == "start":
        machine.start()
        return observed_when("running", machine)
    if method == "restart":
        known, restart_id = machine.read(), request["restart_id"]
        if known.get("restarted") != restart_id:
            if known.get("restarting") != restart_id and not machine.is_running():
                return failed("conflict", "the machine does not run")
            machine.change(restarting=restart_id)
            machine.kill()
            machine.start()
            machine.change(restarted=restart_id)
        return observed_when("running", machine)
    return failed("unsupported", f"this driver has no {method}")


LATE = failed("transient", "the request came too late and was not begun")

def is_late(request):
    return time.time() * 1000 > request["expires_at"]

def answer_volume(request, method, volume):
    if method == "volumes.list":
        return {"answer": "listed", "items": [each.observe() for each in volumes()]}
    if method == "volumes.get":
        return {"answer": "observed", "value": volume.observe()} if volume.exists() else {"answer": "gone"}
    if is_late(request):
        return LATE
    if method == "volumes.create":
        if not volume.exists():
            volume.make(request["spec"])
        return done(volume.observe())
    if method == "volumes.destroy":
        if volume.exists():
            volume.destroy()
        return done(None)
    if not volume.exists():
        return failed("gone", f"there is no volume {volume.ref}")
    if method == "volumes.resize":
        if request["size_gb"] < volume.observe()["size_gb"]:
            return failed("invalid", "a volume does not shrink")
        volume.change(size_gb=request["size_gb"])
        return done(volume.observe())
    machine = Machine(request["machine"])
    if method == "volumes.detach":
        volume.detach(machine)
        return done(None)
    if not machine.exists():
        return failed("gone", f"there is no machine {machine.ref}")
    volume.attach(machine)
    return done(None)


FOLDER.mkdir(parents=True, exist_ok=True)
lock = open(FOLDER / ".lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)  # A driver of an earlier Berth may still be at its last request.
for line in sys.stdin:  # Berth closes it when the driver is to end.
    request = json.loads(line)
    try:
        reply = {"id": request["id"], "result": answer(request)}
    except Exception as error:
        print(f"{request['method']} failed: {error!r}", file=sys.stderr, flush=True)
        reply = {"id": request["id"], "error": repr(error)}
    print(json.dumps(reply), flush=True)
