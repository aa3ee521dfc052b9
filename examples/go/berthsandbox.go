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

// Sandbox is what one test sees of a sandbox. Its faults and assertions concern the account of this test only. A method
// fails the test if the sandbox refuses the request.
type Sandbox struct {
	// Account is the name of this test's account.
	Account string
	t       testing.TB
	at      Access
	account account
}

type account struct {
	Name        string            `json:"name"`
	Providers   map[string]Access `json:"providers"`
	Marketplace *Access           `json:"marketplace"`
}

// ForTest gives a test an account in the sandbox that all tests of the process with these flags share. It is that of
// $BERTH_SANDBOX, or one that is started. What the test arms and creates ends with it; a fault that had to strike and did
// not fails it.
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

// Own starts a sandbox for this test only, with its own clock.
func Own(t testing.TB, flags ...string) *Sandbox {
	t.Helper()
	at, stop, err := start(flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return of(t, at)
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

func of(t testing.TB, at Access) *Sandbox {
	t.Helper()
	sandbox := &Sandbox{t: t, at: at}
	sandbox.Control("POST", "/accounts", Options{}, &sandbox.account)
	sandbox.Account = sandbox.account.Name
	t.Cleanup(func() {
		var ended struct {
			Unstruck []struct {
				Fault   string
				Options json.RawMessage
				Seen    int
			}
		}
		sandbox.Control("DELETE", "/accounts/"+url.PathEscape(sandbox.Account), nil, &ended)
		for _, fault := range ended.Unstruck {
			t.Errorf("The test armed a fault that never struck (\"must_strike\": false allows that): %s %s, after %d occasions",
				fault.Fault, fault.Options, fault.Seen)
		}
	})
	return sandbox
}

// Control sends a request to the control API (described at /control/openapi.json), such as ("POST", "/clock/freeze", nil, nil),
// and decodes the answer into reply.
func (sandbox *Sandbox) Control(method, path string, body, reply any) {
	sandbox.t.Helper()
	if err := sandbox.at.send(method, path, body, reply); err != nil {
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
		if at, found := sandbox.account.Providers[full]; found {
			return at
		}
	}
	sandbox.t.Fatalf("the sandbox has no provider %s", name)
	return Access{}
}

// Marketplace returns the access of this test at the marketplace, with the flag `--marketplace`.
func (sandbox *Sandbox) Marketplace() Access {
	sandbox.t.Helper()
	if sandbox.account.Marketplace == nil {
		sandbox.t.Fatal("the sandbox has no marketplace: start it with the flag --marketplace")
	}
	return *sandbox.account.Marketplace
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

// Fault arms a fault for this account: Fault("http-500", Options{"route": "POST /instances", "times": 2}).
// docs/sandbox-faults.md lists all. It must strike, unless it has a `probability` or `"must_strike": false`.
func (sandbox *Sandbox) Fault(name string, options Options) *Fault {
	sandbox.t.Helper()
	_, isLeftToChance := options["probability"]
	arming := Options{"fault": name, "must_strike": !isLeftToChance}
	fault := &Fault{sandbox: sandbox}
	sandbox.Control("POST", "/faults", sandbox.ofAccount(arming, options), fault)
	return fault
}

// Hits returns how often the fault has struck.
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

// Transitions sets how transitions of this account's machines end: Transitions("polls", Options{"polls": 3, "phase": "boot"}).
func (sandbox *Sandbox) Transitions(mode string, options Options) {
	sandbox.t.Helper()
	sandbox.Control("POST", "/transitions", sandbox.ofAccount(Options{"mode": mode}, options), nil)
}

// Journal returns the requests of this account, with their answers: Journal(Options{"operation": "createInstance"}).
func (sandbox *Sandbox) Journal(where Options) []Options {
	sandbox.t.Helper()
	query := url.Values{}
	for name, value := range sandbox.ofAccount(where) {
		query.Set(name, fmt.Sprint(value))
	}
	var journal struct{ Entries []Options }
	sandbox.Control("GET", "/journal?"+query.Encode(), nil, &journal)
	return journal.Entries
}

// AssertJournal asserts something of the requests of this account, and fails the test otherwise:
// AssertJournal("requests", Options{"where": Options{"method": "DELETE"}, "exactly": 1}). The control API's
// POST /journal/assertions describes all assertions.
func (sandbox *Sandbox) AssertJournal(assertion string, options Options) {
	sandbox.t.Helper()
	asked := merged(options, Options{"assert": assertion})
	if filters, found := options["filters"].([]Options); found {
		own := []Options{}
		for _, filter := range filters {
			own = append(own, sandbox.ofAccount(filter))
		}
		asked["filters"] = own
	} else {
		where, _ := options["where"].(Options)
		asked["where"] = sandbox.ofAccount(where)
	}
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

// AssertVerdict asserts that the client obeys every rule of the verdict, but for accepted failures, such as
// Options{"rule": "sends-region", "reason": "one region only"}.
func (sandbox *Sandbox) AssertVerdict(accepted ...Options) {
	sandbox.t.Helper()
	var verdict struct {
		Holds bool
		Rules []struct {
			Rule, Result string
			Findings     []struct{ Message string }
		}
	}
	asked := Options{"baseline": Options{"accepted": append([]Options{}, accepted...)}}
	sandbox.Control("POST", "/verdict", sandbox.ofAccount(asked), &verdict)
	if verdict.Holds {
		return
	}
	var failed []string
	for _, rule := range verdict.Rules {
		for _, finding := range rule.Findings {
			if rule.Result == "fail" {
				failed = append(failed, fmt.Sprintf("  %s: %s", rule.Rule, finding.Message))
			}
		}
	}
	if failed == nil {
		failed = []string{"  no rule was tested"}
	}
	sandbox.t.Errorf("The client fails the verdict:\n%s", strings.Join(failed, "\n"))
}

func (sandbox *Sandbox) ofAccount(options ...Options) Options {
	return merged(append(options, Options{"account": sandbox.Account})...)
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
