package main

import (
	"encoding/json"
	"fmt"
	"log"
	"strings"
)

var (
	instanceOptional = []string{"name", "private_ip", "ssh_port", "ssh_username", "port_forwards", "vcpus", "memory_gb", "storage_gb",
		"gpu_count", "gpu_type", "image", "price_per_hour", "error", "public_ip"}
	offerOptional = []string{"description", "gpu_count", "gpu_type", "gpu_memory_gb", "spot_price_per_hour", "os_options",
		"maintenance", "extras"}
	volumeOptional = []string{"type", "attached_instance_ids", "price_per_hour", "created_at"}

	// needed are the optional fields without which a client cannot log in.
	needed = []string{"public_ip", "ssh_port", "ssh_username", "port_forwards", "error", "spot_price_per_hour"}
)

// show is an instance as the API answers it, with the faults and the forms of its fields.
func (s *server) show(i instance) any {
	fields := asMap(i)
	dynamic := s.findOffer(i.ConfigurationID).Type == "SPOT"
	if fault("price-per-month") {
		fields["price_per_hour"] = i.Price * 730
	}
	if fault("price-drift") && i.Status != "PROVISIONING" {
		fields["price_per_hour"] = i.Price * 1.25
	}
	if fault("memory-mib") {
		fields["memory_gb"] = i.MemoryGB * 1024
	}
	if fault("datacenter-code") && i.Status != "PROVISIONING" {
		fields["region"] = datacenters[i.Region]
	}
	if fault("null-required") && i.Status == "PROVISIONING" {
		fields["updated_at"] = nil
	}
	if form("minimal") && dynamic {
		delete(fields, "name")
		return fields
	}
	return present(fields, instanceOptional)
}

func asMap(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	return fields
}

// present applies the forms that change which fields a resource has.
func present(fields map[string]any, optional []string) map[string]any {
	for _, name := range optional {
		if form("minimal") && !contains(needed, name) {
			delete(fields, name)
		}
		if _, there := fields[name]; !there && form("null-optionals") {
			fields[name] = nil
		}
	}
	if form("extra-fields") {
		fields["x_rack"] = map[string]any{"row": 7, "unit": nil}
		fields["tags"] = []any{}
		fields["href"] = "https://cloud.example/" + fmt.Sprint(fields["id"])
	}
	return fields
}

// encode writes the JSON of an answer.
func encode(body any) []byte {
	if top, isMap := body.(map[string]any); isMap {
		if offers, ok := top["configurations"].([]offer); ok {
			list := []any{}
			for _, o := range offers {
				list = append(list, present(asMap(o), offerOptional))
			}
			body = present(map[string]any{"configurations": list}, nil)
		}
	}
	text, err := json.Marshal(body)
	if form("chunked") && err == nil {
		text, err = json.MarshalIndent(body, "", "    ")
	}
	if err != nil {
		panic(err)
	}
	if form("decimal-numbers") {
		for _, name := range []string{"vcpus", "gpu_count", "memory_gb", "storage_gb", "ssh_port"} {
			text = decimal(text, `"`+name+`":`)
		}
	}
	return text
}

// decimal writes ".0" behind the whole numbers of a field.
func decimal(text []byte, name string) []byte {
	pieces := strings.Split(string(text), name)
	for i := 1; i < len(pieces); i++ {
		end := strings.IndexAny(pieces[i], ",}")
		if number := pieces[i][:end]; !strings.ContainsAny(number, ".en") {
			pieces[i] = number + ".0" + pieces[i][end:]
		}
	}
	return []byte(strings.Join(pieces, name))
}

var faultNames = strings.Fields(`
	sold-out-omitted availability-cached capacity-leaked region-filter-ignored type-filter-ignored
	memory-mib datacenter-code price-per-month price-drift local-time null-required
	auth-prefix cdn-cache other-account token-without-expiry missing-as-200 missing-as-page
	create-waits oversold sold-out-error name-conflict second-key-ignored neighbour-key cloud-init-4k permissions-ignored runcmd-every-boot
	runcmd-stops image-ignored
	online-early never-online dies-quietly stale-worker back-to-provisioning list-lags restart-forgets
	stop-always-200 stop-is-fake stop-via-offline raw-status disk-rollback disk-partly new-host-key keys-lost-on-start start-destroys
	delete-undone delete-twice machine-leaked
	volume-dies volume-deleted-attached attach-twice detached-early volumes-lost-on-start location-code`)

var formNames = strings.Fields(`
	nat-port port-forwards ipv6 other-user slow-boot late-cloud-init
	minimal null-optionals extra-fields decimal-numbers odd-regions integer-ids odd-ids odd-timestamps shuffled chunked
	busy cannot-resume instant-stop start-provisioning new-ip reaped
	delete-completes tombstone slow-delete regional-ids
	no-inline-volumes attach-cycles slow-volumes no-storage
	tokens-only rate-limit https bare-metal`)

func checkNames() {
	if *faultFlag != "" && !contains(faultNames, *faultFlag) {
		log.Fatalf("no such fault: %s", *faultFlag)
	}
	for _, f := range strings.Split(*formFlag, ",") {
		if f != "" && !contains(formNames, f) {
			log.Fatalf("no such form: %s", f)
		}
	}
}
