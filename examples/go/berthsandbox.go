// Package berthsandbox lets tests of a client run against `berth sandbox`, with Go's standard library alone.
//
//	func TestLostAnswer(t *testing.T) {
//		t.Parallel()
//		sandbox := berthsandbox.ForTest(t, "--providers", "a")
//		client := newClient(sandbox.Provider("a"), sandbox.Sleep)
//		sandbox.Fault("answer-lost", berthsandbox.Options{"route": "POST /instances"})
//		client.Create(...)
//		sandbox.AssertJournal("never_created_twice", nil)
//	}
//
// README.md describes the environment variables.
package berthsandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options are the fields of a request of the control API, or of a filter of the journal.
type Options = map[string]any

// Access is where a server answers, and the key for it.
type Access struct {
	BaseURL string `json:"base_url"`
	APIKey  string `json:"api_key"`
}

// Sandbox is the sandbox of one test. A method fails the test if the sandbox refuses the request.
type Sandbox struct {
	t      testing.TB
	opened opened
}

type opened struct {
	ID      string
	Control Access
	Account struct {
		Providers   map[string]Access
		Marketplace *Access
	}
}

// ForTest opens a sandbox for a test, with its own clock, in the server that all tests of the process with these flags
// share. It is that of $BERTH_SANDBOX, or one that is started. All of the sandbox ends with the test; a fault that had to
// trigger and did not fails it.
func ForTest(t testing.TB, flags ...string) *Sandbox {
	t.Helper()
	if at := os.Getenv("BERTH_SANDBOX"); at != "" {
		return of(t, Access{strings.TrimRight(at, "/") + "/control", os.Getenv("BERTH_CONTROL_KEY")})
	}
	one, _ := shared.LoadOrStore(strings.Join(flags, "\x00"), &server{})
	server := one.(*server)
	server.once.Do(func() { server.at, server.stop, server.err = start(flags) })
	if server.err != nil {
		t.Fatal(server.err)
	}
	return of(t, server.at)
}

type server struct {
	once sync.Once
	at   Access
	// Also keeps the standard input of the sandbox from being collected, and so closed.
	stop func()
	err  error
}

// By their flags.
var shared sync.Map

// Starts `berth sandbox`. It stops at the end of its standard input, which also ends with this process.
func start(flags []string) (at Access, stop func(), err error) {
	command := strings.Fields(os.Getenv("BERTH"))
	if len(command) == 0 {
		command = []string{"npx", "berth"}
	}
	command = append(command, "sandbox", "--port", "0", "--json", "--stop-with-stdin", "--clock", "virtual")
	command = append(command, flags...)
	process := exec.Command(command[0], command[1:]...)
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	if err != nil {
		return
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return
	}
	if err = process.Start(); err != nil {
		return
	}
	stop = func() {
		stdin.Close()
		process.Wait()
	}
	for lines := bufio.NewReader(stdout); ; {
		line, end := lines.ReadString('\n')
		if strings.HasPrefix(line, `{"origin":`) {
			var ready struct{ Control Access }
			err = json.Unmarshal([]byte(line), &ready)
			return ready.Control, stop, err
		}
		if end != nil {
			stop()
			return at, stop, fmt.Errorf("`%s` ended before it was ready", strings.Join(command, " "))
		}
	}
}

func of(t testing.TB, server Access) *Sandbox {
	t.Helper()
	sandbox := &Sandbox{t: t}
	if err := server.send("POST", "/sandboxes", Options{}, &sandbox.opened); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var ended struct {
			Untriggered []struct {
				Fault   string
				Options json.RawMessage
				Seen    int
			}
		}
		if err := server.send("DELETE", "/sandboxes/"+sandbox.opened.ID, nil, &ended); err != nil {
			t.Error(err)
		}
		for _, fault := range ended.Untriggered {
			t.Errorf("The test armed a fault that never triggered (\"must_trigger\": false allows that): %s %s, after %d occasions",
				fault.Fault, fault.Options, fault.Seen)
		}
	})
	return sandbox
}

// Control sends a request to the control API (described at /control/openapi.json), such as ("POST", "/clock/freeze", nil, nil),
// and decodes the answer into reply.
func (sandbox *Sandbox) Control(method, path string, body, reply any) {
	sandbox.t.Helper()
	if err := sandbox.opened.Control.send(method, path, body, reply); err != nil {
		sandbox.t.Fatalf("%s %s: %v", method, path, err)
	}
}

func (at Access) send(method, path string, body, reply any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		data = nil
	}
	request, err := http.NewRequest(method, at.BaseURL+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+at.APIKey)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		var refused struct{ Error struct{ Message string } }
		if err := json.NewDecoder(answer.Body).Decode(&refused); err != nil {
			return err
		}
		return errors.New(refused.Error.Message)
	}
	if reply == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(reply)
}

// Provider returns the access of this test at a provider, such as `provider-a` or `a`.
func (sandbox *Sandbox) Provider(name string) Access {
	sandbox.t.Helper()
	for _, full := range []string{name, "provider-" + name} {
		if at, found := sandbox.opened.Account.Providers[full]; found {
			return at
		}
	}
	sandbox.t.Fatalf("the sandbox has no provider %s", name)
	return Access{}
}

