package berthsandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The client under test: rents a machine, waits until it is ONLINE, and destroys it.

const (
	pollEvery = 15 * time.Second
	attempts  = 5
	// After so many answers 404 in a row a machine counts as gone: one of them may be wrong.
	misses404 = 2
)

// The answer says nothing of the machine: the client asks again.
var errNoAnswer = errors.New("no answer")

type refused int

func (status refused) Error() string { return fmt.Sprintf("the provider refuses: %d", int(status)) }

type client struct {
	baseURL, apiKey string
	sleep           func(time.Duration)
	// Without one, each create is another.
	omitKey bool
}

type machine struct {
	ID     string `json:"id"`
	Region string `json:"region"`
	Status string `json:"status"`
}

type order struct {
	Configuration string   `json:"configuration_id"`
	Region        string   `json:"region"`
	Name          string   `json:"name"`
	SSHKeys       []string `json:"ssh_keys"`
}

func (c client) offers() (list struct {
	Configurations []struct {
		ID      string
		Regions []string
	}
}, err error) {
	err = c.repeat("GET", "/availability", nil, "", &list)
	return
}

func (c client) machines() (list struct{ Instances []machine }, err error) {
	err = c.repeat("GET", "/instances", nil, "", &list)
	return
}

// With the same key a provider makes one machine, however often it is asked.
func (c client) create(wanted order, key string) (made machine, err error) {
	if c.omitKey {
		key = ""
	}
	err = c.repeat("POST", "/instances", wanted, key, &made)
	return
}

// Returns the machine once it is ONLINE or ERROR. An empty status: it is gone.
func (c client) waitUntilOnline(of machine) (machine, error) {
	return c.poll(of, func(status string) bool { return status == "ONLINE" || status == "ERROR" })
}

// Returns once the machine is gone.
func (c client) destroy(of machine) error {
	err := c.repeat("DELETE", pathOf(of), nil, "", nil)
	if err == refused(404) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = c.poll(of, func(string) bool { return false })
	return err
}

func (c client) poll(of machine, isEnd func(status string) bool) (machine, error) {
	for misses := 0; misses < misses404; {
		c.sleep(pollEvery)
		var read machine
		err := c.ask("GET", pathOf(of), nil, "", &read)
		switch {
		case err == refused(404):
			misses++
		case errors.Is(err, errNoAnswer):
		case err != nil:
			return read, err
		case isEnd(read.Status):
			return read, nil
		default:
			misses = 0
		}
	}
	return machine{}, nil
}

func (c client) repeat(method, path string, body any, key string, reply any) error {
	for attempt := 1; ; attempt++ {
		err := c.ask(method, path, body, key, reply)
		if attempt == attempts || !errors.Is(err, errNoAnswer) {
			return err
		}
		c.sleep(time.Second << attempt)
	}
}

func (c client) ask(method, path string, body any, key string, reply any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, c.baseURL+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	if body == nil {
		request.Body, request.ContentLength = nil, 0
	}
	request.Header.Set("Authorization", "Bearer "+c.apiKey)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %v", errNoAnswer, err)
	}
	defer answer.Body.Close()
	if wait, _ := strconv.Atoi(answer.Header.Get("Retry-After")); wait > 0 {
		c.sleep(time.Duration(wait) * time.Second)
	}
	if answer.StatusCode == 429 || answer.StatusCode >= 500 {
		return fmt.Errorf("%w: it answers %d", errNoAnswer, answer.StatusCode)
	}
	if answer.StatusCode >= 400 {
		return refused(answer.StatusCode)
	}
	if reply == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(reply); err != nil {
		return fmt.Errorf("%w: %v", errNoAnswer, err)
	}
	return nil
}

func pathOf(of machine) string {
	return "/instances/" + url.PathEscape(of.ID) + "?region=" + url.QueryEscape(of.Region)
}
