#!/usr/bin/env python3
"""A small provider orchestrator, in Python's standard library, written from the contract's text alone.

It shares no code with Berth. A "machine" is an OpenSSH server with a host key, a port and a folder of its own.

    PROVIDER_API_KEY=... python3 orchestrator.py [--port N] [--never-stops] [--fault disk-lost|second-stop-accepted]

prints {"base_url": ...} once it listens; SIGTERM ends it and its machines. A start looks like a boot: PROVISIONING, then
ONLINE. With --never-stops every stop is 409, which the contract allows for an instance that is not stoppable.

  disk-lost             a start gives the machine an empty disk
  second-stop-accepted  a stop of a STOPPED instance is 200 and not 409
"""
import argparse
import base64
import getpass
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

REGIONS = ["eu-north", "us-east"]
OFFERS = {
    "l4": {"name": "1x L4", "gpu_type": "L4", "gpu_memory_gb": 24, "price_per_hour": 0.6, "regions": REGIONS, "units": 4},
    "h100": {"name": "1x H100", "gpu_type": "H100", "gpu_memory_gb": 80, "price_per_hour": 2.9, "regions": ["eu-north"], "units": 0},
}
IMAGES = ["ubuntu-24.04", "debian-12"]
TYPES = {"SPOT", "DEDICATED", "BARE_METAL", "CLUSTER"}


class Refusal(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Machine:
    """A folder that is its disk, a host key, and an OpenSSH server while it runs."""

    def __init__(self, folder, keys):
        self.folder, self.server, self.port = folder, None, None
        self.home = os.path.join(folder, "home")
        os.makedirs(self.home)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder + "/host_key"], check=True)
        self.write("keys", "\n".join(keys) + "\n", 0o600)
        self.write("login", f'#!/bin/sh\ncd "{self.home}" && exec sh -c "${{SSH_ORIGINAL_COMMAND:-sh}}"\n', 0o755)

    def write(self, name, text, mode):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def run(self):
        """Returns once its SSH endpoint answers."""
        while True:
            self.port = self.port or free_port()
            options = {
                "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": self.folder + "/host_key",
                "AuthorizedKeysFile": self.folder + "/keys", "StrictModes": "no", "PidFile": "none",
                "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
                "ForceCommand": self.folder + "/login", "SetEnv": "HOME=" + self.home,
            }
            flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
            self.server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *flags],
                                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            while self.server.poll() is None:
                try:
                    return socket.create_connection(("127.0.0.1", self.port), 1).close()
                except OSError:
                    time.sleep(0.05)
            self.port = None  # somebody else has it

    def halt(self):
        if self.server is not None and self.server.poll() is None:
            os.killpg(self.server.pid, signal.SIGTERM)
            self.server.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Orchestrator:
    def __init__(self, folder, fault, never_stops):
        self.folder, self.fault, self.never_stops = folder, fault, never_stops
        self.lock = threading.RLock()
        self.instances = {}

    # -- offers

    def offers(self):
        return [{
            "id": id, "instance_type": "DEDICATED", "vcpus": 8, "memory_gb": 64, "storage_gb": 200, "gpu_count": 1,
            "os_options": IMAGES, "supports_cloud_init": False, "available": self.free(id) > 0,
            **{name: value for name, value in offer.items() if name != "units"},
        } for id, offer in OFFERS.items()]

    def free(self, id):
        held = [one for one in self.instances.values() if one["configuration_id"] == id and one["status"] != "DESTROYED"]
        return OFFERS[id]["units"] - len(held)

    def configurations(self, query):
        wanted = query.get("instance_type")
        if wanted is not None and wanted not in TYPES:
            raise Refusal(400, "invalid_request", "instance_type is SPOT, DEDICATED, BARE_METAL or CLUSTER.")
        return {"configurations": [one for one in self.offers() if wanted in (None, one["instance_type"])]}

    def availability(self, query):
        region = query.get("region")
        return {"configurations": [
            one for one in self.offers() if one["available"] and (region is None or region in one["regions"])]}

    # -- instances

    def list(self, query):
        region = query.get("region")
        return {"instances": [shown(one) for one in self.instances.values()
                              if one["status"] != "DESTROYED" and region in (None, one["region"])]}

    def create(self, body):
        check(body)
        if self.free(body["configuration_id"]) < 1:
            raise Refusal(409, "capacity_unavailable", "The offer is sold out.")
        instance = {
            "id": str(uuid.uuid4()), "configuration_id": body["configuration_id"], "region": body["region"],
            "status": "PROVISIONING", "image": body.get("operating_system_image", IMAGES[0]),
            "price_per_hour": OFFERS[body["configuration_id"]]["price_per_hour"], "created_at": now(),
        }
        if "name" in body:
            instance["name"] = body["name"]
        instance["updated_at"] = instance["created_at"]
        self.instances[instance["id"]] = instance
        self.later(instance, self.boot, body["ssh_keys"])
        return shown(instance)

    def boot(self, instance, keys):
        folder = os.path.join(self.folder, instance["id"])
        os.mkdir(folder)
        machine = Machine(folder, keys)
        machine.run()
        with self.lock:
            instance["_machine"] = machine
            if instance["status"] == "PROVISIONING":
                instance.update(public_ip="127.0.0.1", ssh_port=machine.port, ssh_username=getpass.getuser())
                move(instance, "ONLINE")

    def find(self, id):
        instance = self.instances.get(id)
        if instance is None or instance["status"] == "DESTROYED":
            raise Refusal(404, "not_found", "There is no such instance.")
        return instance

    def stop(self, instance):
        if instance["status"] == "STOPPED" and self.fault == "second-stop-accepted":
            return shown(instance)
        if instance["status"] != "ONLINE" or self.never_stops:
            raise Refusal(409, "invalid_state", f"The instance is {instance['status']} and cannot be stopped.")
        move(instance, "STOPPING")
        self.later(instance, self.halt)
        return shown(instance)

    def halt(self, instance):
        instance["_machine"].halt()
        with self.lock:
            if instance["status"] == "STOPPING":
                move(instance, "STOPPED")

    def start(self, instance):
        if instance["status"] != "STOPPED":
            raise Refusal(409, "invalid_state", f"The instance is {instance['status']} and cannot be started.")
        move(instance, "PROVISIONING")
        self.later(instance, self.resume)
        return shown(instance)

    def resume(self, instance):
        machine = instance["_machine"]
        if self.fault == "disk-lost":
            shutil.rmtree(machine.home)
            os.mkdir(machine.home)
        machine.run()
        with self.lock:
            if instance["status"] == "PROVISIONING":
                instance["ssh_port"] = machine.port
                move(instance, "ONLINE")

    def delete(self, instance):
        if instance["status"] != "DESTROYING":
            move(instance, "DESTROYING")
            self.later(instance, self.destroy)
        return shown(instance)

    def destroy(self, instance):
        if "_machine" in instance:
            instance["_machine"].halt()
        shutil.rmtree(os.path.join(self.folder, instance["id"]), ignore_errors=True)
        with self.lock:
            move(instance, "DESTROYED")

    def later(self, instance, step, *given):
        """Steps of one instance run one after another: a DELETE waits for the boot, and then takes it down."""
        before = instance.get("_last")

        def in_turn():
            if before is not None:
                before.join()
            time.sleep(0.3)
            step(instance, *given)

        instance["_last"] = threading.Thread(target=in_turn)
        instance["_last"].start()

    def close(self):
        for instance in self.instances.values():
            instance["_last"].join()
            if "_machine" in instance:
                instance["_machine"].halt()


