package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// volume is a folder of this host that machines mount. Attachments holds "attaching", "attached" or "detaching" by instance.
type volume struct {
	ID          string
	Name        string
	SizeGB      float64
	Region      string
	Type        string
	Account     string
	CreatedAt   string
	Folder      string
	Created     bool
	Attachments map[string]string
	Deleting    bool
	Gone        bool

	Lingering int
}

func (s *server) findVolume(id, account string) *volume {
	for _, v := range s.state.Volumes {
		if v.ID == id && v.Account == account && !v.Gone {
			return v
		}
	}
	return nil
}

func (s *server) findInstance(id, account string) *record {
	for _, r := range s.state.Instances {
		if r.ID == id && r.Account == account && r.Status != "DESTROYED" {
			return r
		}
	}
	return nil
}

func (v *volume) has(state string) bool {
	for _, attachment := range v.Attachments {
		if attachment == state {
			return true
		}
	}
	return false
}

func (v *volume) status() string {
	switch {
	case v.Deleting:
		return "DELETING"
	case !v.Created:
		return "CREATING"
	case v.has("detaching"):
		return "DETACHING"
	case v.has("attaching"):
		return "ATTACHING"
	case v.has("attached"):
		return "ATTACHED"
	}
	return "AVAILABLE"
}

func (s *server) showVolume(v *volume) any {
	ids := []string{}
	for id := range v.Attachments {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return present(map[string]any{"id": v.ID, "name": v.Name, "size_gb": v.SizeGB, "region": v.Region, "type": v.Type,
		"status": v.status(), "attached_instance_ids": ids, "price_per_hour": v.SizeGB * 0.0001, "created_at": v.CreatedAt}, volumeOptional)
}

func (s *server) locations() reply {
	list := []any{}
	for region, country := range map[string]string{east: "FI", west: "US"} {
		id := region
		if fault("location-code") {
			id = datacenters[region]
		}
		list = append(list, present(map[string]any{"id": id, "name": strings.ToUpper(region), "types": []string{"ssd", "hdd"},
			"country_code": country}, []string{"types", "country_code"}))
	}
	return reply{200, map[string]any{"locations": list}}
}

func (s *server) createVolume(body []byte, account string) reply {
	var in struct {
		Name      string   `json:"name"`
		SizeGB    float64  `json:"size_gb"`
		Region    string   `json:"region"`
		Type      string   `json:"type"`
		Instances []string `json:"instance_ids"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return fail(400, "invalid_request", "the body is not a CreateVolumeRequest: "+err.Error())
	}
	if in.Name == "" || in.SizeGB <= 0 || in.SizeGB > 10000 {
		return fail(400, "invalid_request", "a volume needs a name, and a size_gb from 1 to 10000")
	}
	if in.Region != east && in.Region != west {
		return fail(400, "unknown_region", "region is not one of /volumes/locations")
	}
	if in.Type == "" {
		in.Type = "ssd"
	}
	if in.Type != "ssd" && in.Type != "hdd" {
		return fail(400, "unknown_type", "type must be ssd or hdd")
	}
	v := &volume{ID: newID("vol"), Name: in.Name, SizeGB: in.SizeGB, Region: in.Region, Type: in.Type, Account: account,
		CreatedAt: timestamp(), Folder: randomHex(8), Attachments: map[string]string{}}
	if len(in.Instances) > 0 {
		if refusal := s.attach(v, in.Instances, account); refusal != nil {
			refusal.status = 400
			return *refusal
		}
	}
	if err := os.MkdirAll(filepath.Join(s.folder, "volumes", v.Folder), 0o777); err != nil {
		return fail(500, "internal", "the volume cannot be created")
	}
	os.Chmod(filepath.Join(s.folder, "volumes", v.Folder), 0o777)
	s.state.Volumes = append(s.state.Volumes, v)
	s.save()
	go s.settle(v)
	return reply{201, s.showVolume(v)}
}

func (s *server) volumeRoute(method, id, verb string, body []byte, account string) reply {
	v := s.findVolume(id, account)
	if v == nil {
		return fail(404, "volume_not_found", "no such volume")
	}
	var in struct {
		Instances []string `json:"instance_ids"`
	}
	if verb != "" && len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			return fail(400, "invalid_request", "the body must hold instance_ids: "+err.Error())
		}
	}
	switch {
	case verb == "" && method == "DELETE":
		return s.deleteVolume(v)
	case verb == "":
		return only("GET", method, func() reply { return reply{200, s.showVolume(v)} })
	case method == "POST" && v.Deleting:
		return fail(409, "invalid_state", "the volume is DELETING")
	case verb == "attach":
		return only("POST", method, func() reply {
			if len(in.Instances) == 0 {
				return fail(400, "invalid_request", "instance_ids needs at least one id")
			}
			if refusal := s.attach(v, in.Instances, account); refusal != nil {
				return *refusal
			}
			return s.changed(v)
		})
	}
	return only("POST", method, func() reply {
		for id, state := range v.Attachments {
			if state != "detaching" && (in.Instances == nil || contains(in.Instances, id)) {
				v.Attachments[id] = "detaching"
				if fault("detached-early") {
					delete(v.Attachments, id)
					go s.unmountLate(v, id)
				}
			}
		}
		return s.changed(v)
	})
}

func (s *server) changed(v *volume) reply {
	s.save()
	go s.settle(v)
	return reply{200, s.showVolume(v)}
}

// attach requests the attachments, all or none.
func (s *server) attach(v *volume, ids []string, account string) *reply {
	for _, id := range ids {
		r := s.findInstance(id, account)
		var refusal reply
		switch {
		case r == nil:
			refusal = fail(404, "instance_not_found", "instance_ids names no instance")
		case r.Region != v.Region:
			refusal = fail(400, "wrong_region", "the volume and the instance are in different regions")
		case r.Status != "ONLINE" && r.Status != "STOPPED" && v.Attachments[id] == "":
			refusal = fail(409, "invalid_state", "the instance is "+r.Status)
		case v.Attachments[id] != "" && fault("attach-twice"):
			refusal = fail(409, "already_attached", "the volume is attached to this instance")
		default:
			continue
		}
		return &refusal
	}
	for _, id := range ids {
		if v.Attachments[id] == "attached" {
			continue
		}
		v.Attachments[id] = "attaching"
		r := s.findInstance(id, account)
		if form("attach-cycles") && r.Status == "ONLINE" {
			r.Cycle = true
			s.set(r, "STOPPING")
			s.work(r)
		}
	}
	return nil
}

// settle finishes, a moment later, what was requested of a volume.
func (s *server) settle(v *volume) {
	duration := *volumeMs
	if form("slow-volumes") {
		duration = 6000
	}
	time.Sleep(time.Duration(duration) * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Created = true
	for _, r := range s.state.Instances {
		switch state := v.Attachments[r.ID]; {
		case state == "detaching" || state != "" && v.Deleting:
			if r.Status == "ONLINE" {
				m := s.machine(r)
				s.away(func() { m.unmount(v.ID) })
			}
			delete(v.Attachments, r.ID)
		case state == "attaching" && r.Status == "STOPPED":
			v.Attachments[r.ID] = "attached"
		case state == "attaching" && r.Status == "ONLINE":
			s.attachTo(v, r)
		}
	}
	if v.Deleting {
		v.Gone = true
		os.RemoveAll(filepath.Join(s.folder, "volumes", v.Folder))
	}
	s.save()
}

// unmountLate is the fault `detached-early`: the machine keeps the volume for 15 seconds after the API says that it is detached.
func (s *server) unmountLate(v *volume, id string) {
	s.mu.Lock()
	v.Lingering++
	s.mu.Unlock()
	time.Sleep(15 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Lingering--
	for _, r := range s.state.Instances {
		if r.ID == id && r.Status == "ONLINE" && v.Attachments[id] == "" {
			m := s.machine(r)
			s.away(func() { m.unmount(v.ID) })
		}
	}
}

func (s *server) deleteVolume(v *volume) reply {
	if (v.has("attached") || v.has("attaching")) && !fault("volume-deleted-attached") || v.Lingering > 0 {
		return fail(409, "volume_attached", "detach the volume first")
	}
	if !v.Deleting {
		v.Deleting = true
		s.save()
		go s.settle(v)
	}
	return reply{204, nil}
}
