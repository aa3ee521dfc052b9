package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// server holds the records of the provider; `mu` guards all of them.
type server struct {
	mu     sync.Mutex
	folder string
	offers []*offer
	state  state
	keys   map[string]string // from key to account
	tokens map[string]token

	leaked             map[string]int
	cachedAvailability map[string]cachedReply
	cachedPages        map[string]cachedReply
	recent             []time.Time
	requests           int
}

// state is what outlives a restart.
type state struct {
	Instances []*record
	Volumes   []*volume
	Machines  int
	LastKeys  []string
}

type token struct {
	account string
	until   time.Time
}

type reply struct {
	status int
	body   any
}

type cachedReply struct {
	at    time.Time
	reply reply
}

func fail(status int, code, message string) reply {
	return reply{status, map[string]any{"error": map[string]any{"code": code, "message": message}}}
}

func newServer(folder string) *server {
	s := &server{
		folder:             folder,
		keys:               map[string]string{},
		tokens:             map[string]token{},
		leaked:             map[string]int{},
		cachedAvailability: map[string]cachedReply{},
		cachedPages:        map[string]cachedReply{},
	}
	for variable, account := range map[string]string{"PROVIDER_API_KEY": "marketplace", "PROVIDER_OTHER_API_KEY": "other"} {
		for _, key := range strings.Split(os.Getenv(variable), ",") {
			if key != "" {
				s.keys[key] = account
			}
		}
	}
	if form("odd-regions") {
		datacenters = map[string]string{"US_CA.2-b": datacenters[west], "Zuerich1": datacenters[east]}
		east, west = "Zuerich1", "US_CA.2-b"
	}
	s.offers = catalog()
	os.MkdirAll(filepath.Join(folder, "volumes"), 0o755)
	return s
}

func (s *server) save() {
	text, err := json.Marshal(s.state)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.folder, "state.new"), text, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(s.folder, "state.new"), filepath.Join(s.folder, "state.json"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the records cannot be saved:", err)
	}
}