def move(instance, status):
    instance.update(status=status, updated_at=now())


def shown(instance):
    return {name: value for name, value in instance.items() if not name.startswith("_")}


def check(body):
    """Refuses what could not be made as it was asked for."""
    def need(holds, what):
        if not holds:
            raise Refusal(400, "invalid_request", what)

    need(isinstance(body, dict), "The body is no JSON object.")
    offer = OFFERS.get(body.get("configuration_id")) if isinstance(body.get("configuration_id"), str) else None
    need(offer, "configuration_id is the id of no offer.")
    need(body.get("region") in offer["regions"], "The offer is not sold in that region.")
    keys = body.get("ssh_keys")
    need(isinstance(keys, list) and keys and all(is_key(key) for key in keys), "ssh_keys is a list of OpenSSH public keys.")
    need(isinstance(body.get("name", ""), str), "name is a text.")
    need(body.get("operating_system_image", IMAGES[0]) in IMAGES, f"operating_system_image is one of {IMAGES}.")
    size = body.get("root_disk_size_gb", 200)
    need(isinstance(size, (int, float)) and not isinstance(size, bool) and size > 0, "root_disk_size_gb is a number.")
    need(not body.get("cloud_init"), "This offer does not support cloud_init.")
    volumes = body.get("volume_ids", [])
    need(isinstance(volumes, list) and not volumes, "There are no volumes here.")


def is_key(key):
    parts = key.split() if isinstance(key, str) else []
    if len(parts) < 2 or "\n" in key.strip():
        return False
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except ValueError:
        return False
    # A key names its own kind, in the first field.
    return blob[4:4 + int.from_bytes(blob[:4], "big")] == parts[0].encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    orchestrator = api_key = None

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.text = self.rfile.read(length)
        try:
            status, body = self.route()
        except Refusal as refusal:
            status, body = refusal.status, {"error": {"code": refusal.code, "message": refusal.message}}
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer

    def route(self):
        given = self.headers.get("Authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, b"Bearer " + self.api_key.encode()):
            raise Refusal(401, "unauthorized", "The credential is missing or not valid.")
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        here = self.orchestrator
        with here.lock:
            match [self.command, *url.path.split("/")[1:]]:
                case ["GET", "v1", "configurations"]:
                    return 200, here.configurations(query)
                case ["GET", "v1", "availability"]:
                    return 200, here.availability(query)
                case ["GET", "v1", "instances"]:
                    return 200, here.list(query)
                case ["POST", "v1", "instances"]:
                    return 201, here.create(self.body())
                case ["GET", "v1", "instances", id]:
                    return 200, shown(here.find(id))
                case ["DELETE", "v1", "instances", id]:
                    return 200, here.delete(here.find(id))
                case ["POST", "v1", "instances", id, "stop"]:
                    return 200, here.stop(here.find(id))
                case ["POST", "v1", "instances", id, "start"]:
                    return 200, here.start(here.find(id))
        raise Refusal(404, "not_found", "There is nothing here.")

    def body(self):
        if self.headers.get_content_type() != "application/json":
            raise Refusal(400, "invalid_request", "The body is application/json.")
        try:
            return json.loads(self.text)
        except ValueError:
            raise Refusal(400, "invalid_json", "The body is not JSON.") from None

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--never-stops", action="store_true")
    parser.add_argument("--fault", choices=["disk-lost", "second-stop-accepted"])
    args = parser.parse_args()
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    folder = tempfile.mkdtemp(prefix="orchestrator-")
    Handler.orchestrator, Handler.api_key = Orchestrator(folder, args.fault, args.never_stops), os.environ["PROVIDER_API_KEY"]
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(json.dumps({"base_url": f"http://127.0.0.1:{server.server_port}/v1"}), flush=True)
    server.serve_forever()
    Handler.orchestrator.close()
    shutil.rmtree(folder)


main()
