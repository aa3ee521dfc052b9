package main

import (
	"math/rand"
	"net/url"
	"time"
)

// offer is a Configuration of the contract, and the units that each of its regions has in all.
type offer struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Type        string         `json:"instance_type"`
	VCPUs       int            `json:"vcpus"`
	MemoryGB    float64        `json:"memory_gb"`
	StorageGB   float64        `json:"storage_gb"`
	GPUCount    int            `json:"gpu_count,omitempty"`
	GPUType     string         `json:"gpu_type,omitempty"`
	GPUMemoryGB float64        `json:"gpu_memory_gb,omitempty"`
	Price       float64        `json:"price_per_hour"`
	SpotPrice   float64        `json:"spot_price_per_hour,omitempty"`
	Available   bool           `json:"available"`
	Regions     []string       `json:"regions"`
	Images      []string       `json:"os_options,omitempty"`
	CloudInit   bool           `json:"supports_cloud_init"`
	Maintenance bool           `json:"maintenance,omitempty"`
	Extras      map[string]any `json:"extras,omitempty"`

	units map[string]int
}

var (
	east, west  = "helsinki", "oregon"
	datacenters = map[string]string{"helsinki": "hel1-dc2", "oregon": "pdx4"}
	images      = []string{"debian-12", "debian-12-minimal"}
)

// catalog is everything that the provider sells. The offer `cpu.2` has 3 units in the second region, for races.
func catalog() []*offer {
	kind := "DEDICATED"
	if form("bare-metal") {
		kind = "BARE_METAL"
	}
	return []*offer{
		{ID: "cpu.1", Name: "1 vCPU", Type: kind, VCPUs: 1, MemoryGB: 2, StorageGB: 20, Price: 0.02, Images: images,
			CloudInit: true, Extras: map[string]any{"network_gbit": 1}, units: map[string]int{east: 12, west: 12}},
		{ID: "cpu.2", Name: "2 vCPU", Type: "DEDICATED", VCPUs: 2, MemoryGB: 4, StorageGB: 40, Price: 0.03, Images: images,
			CloudInit: true, units: map[string]int{west: 3}},
		{ID: "cpu.2-plain", Name: "2 vCPU, no cloud-init", Type: "DEDICATED", VCPUs: 2, MemoryGB: 4, StorageGB: 40, Price: 0.04,
			Images: images, units: map[string]int{east: 4}},
		{ID: "l4.1", Name: "1 x L4", Type: "DEDICATED", VCPUs: 8, MemoryGB: 32, StorageGB: 100, Price: 0.6, Images: images,
			CloudInit: true, GPUCount: 1, GPUType: "L4", GPUMemoryGB: 24, units: map[string]int{east: 2, west: 0}},
		{ID: "l4.1-spot", Name: "1 x L4, spot", Type: "SPOT", VCPUs: 8, MemoryGB: 32, StorageGB: 100, Price: 0.6, SpotPrice: 0.21,
			Images: images, CloudInit: true, GPUCount: 1, GPUType: "L4", GPUMemoryGB: 24, units: map[string]int{east: 1}},
		{ID: "h100.8", Name: "8 x H100", Type: "CLUSTER", VCPUs: 192, MemoryGB: 2048, StorageGB: 4000, Price: 18.4, Images: images,
			CloudInit: true, GPUCount: 8, GPUType: "H100", GPUMemoryGB: 80, Maintenance: true, units: map[string]int{west: 0}},
	}
}

func (s *server) findOffer(id string) *offer {
	for _, o := range s.offers {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// free counts the units of an offer that can be sold in a region.
func (s *server) free(o *offer, region string) int {
	n := o.units[region] - s.leaked[o.ID+region]
	for _, r := range s.state.Instances {
		if r.ConfigurationID == o.ID && r.Region == region && r.Status != "ERROR" && r.Status != "DESTROYED" {
			n--
		}
	}
	return n
}

func (o *offer) allRegions() []string {
	regions := []string{}
	for _, region := range []string{east, west} {
		if _, sold := o.units[region]; sold {
			regions = append(regions, region)
		}
	}
	return regions
}

// configurations lists every offer, deployable or not.
func (s *server) configurations(query url.Values) reply {
	kind := query.Get("instance_type")
	switch kind {
	case "", "SPOT", "DEDICATED", "BARE_METAL", "CLUSTER":
	default:
		return fail(400, "invalid_request", "instance_type must be SPOT, DEDICATED, BARE_METAL or CLUSTER")
	}
	list := []offer{}
	for _, o := range s.offers {
		shown := *o
		shown.Regions = o.allRegions()
		for _, region := range shown.Regions {
			shown.Available = shown.Available || s.free(o, region) > 0
		}
		if fault("sold-out-omitted") && !shown.Available {
			continue
		}
		if kind == "" || kind == o.Type || fault("type-filter-ignored") {
			list = append(list, shown)
		}
	}
	return s.offerList(list)
}

// availability lists what can be bought at this moment, with the regions in which it can be bought.
func (s *server) availability(query url.Values) reply {
	wanted := query.Get("region")
	if cached, ok := s.cachedAvailability[wanted]; ok && time.Since(cached.at) < time.Minute {
		return cached.reply
	}
	list := []offer{}
	for _, o := range s.offers {
		shown := *o
		shown.Available = true
		for _, region := range o.allRegions() {
			filtered := wanted != "" && wanted != region && !fault("region-filter-ignored")
			if s.free(o, region) > 0 && !filtered {
				shown.Regions = append(shown.Regions, region)
			}
		}
		if len(shown.Regions) > 0 {
			list = append(list, shown)
		}
	}
	answer := s.offerList(list)
	if fault("availability-cached") {
		s.cachedAvailability[wanted] = cachedReply{time.Now(), answer}
	}
	return answer
}

func (s *server) offerList(list []offer) reply {
	if form("shuffled") {
		rand.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	}
	return reply{200, map[string]any{"configurations": list}}
}