// resume reads the records of an earlier process, and continues what it had begun.
func (s *server) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := os.ReadFile(filepath.Join(s.folder, "state.json"))
	if err != nil {
		return
	}
	if err := json.Unmarshal(text, &s.state); err != nil {
		fmt.Fprintln(os.Stderr, "state.json:", err)
		os.Exit(1)
	}
	if fault("restart-forgets") {
		s.state.Instances = nil
	}
	for _, r := range s.state.Instances {
		s.work(r)
	}
	for _, v := range s.state.Volumes {
		go s.settle(v)
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := randomHex(6)
	w.Header().Set("X-Request-Id", id)
	answer := s.answer(r)
	if os.Getenv("FOREIGN_LOG") != "" {
		text, _ := json.Marshal(answer.body)
		fmt.Fprintf(os.Stderr, "%s %s %s %d %.300s\n", id, r.Method, r.URL, answer.status, text)
	}
	if page, isPage := answer.body.(string); isPage {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(answer.status)
		io.WriteString(w, page)
		return
	}
	if answer.body == nil {
		w.WriteHeader(answer.status)
		return
	}
	text := encode(answer.body)
	if answer.status == 401 {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if answer.status == 429 {
		w.Header().Set("Retry-After", "1")
	}
	if !form("chunked") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.status)
		w.Write(text)
		return
	}
	w.Header()["content-type"] = []string{"application/json; charset=utf-8"}
	w.WriteHeader(answer.status)
	for len(text) > 0 {
		n := 1 + mathrand.Intn(len(text))
		w.Write(text[:n])
		text = text[n:]
		w.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *server) answer(r *http.Request) reply {
	path := r.URL.EscapedPath()
	if !strings.HasPrefix(path, "/v1/") {
		return fail(404, "not_found", "the base path is /v1")
	}
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	for i := range parts {
		part, err := url.PathUnescape(parts[i])
		if err != nil {
			return fail(400, "invalid_request", "the path is not encoded correctly")
		}
		parts[i] = part
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<20))
	if err != nil {
		return fail(400, "invalid_request", "the body is longer than 1 MiB, or incomplete")
	}
	if len(parts) == 2 && parts[0] == "auth" && parts[1] == "token" && r.Method == "POST" {
		return s.issueToken(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if page, ok := s.cachedPages[r.URL.String()]; ok && fault("cdn-cache") && r.Method == "GET" && time.Since(page.at) < 5*time.Second {
		return page.reply
	}
	account := s.account(r)
	if account == "" {
		return fail(401, "unauthorized", "send Authorization: Bearer <API_KEY> with a valid key")
	}
	if s.tooFast() {
		return fail(429, "rate_limited", "more than 5 requests in a second; try again in a second")
	}
	answer := s.route(r.Method, parts, r.URL.Query(), body, account)
	if fault("cdn-cache") && answer.status == 200 {
		s.cachedPages[r.URL.String()] = cachedReply{time.Now(), answer}
	}
	return answer
}

// tooFast limits the API to 5 requests in a second, in the form `rate-limit`.
func (s *server) tooFast() bool {
	now := time.Now()
	for len(s.recent) > 0 && now.Sub(s.recent[0]) > time.Second {
		s.recent = s.recent[1:]
	}
	if !form("rate-limit") {
		return false
	}
	if len(s.recent) >= 5 {
		return true
	}
	s.recent = append(s.recent, now)
	return false
}

func (s *server) route(method string, parts []string, query url.Values, body []byte, account string) reply {
	resource, id, verb := parts[0], "", ""
	if len(parts) > 1 {
		id = parts[1]
	}
	if len(parts) > 2 {
		verb = parts[2]
	}
	noStorage := form("no-storage") && resource == "volumes"
	if len(parts) > 3 || noStorage || len(parts) > 1 && parts[len(parts)-1] == "" {
		return fail(404, "not_found", "no such endpoint")
	}
	switch {
	case resource == "configurations" && len(parts) == 1:
		return only("GET", method, func() reply { return s.configurations(query) })
	case resource == "availability" && len(parts) == 1:
		return only("GET", method, func() reply { return s.availability(query) })
	case resource == "instances" && len(parts) == 1 && method == "GET":
		return s.listInstances(query, account)
	case resource == "instances" && len(parts) == 1:
		return only("POST", method, func() reply { return s.createInstance(body, account) })
	case resource == "instances" && (verb == "" || verb == "start" || verb == "stop"):
		return s.instanceRoute(method, id, verb, query, account)
	case resource == "volumes" && len(parts) == 1:
		return only("POST", method, func() reply { return s.createVolume(body, account) })
	case resource == "volumes" && id == "locations" && verb == "":
		return only("GET", method, s.locations)
	case resource == "volumes" && (verb == "" || verb == "attach" || verb == "detach"):
		return s.volumeRoute(method, id, verb, body, account)
	}
	return fail(404, "not_found", "no such endpoint")
}

func only(allowed, method string, do func() reply) reply {
	if method != allowed {
		return fail(405, "method_not_allowed", "this endpoint answers "+allowed)
	}
	return do()
}

// account is the account of the bearer credential of a request, or empty.
func (s *server) account(r *http.Request) string {
	fields := strings.Fields(r.Header.Get("Authorization"))
	if len(fields) != 2 || !strings.EqualFold(fields[0], "bearer") {
		return ""
	}
	if t, ok := s.tokens[fields[1]]; ok && time.Now().Before(t.until) {
		return t.account
	}
	if form("tokens-only") {
		return ""
	}
	return s.accountOfKey(fields[1])
}

func (s *server) accountOfKey(given string) string {
	found := ""
	for key, account := range s.keys {
		if fault("auth-prefix") && len(given) >= 6 && len(key) >= 6 {
			given, key = given[:6], key[:6]
		}
		if subtle.ConstantTimeCompare([]byte(key), []byte(given)) == 1 {
			found = account
		}
	}
	return found
}

func (s *server) issueToken(body []byte) reply {
	var in struct {
		APIKey   string `json:"api_key"`
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return fail(400, "invalid_request", "the body must be an object of texts: "+err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	account := s.accountOfKey(in.APIKey)
	user, password := os.Getenv("PROVIDER_USERNAME"), os.Getenv("PROVIDER_PASSWORD")
	if account == "" && password != "" && in.Username == user && in.Password == password {
		account = "marketplace"
	}
	if account == "" {
		return fail(401, "unauthorized", "the credentials are wrong")
	}
	seconds := 3600
	if form("tokens-only") {
		seconds = 20
	}
	text := randomHex(24)
	s.tokens[text] = token{account, time.Now().Add(time.Duration(seconds) * time.Second)}
	answer := map[string]any{"access_token": text, "token_type": "Bearer"}
	if !fault("token-without-expiry") {
		answer["expires_in"] = seconds
	}
	return reply{200, answer}
}

func randomHex(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic(err)
	}
	return hex.EncodeToString(b)
}

// newID makes an id of an instance or a volume.
func newID(prefix string) string {
	switch {
	case form("integer-ids"):
		return fmt.Sprint(9007199254740993 + mathrand.Int63n(1<<60))
	case form("odd-ids"):
		return fmt.Sprintf("%s:%s~A.b=%d@%s", prefix, randomHex(3), time.Now().Unix(), "hel")
	}
	return prefix + "-" + randomHex(5)
}

func timestamp() string {
	now := time.Now()
	switch {
	case fault("local-time"):
		return now.In(time.FixedZone("", 7200)).Format("2006-01-02T15:04:05")
	case form("odd-timestamps"):
		return now.UTC().Format("2006-01-02T15:04:05.0000000") + "+00:00"
	}
	return now.UTC().Format("2006-01-02T15:04:05Z")
}

// validKey says whether a text is one line of OpenSSH public key material.
func validKey(text string) bool {
	fields := strings.Fields(text)
	if len(fields) < 2 || strings.ContainsAny(strings.TrimSpace(text), "\r\n") {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(raw) < 4 || len(raw) < 4+int(raw[3]) {
		return false
	}
	return string(raw[4:4+int(raw[3])]) == fields[0]
}
