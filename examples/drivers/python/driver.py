#!/usr/bin/env python3
"""A driver for Berth without a library: each machine is an OpenSSH server on this host, its disk a folder.

    driver.py FOLDER [UNITS]    where the machines are kept, and how many there may be (4)

Replace Machine by calls to your platform; docs/how-to/driver-in-any-language.md tells what Berth asks.
"""
import fcntl, getpass, json, os, random, shutil, socket, subprocess, sys, time
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve()
UNITS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
INFO = {"protocol": 1, "name": "sshd-python", "capabilities": {
    "stop": True, "resume": True, "inventory": True, "keeps_notes": True, "create_visible_within_ms": 0}}
SSHD_CONFIG = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
AuthenticationMethods publickey
StrictModes no
PidFile none
ForceCommand cd '{folder}/disk' && export HOME="$PWD" && exec sh -c "${{SSH_ORIGINAL_COMMAND:-exec sh -i}}"
"""


def free_port():
    """One that the system gives to no other program: a stopped machine keeps its own."""
    while True:
        port = random.randrange(20_000, 32_768)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            pass


class Machine:
    def __init__(self, ref):
        self.ref, self.folder = ref, FOLDER / ref

    def make(self, spec):
        new = FOLDER / f".new-{self.ref}"  # Renamed when it is complete: half a machine is none.
        shutil.rmtree(new, ignore_errors=True)
        (new / "disk").mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", new / "host_key"], check=True)
        port = free_port()
        (new / "authorized_keys").write_text("\n".join(spec["ssh_keys"]))
        (new / "sshd_config").write_text(SSHD_CONFIG.format(port=port, folder=self.folder))
        (new / "machine.json").write_text(json.dumps({
            "ref": self.ref, "created_at": int(time.time() * 1000), "note": spec["note"],
            "endpoint": {"public_ip": "127.0.0.1", "ssh_port": port, "ssh_username": getpass.getuser()}}))
        new.rename(self.folder)

    def observe(self):
        known = json.loads((self.folder / "machine.json").read_text())
        return {**known, "power": "running" if self.processes() else "stopped"}

    def processes(self, killed=()):
        """Its server and what has its disk as home (`ps e` shows the environment), with their children."""
        command = ["ps", "axeww", "-o", "pid=,ppid=,stat=,args="]
        printed = subprocess.check_output(command, text=True, errors="replace")
        rows = [row for row in (line.split(None, 3) for line in printed.splitlines()) if row[2][0] != "Z"]
        marks = f"-f {self.folder}/sshd_config", f"HOME={self.folder}/disk"
        own = {pid for pid, _, _, text in rows if pid in killed or any(mark in text for mark in marks)}
        return [pid for pid, parent, *_ in rows if pid in own or parent in own]

    def start(self):  # sshd makes a session of its own: what is in the driver's ends with the driver.
        log, config = self.folder / "console.log", self.folder / "sshd_config"
        subprocess.run(["/usr/sbin/sshd", "-f", config, "-E", log], check=True)

    def kill(self):  # A process that ends loses its arguments first, and its port last.
        killed = set()
        while pids := self.processes(killed):
            subprocess.run(["kill", "-KILL", *pids], stderr=subprocess.DEVNULL)
            killed.update(pids)


def failed(code, detail):
    return {"outcome": "failed", "code": code, "side_effect": "none", "detail": detail}


def answer(request):
    method, machine = request["method"], Machine(request.get("ref", ""))
    exists = machine.folder.exists()
    machines = [Machine(path.name) for path in sorted(FOLDER.glob("[!.]*"))]
    if method == "info":
        return INFO
    if method == "list":
        return {"answer": "listed", "items": [each.observe() for each in machines]}
    if method == "get":
        return {"answer": "observed", "value": machine.observe()} if exists else {"answer": "gone"}
    if method == "inventory":
        return {"answer": "counted", "free": max(0, UNITS - len(machines))}
    if method == "destroy":
        if exists:
            machine.kill()
            shutil.rmtree(machine.folder)
        return {"outcome": "done", "value": None}
    if method == "create" and not exists:  # It may exist: each step may come again.
        if len(machines) >= UNITS:
            return failed("capacity", f"all {UNITS} units are taken")
        machine.make(request["spec"])
    elif not exists:
        return failed("gone", f"there is no machine {machine.ref}")
    if method == "stop":
        machine.kill()
    elif not machine.processes():
        machine.start()
    # On a platform that takes longer: {"outcome": "pending", "progress": {"phase": "booting"}}, and Berth asks again.
    return {"outcome": "done", "value": machine.observe()}


def serve(answer):
    os.makedirs(FOLDER, exist_ok=True)
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    fcntl.flock(os.open(FOLDER, os.O_RDONLY), fcntl.LOCK_EX)  # A killed Berth's driver may still be at work.
    for line in sys.stdin:  # Berth closes it when the driver is to end.
        request = json.loads(line)
        try:
            reply = {"id": request["id"], "result": answer(request)}
        except Exception as error:  # Berth takes the outcome for unknown, and looks.
            reply = {"id": request["id"], "error": repr(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve(answer)
