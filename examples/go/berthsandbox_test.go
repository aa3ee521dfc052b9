package berthsandbox_test

import (
	"testing"
	"time"

	"example.com/berthsandbox"
)

type options = berthsandbox.Options

const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK training"

var flags = []string{"--providers", "d", "--timing", "boot=50s-90s"}

// The client with the key of this test's sandbox. It pauses in the time of the sandbox.
func clientOf(sandbox *berthsandbox.Sandbox) client {
	at := sandbox.Provider("d")
	return client{baseURL: at.BaseURL, apiKey: at.APIKey, sleep: sandbox.Sleep}
}

func rent(t *testing.T, c client, name string) machine {
	t.Helper()
	list, err := c.offers()
	if err != nil {
		t.Fatal(err)
	}
	offer := list.Configurations[0]
	made, err := c.create(order{offer.ID, offer.Regions[0], name, []string{sshKey}}, name)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func expectStatus(t *testing.T, c client, of machine, wanted string) {
	t.Helper()
	if read, err := c.waitUntilOnline(of); err != nil || read.Status != wanted {
		t.Fatalf("expected %s, got %q: %v", wanted, read.Status, err)
	}
}

func TestParallelTestsSeeOnlyTheirOwnMachines(t *testing.T) {
	for _, name := range []string{"first", "second", "third", "fourth"} {
		name := name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(berthsandbox.ForTest(t, flags...))
			own := rent(t, c, name)
			expectStatus(t, c, own, "ONLINE")
			list, err := c.machines()
			if err != nil || len(list.Instances) != 1 || list.Instances[0].ID != own.ID {
				t.Fatalf("expected %s alone, got %v: %v", own.ID, list.Instances, err)
			}
		})
	}
}

func TestWaitsForABootInTheTimeOfTheSandbox(t *testing.T) {
	t.Parallel()
	sandbox := berthsandbox.ForTest(t, flags...)
	c := clientOf(sandbox)
	began := sandbox.Now()
	expectStatus(t, c, rent(t, c, "first"), "ONLINE")
	if passed := sandbox.Now().Sub(began); passed < 50*time.Second {
		t.Errorf("a boot takes 50 s, and %s passed", passed)
	}
}

func TestRentsOneMachineAlthoughTheCreateMeets(t *testing.T) {
	for _, fault := range []string{"answer-lost", "request-lost", "http-429", "http-504", "truncated-json"} {
		fault := fault
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			sandbox := berthsandbox.ForTest(t, flags...)
			c := clientOf(sandbox)
			armed := sandbox.Fault(fault, options{"route": "POST /instances", "times": 2})
			own := rent(t, c, fault)
			if hits := armed.Hits(); hits != 2 {
				t.Errorf("expected 2 hits, got %d", hits)
			}
			expectStatus(t, c, own, "ONLINE")
			sandbox.AssertJournal("never_created_twice", nil)
		})
	}
}

func TestKeepsItsMachineAlthoughAPollMeets(t *testing.T) {
	for _, fault := range []string{"false-404", "http-500", "html-page", "half-body-reset", "unknown-status"} {
		fault := fault
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			sandbox := berthsandbox.ForTest(t, flags...)
			c := clientOf(sandbox)
			own := rent(t, c, fault)
			sandbox.Fault(fault, options{"instance": own.ID})
			expectStatus(t, c, own, "ONLINE")
		})
	}
}

func TestGivesUpAMachineWhoseBootFails(t *testing.T) {
	t.Parallel()
	sandbox := berthsandbox.ForTest(t, flags...)
	sandbox.Fault("boot-fails", nil)
	c := clientOf(sandbox)
	expectStatus(t, c, rent(t, c, "failing"), "ERROR")
}

func TestPollsInTimeLeavesNothingAndObeysTheContract(t *testing.T) {
	t.Parallel()
	sandbox := berthsandbox.ForTest(t, flags...)
	c := clientOf(sandbox)
	sandbox.Fault("http-503", options{"route": "GET /instances/{id}"})
	own := rent(t, c, "whole-life")
	expectStatus(t, c, own, "ONLINE")
	if err := c.destroy(own); err != nil {
		t.Fatal(err)
	}
	sandbox.AssertJournal("polled_at_least_every", options{"seconds": 30})
	sandbox.AssertJournal("all_destroyed", nil)
	sandbox.AssertJournal("requests", options{"where": options{"method": "DELETE"}, "exactly": 1})
	sandbox.AssertVerdict()
}

func TestAClientWithoutAnIdempotencyKeyRentsTwo(t *testing.T) {
	t.Parallel()
	sandbox := berthsandbox.ForTest(t, flags...)
	sandbox.Fault("answer-lost", options{"route": "POST /instances"})
	c := clientOf(sandbox)
	c.omitKey = true
	rent(t, c, "twice")
	if made := sandbox.Journal(options{"operation": "createInstance"}); len(made) != 2 {
		t.Errorf("expected two creates, got %v", made)
	}
	list, err := c.machines()
	if err != nil || len(list.Instances) != 2 {
		t.Errorf("expected two machines, got %v: %v", list.Instances, err)
	}
}
