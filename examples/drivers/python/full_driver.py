#!/usr/bin/env python3
"""All that a driver for Berth can do: driver.py, which is beside it, with restarts, consoles and volumes.

    full_driver.py FOLDER [UNITS]

A volume is a folder, which a machine that has it finds in its home as volumes/REF.
"""
import json, shutil, sys, time

sys.dont_write_bytecode = True
import driver
from driver import FOLDER, INFO, Machine, failed

MORE = {"restart": True, "console": True, "attach_volume": "hot", "resize_volume": "attached"}


def done(value):
    return {"outcome": "done", "value": value}


def read(file):
    return json.loads(file.read_text()) if file.exists() else {}


def change(file, **fields):
    """The new file takes the place of the old one as a whole."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({**read(file), **fields}))
    new.rename(file)


class Volume:
    def __init__(self, ref):
        self.ref, self.folder = ref, FOLDER / ".volumes" / ref
        self.record = self.folder / "volume.json"

    def exists(self):
        return self.folder.is_dir()

    def make(self, spec):
        new = self.folder.with_name(f".new-{self.ref}")
        shutil.rmtree(new, ignore_errors=True)
        (new / "data").mkdir(parents=True)
        change(new / "volume.json", ref=self.ref, created_at=int(time.time() * 1000), size_gb=spec["size_gb"],
               note=spec["note"], attached_to=[])
        new.rename(self.folder)

    def observe(self):
        return read(self.record)

    def link(self, machine):
        return machine.folder / "disk" / "volumes" / self.ref

    def attach(self, machine):
        """The record first: a link without one would never be removed."""
        change(self.record, attached_to=sorted({*self.observe()["attached_to"], machine.ref}))
        self.link(machine).parent.mkdir(exist_ok=True)
        if not self.link(machine).is_symlink():
            self.link(machine).symlink_to(self.folder / "data")

    def detach(self, machine):
        self.link(machine).unlink(missing_ok=True)
        change(self.record, attached_to=[ref for ref in self.observe()["attached_to"] if ref != machine.ref])

    def destroy(self):
        for ref in self.observe()["attached_to"]:
            self.detach(Machine(ref))
        shutil.rmtree(self.folder)


def volumes():
    return [Volume(path.name) for path in sorted((FOLDER / ".volumes").glob("[!.]*"))]


def answer(request):
    method, machine = request["method"], Machine(request.get("ref", ""))
    if method == "info":
        return {**INFO, "capabilities": {**INFO["capabilities"], **MORE}}
    if method == "console":
        log = machine.folder / "console.log"
        return {"text": log.read_text(errors="replace")[-16384:] if log.exists() else None}
    if method.startswith("volumes."):
        return answer_volume(request, method, Volume(request.get("ref", "")))
    if method == "restart":
        return restart(machine, request["restart_id"])
    answered = driver.answer(request)
    if method == "destroy" and answered["outcome"] == "done":
        for volume in volumes():
            volume.detach(machine)
    return answered


def restart(machine, restart_id):
    """Once for each id: what has begun is written down, and what is over."""
    if not machine.folder.exists():
        return failed("gone", f"there is no machine {machine.ref}")
    record = machine.folder / "restart.json"
    known = read(record)
    if known.get("done") != restart_id:
        if known.get("begun") != restart_id and machine.observe()["power"] != "running":
            return failed("conflict", "the machine does not run")
        change(record, begun=restart_id)
        machine.kill()
        machine.start()
        change(record, done=restart_id)
    return done(machine.observe())


def answer_volume(request, method, volume):
    if method == "volumes.list":
        return {"answer": "listed", "items": [each.observe() for each in volumes()]}
    if method == "volumes.get":
        return {"answer": "observed", "value": volume.observe()} if volume.exists() else {"answer": "gone"}
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
        change(volume.record, size_gb=request["size_gb"])
        return done(volume.observe())
    machine = Machine(request["machine"])
    if method == "volumes.detach":
        volume.detach(machine)
        return done(None)
    if not machine.folder.exists():
        return failed("gone", f"there is no machine {machine.ref}")
    volume.attach(machine)
    return done(None)


if __name__ == "__main__":
    driver.serve(answer)
