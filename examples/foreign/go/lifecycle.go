package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// work drives an instance, in the background, until it has nothing more to do.
func (s *server) work(r *record) {
	if r.working {
		return
	}
	r.working = true
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for s.step(r) {
		}
		r.working = false
	}()
}

// step does the next thing that the status of an instance asks for. It holds the lock, except while a machine works.
func (s *server) step(r *record) bool {
	switch {
	case r.Status == "DESTROYING":
		s.destroy(r)
	case r.Status == "STOPPING":
		s.stop(r)
	case r.Starting || r.Status == "PROVISIONING":
		s.boot(r)
	case r.Status == "STOPPED" && form("reaped"):
		if s.pause(r, 5000) {
			s.set(r, "OFFLINE")
		}
	case r.Status == "ONLINE" && fault("dies-quietly"):
		if s.pause(r, 20000) {
			s.away(s.machine(r).kill)
			s.pause(r, 3600000)
		}
	default:
		return false
	}
	return true
}

// away does something slow without the lock.
func (s *server) away(do func()) {
	s.mu.Unlock()
	do()
	s.mu.Lock()
}

// pause waits, and says whether the status is still what it was.
func (s *server) pause(r *record, ms int) bool {
	was, starting := r.Status, r.Starting
	for until := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(until); {
		s.away(func() { time.Sleep(20 * time.Millisecond) })
		if r.Status != was || r.Starting != starting {
			return false
		}
	}
	return true
}

func (s *server) boot(r *record) {
	was := r.Status
	duration := *bootMs
	if form("slow-boot") {
		duration = 30000
	}
	if !s.pause(r, duration) {
		return
	}
	if r.Doomed {
		r.Error = "sold out: another request took the last unit of this offer at the same moment"
		s.set(r, "ERROR")
		return
	}
	if fault("online-early") {
		r.publish()
		r.OnlineAt = time.Now()
		s.set(r, "ONLINE")
		was = "ONLINE"
		s.away(func() { time.Sleep(8 * time.Second) })
	}
	m := s.machine(r)
	var failure error
	o, neighbours, again := s.findOffer(r.ConfigurationID), s.state.LastKeys, r.Booted
	s.away(func() {
		if !r.Installed {
			failure = m.install(r.SSHUsername, keysToInject(r.Keys, neighbours), o)
		}
		if again {
			m.spoil(r)
		}
		if failure == nil {
			failure = m.start()
		}
	})
	r.Installed = r.Installed || failure == nil
	if r.Status != was {
		return
	}
	if failure != nil {
		r.Starting = false
		r.Error = failure.Error()
		s.set(r, "ERROR")
		return
	}
	if !again || !fault("volumes-lost-on-start") {
		s.mountVolumes(r)
	}
	r.Booted = true
	s.save()
	if !again && r.Cloud != nil && form("late-cloud-init") {
		go func() { time.Sleep(6 * time.Second); m.firstBoot(r.Cloud) }()
	} else if !again && r.Cloud != nil {
		s.away(func() { m.firstBoot(r.Cloud) })
	}
	if !again && fault("disk-rollback") {
		s.away(func() { exec.Command("cp", "-a", m.path("upper"), m.path("snapshot")).Run() })
	}
	for r.Status == "PROVISIONING" && fault("never-online") {
		s.pause(r, 1000)
	}
	if r.Status != was {
		return
	}
	r.Starting = false
	if was == "ONLINE" {
		return
	}
	r.publish()
	r.OnlineAt = time.Now()
	s.set(r, "ONLINE")
}

func keysToInject(keys, neighbours []string) []string {
	if fault("second-key-ignored") {
		return keys[:1]
	}
	if fault("neighbour-key") {
		return append(append([]string{}, keys...), neighbours...)
	}
	return keys
}

// spoil does to a disk, before it boots again, what the faults of a start do.
func (m machine) spoil(r *record) {
	switch *faultFlag {
	case "disk-rollback":
		os.RemoveAll(m.path("upper"))
		exec.Command("cp", "-a", m.path("snapshot"), m.path("upper")).Run()
	case "disk-partly":
		for _, folder := range []string{"var", "opt", "srv", "tmp"} {
			os.RemoveAll(m.path("upper", folder))
		}
	case "new-host-key":
		m.newHostKey()
	case "keys-lost-on-start":
		m.authorize(r.SSHUsername, r.Keys[:1])
	case "runcmd-every-boot":
		if r.Cloud != nil {
			go func() {
				if m.start() == nil {
					m.runcmd(r.Cloud)
				}
			}()
			time.Sleep(time.Second)
		}
	}
}

func (s *server) stop(r *record) {
	if !s.pause(r, *stopMs) {
		return
	}
	if !fault("stop-is-fake") {
		s.away(s.machine(r).kill)
	}
	if fault("stop-via-offline") && r.Status == "STOPPING" {
		s.set(r, "OFFLINE")
		s.pause(r, 3000)
	}
	if r.Status == "STOPPING" || r.Status == "OFFLINE" {
		s.stopped(r)
	}
}

func (s *server) stopped(r *record) {
	if form("new-ip") {
		s.place(r)
		r.PublicIP = ""
	}
	r.Starting, r.Cycle = r.Cycle, false
	s.set(r, "STOPPED")
}

func (s *server) destroy(r *record) {
	duration := *destroyMs
	if form("slow-delete") {
		duration = 20000
	}
	if !s.pause(r, duration) {
		return
	}
	if fault("delete-undone") && !r.Undone && r.Booted {
		r.Undone = true
		s.set(r, "DESTROYED")
		s.away(func() { time.Sleep(6 * time.Second) })
		s.set(r, "ONLINE")
		return
	}
	if !fault("machine-leaked") {
		s.away(func() {
			s.machine(r).kill()
			os.RemoveAll(r.Disk)
		})
	}
	s.destroyed(r)
}

// destroyed releases what an instance held.
func (s *server) destroyed(r *record) {
	if r.Status == "DESTROYED" {
		return
	}
	for _, v := range s.state.Volumes {
		if _, attached := v.Attachments[r.ID]; attached {
			delete(v.Attachments, r.ID)
			v.Gone = v.Gone || fault("volume-dies")
		}
	}
	if fault("capacity-leaked") {
		s.leaked[r.ConfigurationID+r.Region]++
	}
	s.state.LastKeys, r.Starting = r.Keys, false
	s.set(r, "DESTROYED")
	if !fault("machine-leaked") {
		os.RemoveAll(r.Disk)
	}
}

// mountVolumes shows the attached volumes on a machine that has just booted.
func (s *server) mountVolumes(r *record) {
	for _, v := range s.state.Volumes {
		if to := v.Attachments[r.ID]; to == "attaching" || to == "attached" {
			s.attachTo(v, r)
		}
	}
}

// attachTo mounts one volume on a machine.
func (s *server) attachTo(v *volume, r *record) {
	m, folder := s.machine(r), filepath.Join(s.folder, "volumes", v.Folder)
	var err error
	s.away(func() { err = m.mount(folder, v.ID) })
	if err != nil {
		os.Stderr.WriteString("volume " + v.ID + ": " + err.Error() + "\n")
	}
	if err == nil && v.Attachments[r.ID] == "attaching" {
		v.Attachments[r.ID] = "attached"
		s.save()
	}
}