// Marketplace returns the access of this test at the marketplace, with the flag `--marketplace`.
func (sandbox *Sandbox) Marketplace() Access {
	sandbox.t.Helper()
	if sandbox.opened.Account.Marketplace == nil {
		sandbox.t.Fatal("the sandbox has no marketplace: start it with the flag --marketplace")
	}
	return *sandbox.opened.Account.Marketplace
}

// Now returns the time of the sandbox.
func (sandbox *Sandbox) Now() time.Time {
	sandbox.t.Helper()
	var clock struct{ Now time.Time }
	sandbox.Control("GET", "/clock", nil, &clock)
	return clock.Now
}

// Sleep lets time pass in the sandbox. A client takes it for time.Sleep.
func (sandbox *Sandbox) Sleep(by time.Duration) {
	sandbox.t.Helper()
	sandbox.Control("POST", "/clock/advance", Options{"by": by.Milliseconds()}, nil)
}

// AdvanceUntilIdle lets time pass until no work is in progress.
func (sandbox *Sandbox) AdvanceUntilIdle() {
	sandbox.t.Helper()
	sandbox.Control("POST", "/clock/advance-until-idle", nil, nil)
}

// Fault is an armed fault.
type Fault struct {
	ID      string
	sandbox *Sandbox
}

// Fault arms a fault: Fault("http-500", Options{"route": "POST /instances", "times": 2}).
// docs/sandbox-faults.md lists all. It must trigger, unless it has a `probability` or `"must_trigger": false`.
func (sandbox *Sandbox) Fault(name string, options Options) *Fault {
	sandbox.t.Helper()
	_, isLeftToChance := options["probability"]
	arming := Options{"fault": name, "must_trigger": !isLeftToChance}
	fault := &Fault{sandbox: sandbox}
	sandbox.Control("POST", "/faults", merged(arming, options), fault)
	return fault
}

// Hits returns how often the fault has triggered.
func (fault *Fault) Hits() int {
	fault.sandbox.t.Helper()
	var list struct {
		Faults []struct {
			ID   string
			Hits int
		}
	}
	fault.sandbox.Control("GET", "/faults?all=true", nil, &list)
	for _, each := range list.Faults {
		if each.ID == fault.ID {
			return each.Hits
		}
	}
	return 0
}

// Transitions sets how transitions of machines and volumes end: Transitions("polls", Options{"polls": 3, "phase": "boot"}).
func (sandbox *Sandbox) Transitions(mode string, options Options) {
	sandbox.t.Helper()
	sandbox.Control("POST", "/transitions", merged(Options{"mode": mode}, options), nil)
}

// Journal returns the requests of the client, with their answers: Journal(Options{"operation": "createInstance"}).
func (sandbox *Sandbox) Journal(where Options) []Options {
	sandbox.t.Helper()
	query := url.Values{}
	for name, value := range where {
		query.Set(name, fmt.Sprint(value))
	}
	var journal struct{ Entries []Options }
	sandbox.Control("GET", "/journal?"+query.Encode(), nil, &journal)
	return journal.Entries
}

// AssertJournal asserts something of the requests of the client, and fails the test otherwise:
// AssertJournal("requests", Options{"where": Options{"method": "DELETE"}, "exactly": 1}). The control API's
// POST /journal/assertions describes all assertions.
func (sandbox *Sandbox) AssertJournal(assertion string, options Options) {
	sandbox.t.Helper()
	asked := merged(options, Options{"assert": assertion})
	var reply struct {
		Results []struct {
			Holds   bool
			Message string
		}
	}
	sandbox.Control("POST", "/journal/assertions", Options{"assertions": []Options{asked}}, &reply)
	for _, result := range reply.Results {
		if !result.Holds {
			sandbox.t.Errorf("%s: %s", assertion, result.Message)
		}
	}
}

// AssertVerdict asserts that the client obeys every rule of the verdict, but for accepted ones such as "sends-region".
func (sandbox *Sandbox) AssertVerdict(accepted ...string) {
	sandbox.t.Helper()
	var verdict struct {
		Rules []struct {
			Rule, Result string
			Findings     []struct{ Message string }
		}
	}
	sandbox.Control("GET", "/verdict", nil, &verdict)
	var failed []string
	wasTested := false
	for _, rule := range verdict.Rules {
		wasTested = wasTested || rule.Result != "not_tested"
		if strings.Contains(" "+strings.Join(accepted, " ")+" ", " "+rule.Rule+" ") {
			continue
		}
		for _, finding := range rule.Findings {
			if rule.Result == "fail" {
				failed = append(failed, fmt.Sprintf("  %s: %s", rule.Rule, finding.Message))
			}
		}
	}
	if !wasTested {
		failed = []string{"  no rule was tested"}
	}
	if failed == nil {
		return
	}
	sandbox.t.Errorf("The client fails the verdict:\n%s", strings.Join(failed, "\n"))
}

// The later options win.
func merged(all ...Options) Options {
	result := Options{}
	for _, options := range all {
		for name, value := range options {
			result[name] = value
		}
	}
	return result
}
