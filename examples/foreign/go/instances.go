package main

import (
	"encoding/json"
	"fmt"
	mathrand "math/rand"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type portForward struct {
	Internal int `json:"internal_port"`
	External int `json:"external_port"`
}

// instance is an Instance of the contract.
type instance struct {
	ID              string        `json:"id"`
	Name            string        `json:"name,omitempty"`
	ConfigurationID string        `json:"configuration_id"`
	Region          string        `json:"region"`
	Status          string        `json:"status"`
	PublicIP        string        `json:"public_ip,omitempty"`
	SSHPort         int           `json:"ssh_port,omitempty"`
	SSHUsername     string        `json:"ssh_username,omitempty"`
	PortForwards    []portForward `json:"port_forwards,omitempty"`
	VCPUs           int           `json:"vcpus,omitempty"`
	MemoryGB        float64       `json:"memory_gb,omitempty"`
	StorageGB       float64       `json:"storage_gb,omitempty"`
	GPUCount        int           `json:"gpu_count,omitempty"`
	GPUType         string        `json:"gpu_type,omitempty"`
	Image           string        `json:"image,omitempty"`
	Price           float64       `json:"price_per_hour,omitempty"`
	Error           string        `json:"error,omitempty"`
	CreatedAt       string        `json:"created_at"`
	UpdatedAt       string        `json:"updated_at"`
}

// record is an instance with what only the provider knows of it.
type record struct {
	instance
	Account   string
	Keys      []string
	Cloud     *cloudInit
	Disk      string
	Address   string
	Port      int
	Starting  bool // a start was requested, and has not finished
	Cycle     bool // the platform stops and starts the machine in order to attach a volume
	Installed bool
	Booted    bool
	Undone    bool
	Doomed    bool
	OnlineAt  time.Time
	History   []version

	working bool
}

// version is what an instance was from a moment on; the fault `stale-worker` answers with it.
type version struct {
	At    time.Time
	Shown instance
}

func (s *server) machine(r *record) machine {
	return machine{r.Disk, r.Address, r.Port, r.VCPUs, r.MemoryGB}
}

// set changes a record, and notes when.
func (s *server) set(r *record, status string) {
	r.Status = status
	r.UpdatedAt = timestamp()
	r.History = append(r.History, version{time.Now(), r.instance})
	s.save()
}

func (s *server) createInstance(body []byte, account string) reply {
	var in struct {
		ConfigurationID string     `json:"configuration_id"`
		Region          string     `json:"region"`
		Keys            []string   `json:"ssh_keys"`
		Name            string     `json:"name"`
		Image           string     `json:"operating_system_image"`
		RootDisk        *float64   `json:"root_disk_size_gb"`
		Cloud           *cloudInit `json:"cloud_init"`
		Volumes         []string   `json:"volume_ids"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return fail(400, "invalid_request", "the body is not a CreateInstanceRequest: "+err.Error())
	}
	o := s.findOffer(in.ConfigurationID)
	if o == nil {
		return fail(400, "unknown_configuration", "configuration_id names no offer")
	}
	if _, sold := o.units[in.Region]; !sold {
		return fail(400, "unknown_region", "the offer is not sold in this region")
	}
	if len(in.Keys) == 0 {
		return fail(400, "invalid_request", "ssh_keys needs at least one key")
	}
	for _, key := range in.Keys {
		if !validKey(key) {
			return fail(400, "invalid_ssh_key", "each of ssh_keys must be one OpenSSH public key")
		}
	}
	if in.Image != "" && !contains(o.Images, in.Image) {
		return fail(400, "unknown_image", "operating_system_image is not one of os_options")
	}
	if in.RootDisk != nil && *in.RootDisk <= 0 {
		return fail(400, "invalid_request", "root_disk_size_gb must be positive")
	}
	if text := in.Cloud.invalid(); text != "" {
		return fail(400, "invalid_request", text)
	}
	for _, id := range in.Volumes {
		if v := s.findVolume(id, account); v == nil || v.Region != in.Region {
			return fail(400, "unknown_volume", "volume_ids names a volume that is not in the region")
		}
	}
	units := s.free(o, in.Region)
	if fault("oversold") {
		s.mu.Unlock()
		time.Sleep(500 * time.Millisecond)
		s.mu.Lock()
	}
	doomed := units <= 0 && fault("sold-out-error") && s.soldRecently(o, in.Region)
	if units <= 0 && !doomed {
		return fail(409, "capacity_unavailable", "the region has no free unit of this offer")
	}
	name, conflict := s.uniqueName(in.Name)
	if conflict && fault("name-conflict") {
		return fail(409, "name_taken", "an instance has this name")
	}
	now := timestamp()
	r := &record{Account: account, Keys: in.Keys, Cloud: in.Cloud, Doomed: doomed}
	r.instance = instance{ID: newID("vm"), Name: name, ConfigurationID: o.ID, Region: in.Region, CreatedAt: now, Image: in.Image,
		VCPUs: o.VCPUs, MemoryGB: o.MemoryGB, StorageGB: o.StorageGB, GPUCount: o.GPUCount, GPUType: o.GPUType, Price: o.Price}
	if o.Type == "SPOT" {
		r.Price = o.SpotPrice
	}
	if !o.CloudInit {
		r.Cloud = nil
	}
	if r.Image == "" || fault("image-ignored") {
		r.Image = o.Images[0]
	}
	r.SSHUsername = "root"
	if form("other-user") {
		r.SSHUsername = "cloud"
	}
	s.state.Machines++
	r.Disk = filepath.Join(s.folder, "disks", fmt.Sprintf("host-%d", s.state.Machines))
	s.place(r)
	s.state.Instances = append(s.state.Instances, r)
	s.set(r, "PROVISIONING")
	if !form("no-inline-volumes") {
		for _, id := range in.Volumes {
			s.findVolume(id, account).Attachments[r.ID] = "attaching"
		}
	}
	s.work(r)
	if fault("create-waits") {
		for r.Status == "PROVISIONING" {
			s.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			s.mu.Lock()
		}
	}
	return reply{201, s.show(r.instance)}
}

// soldRecently says whether another request took a unit in the last two seconds.
func (s *server) soldRecently(o *offer, region string) bool {
	for _, r := range s.state.Instances {
		if r.ConfigurationID == o.ID && r.Region == region && time.Since(r.History[0].At) < 2*time.Second {
			return true
		}
	}
	return false
}

func (c *cloudInit) invalid() string {
	if c == nil {
		return ""
	}
	for _, f := range c.WriteFiles {
		if !strings.HasPrefix(f.Path, "/") || f.Content == nil {
			return "each of write_files needs an absolute path, and content"
		}
		if strings.Trim(f.Permissions, "01234567") != "" || len(f.Permissions) > 5 {
			return "permissions must be an octal text, such as 0644"
		}
	}
	return ""
}

// uniqueName adds a number to a name that another instance has; the platform wants unique names.
func (s *server) uniqueName(wanted string) (string, bool) {
	name, conflict := wanted, false
	for n := 2; wanted != ""; n++ {
		taken := false
		for _, r := range s.state.Instances {
			taken = taken || r.Name == name
		}
		if !taken {
			break
		}
		name, conflict = fmt.Sprintf("%s-%d", wanted, n), true
	}
	return name, conflict
}

// place gives a machine the address and the port of its SSH server.
func (s *server) place(r *record) {
	s.state.Machines++
	n := s.state.Machines
	r.Address, r.Port = fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, os.Getpid()/250%250, 1+n%250), 22
	if form("nat-port") || form("port-forwards") || form("ipv6") {
		r.Address = "127.0.0.1"
		if form("ipv6") {
			r.Address = "::1"
		}
		if l, err := net.Listen("tcp", net.JoinHostPort(r.Address, "0")); err == nil {
			r.Port = l.Addr().(*net.TCPAddr).Port
			l.Close()
		}
	}
}

// publish shows where the machine can be reached.
func (r *record) publish() {
	r.PublicIP, r.SSHPort, r.PortForwards = r.Address, r.Port, nil
	if form("port-forwards") {
		r.SSHPort, r.PortForwards = 0, []portForward{{8888, r.Port + 1}, {22, r.Port}}
	}
	if r.SSHPort == 22 {
		r.SSHPort = 0
	}
}

func contains(list []string, text string) bool {
	for _, l := range list {
		if l == text {
			return true
		}
	}
	return false
}

func (s *server) listInstances(query url.Values, account string) reply {
	list := []any{}
	for _, r := range s.state.Instances {
		region := query.Get("region")
		hidden := r.Status == "DESTROYED" || r.Account != account && !fault("other-account")
		hidden = hidden || fault("list-lags") && time.Since(r.History[0].At) < 30*time.Second
		if !hidden && (region == "" || region == r.Region) {
			list = append(list, s.show(r.instance))
		}
	}
	if form("shuffled") {
		mathrand.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	}
	return reply{200, map[string]any{"instances": list}}
}

func (s *server) instanceRoute(method, id, verb string, query url.Values, account string) reply {
	var r *record
	for _, other := range s.state.Instances {
		if other.ID == id && (other.Account == account || fault("other-account")) {
			r = other
		}
	}
	missing := fail(404, "instance_not_found", "no such instance")
	if fault("missing-as-200") {
		missing.status = 200
	}
	if fault("missing-as-page") {
		missing.body = "<html><body><h1>404 Not Found</h1><hr>nginx</body></html>"
	}
	wrongRegion := r != nil && form("regional-ids") && query.Get("region") != r.Region
	if r == nil || wrongRegion || r.Status == "DESTROYED" && method != "DELETE" && !s.isStaleRead() {
		return missing
	}
	switch {
	case verb == "start":
		return only("POST", method, func() reply { return s.startInstance(r) })
	case verb == "stop":
		return only("POST", method, func() reply { return s.stopInstance(r) })
	case method == "DELETE":
		return s.deleteInstance(r, missing)
	}
	return only("GET", method, func() reply { return reply{200, s.show(s.read(r))} })
}

func (s *server) isStaleRead() bool { return fault("stale-worker") && s.requests%2 == 0 }

// read is what GET sees of a record.
func (s *server) read(r *record) instance {
	seen := r.instance
	if s.isStaleRead() {
		seen = r.History[0].Shown
		for _, v := range r.History {
			if time.Since(v.At) > 20*time.Second {
				seen = v.Shown
			}
		}
	}
	if age := time.Since(r.OnlineAt); fault("back-to-provisioning") && r.Status == "ONLINE" && age > 8*time.Second && age < 14*time.Second {
		seen.Status = "PROVISIONING"
	}
	return seen
}

func (s *server) startInstance(r *record) reply {
	if r.Status != "STOPPED" || r.Starting {
		return fail(409, "invalid_state", "only a STOPPED instance can be started; this one is "+r.Status)
	}
	if form("cannot-resume") {
		return fail(409, "cannot_resume", "this platform cannot resume stopped instances; delete it, and create another")
	}
	if fault("start-destroys") {
		s.set(r, "DESTROYING")
		s.work(r)
		return fail(409, "cannot_resume", "the host of the instance was given to another")
	}
	r.Starting = true
	status := "STOPPED"
	if form("start-provisioning") {
		status = "PROVISIONING"
	}
	if fault("raw-status") {
		status = "REBOOTING"
	}
	s.set(r, status)
	s.work(r)
	return reply{200, s.show(r.instance)}
}

// killNow ends the machine of r before the request is answered. The lock is open meanwhile.
func (s *server) killNow(r *record) {
	s.mu.Unlock()
	s.machine(r).kill()
	s.mu.Lock()
}

func (s *server) stopInstance(r *record) reply {
	if r.Status != "ONLINE" {
		if fault("stop-always-200") && r.Status == "PROVISIONING" {
			return reply{200, s.show(r.instance)}
		}
		return fail(409, "invalid_state", "only an ONLINE instance can be stopped; this one is "+r.Status)
	}
	if form("busy") && time.Since(r.OnlineAt) < 5*time.Second {
		return fail(409, "instance_busy", "the platform still takes an inventory of the machine; try again in 5 seconds")
	}
	s.set(r, "STOPPING")
	if form("instant-stop") {
		s.killNow(r)
		s.stopped(r)
	}
	s.work(r)
	return reply{200, s.show(r.instance)}
}

func (s *server) deleteInstance(r *record, missing reply) reply {
	if r.Status == "DESTROYED" {
		if fault("delete-twice") {
			return fail(409, "invalid_state", "the instance is DESTROYED")
		}
		if form("tombstone") {
			return reply{200, s.show(r.instance)}
		}
		return missing
	}
	if r.Status != "DESTROYING" {
		s.set(r, "DESTROYING")
	}
	if form("delete-completes") {
		s.killNow(r)
		s.destroyed(r)
	}
	s.work(r)
	return reply{200, s.show(r.instance)}
}
