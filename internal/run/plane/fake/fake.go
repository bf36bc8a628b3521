// Package fake is a double of the control plane that runners speak to, for tests: it
// holds runs, checks what runners send as strictly as the real one, and can lose
// answers, be busy or be restarted.
//
//	p := fake.New(key)
//	srv := httptest.NewServer(p)
//	p.Order(contract, secrets)
//	... a runner claims it ...
//	bundle := p.Bundle(runID)
package fake

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"egressd/internal/run/receipt"
	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

// EnrollToken is the one that the double accepts.
const EnrollToken = "enroll-me"

// Plane is the double. Safe for concurrent use.
type Plane struct {
	// Fault is asked about every request; nil: all is well.
	Fault func(method, path string) Fault

	key format.Key

	mu      sync.Mutex
	blobs   map[string][]byte
	runners map[string]runner // by token
	runs    map[string]*run
	queue   []string
	changed chan struct{} // closed at the next change
}

// Changed is closed when something has changed since it was asked for.
func (p *Plane) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Fault is what goes wrong with a request.
type Fault int

// Faults.
const (
	None Fault = iota
	Lost       // it is done, and the answer does not arrive
	Dead       // it is not done, and there is no answer
	Busy       // it is not done: 503
)

type runner struct{ id, pool, pem string }

// run is one run. Its status is that of the plane's documents.
type run struct {
	contract format.Contract
	secrets  map[string]string
	status   string
	token    string
	spent    bool
	by       runner
	events   []chain.Entry
	receipt  *format.Receipt
}

// New is a plane without runs. key signs contracts and receipts.
func New(key format.Key) *Plane {
	return &Plane{key: key, blobs: map[string][]byte{}, runners: map[string]runner{}, runs: map[string]*run{}, changed: make(chan struct{})}
}

// Order queues a signed contract with the values of its secrets.
func (p *Plane) Order(c format.Contract, secrets map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[c.RunID] = &run{contract: c, secrets: secrets, status: "created"}
	p.queue = append(p.queue, c.RunID)
}

// Blob stores content for contracts to name.
func (p *Plane) Blob(data []byte) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	hash := canonical.Sum(data)
	p.blobs[hash] = data
	return hash
}

// Content is a blob; nil: it is not there.
func (p *Plane) Content(hash string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blobs[hash]
}

// Spent reports whether a receipt of the run was sent, good or not.
func (p *Plane) Spent(runID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[runID].spent
}

// Status reports what became of a run.
func (p *Plane) Status(runID string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[runID].status
}

// Cancel ends a run, as a person does.
func (p *Plane) Cancel(runID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[runID].status = format.StatusCancelled
}

// Bundle is what a reader of a run gets, as text; nil while it has no receipt.
func (p *Plane) Bundle(runID string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[runID]
	if r.receipt == nil {
		return nil, nil
	}
	return canonical.Marshal(format.Bundle{
		Version: format.VersionBundle, Contract: r.contract, Receipt: *r.receipt, Events: r.events,
		Keys: format.Keys{Plane: p.key.PublicPEM(), Runner: r.by.pem},
	})
}

// ServeHTTP implements [http.Handler].
func (p *Plane) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	fault := None
	if p.Fault != nil {
		fault = p.Fault(req.Method, req.URL.Path)
	}
	switch fault {
	case Dead:
		panic(http.ErrAbortHandler)
	case Busy:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, 64<<20))
	if err != nil {
		return
	}
	status, answer := p.serve(req, body)
	if fault == Lost {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	switch v := answer.(type) {
	case []byte:
		_, _ = w.Write(v)
	case string:
		_ = json.NewEncoder(w).Encode(map[string]string{"error": v})
	default:
		_ = json.NewEncoder(w).Encode(v)
	}
}

func (p *Plane) serve(req *http.Request, body []byte) (int, any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		close(p.changed)
		p.changed = make(chan struct{})
	}()
	path := req.URL.Path
	hash, isBlob := strings.CutPrefix(path, "/v1/blobs/")
	rest, isRun := strings.CutPrefix(path, "/v1/runs/")
	id, verb, _ := strings.Cut(rest, "/")
	switch {
	case req.Method == http.MethodGet && isBlob:
		if data, ok := p.blobs[hash]; ok {
			return http.StatusOK, data
		}
		return http.StatusNotFound, "no such blob"
	case req.Method != http.MethodPost:
		return http.StatusNotFound, "not found"
	case path == "/v1/runners/enroll":
		return p.enroll(body)
	case path == "/v1/claims":
		return p.claim(body)
	case path == "/v1/blobs":
		if !p.knows(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")) {
			return http.StatusUnauthorized, "who are you"
		}
		hash := canonical.Sum(body)
		p.blobs[hash] = bytes.Clone(body)
		return http.StatusOK, map[string]string{"hash": hash}
	case isRun && verb == "events":
		return p.events(id, body)
	case isRun && verb == "complete":
		return p.complete(req.Context(), id, body)
	}
	return http.StatusNotFound, "not found"
}

func (p *Plane) knows(token string) bool {
	for _, r := range p.runs {
		if r.token != "" && r.token == token {
			return true
		}
	}
	return false
}

func (p *Plane) enroll(body []byte) (int, any) {
	var in struct{ EnrollToken, PublicKeyPem, Pool string }
	if json.Unmarshal(body, &in) != nil || in.EnrollToken != EnrollToken {
		return http.StatusUnauthorized, "bad enroll token"
	}
	token := rand.Text()
	p.runners[token] = runner{"runner_" + token[:8], in.Pool, in.PublicKeyPem}
	return http.StatusOK, map[string]string{"runnerId": p.runners[token].id, "runnerToken": token}
}

func (p *Plane) claim(body []byte) (int, any) {
	var in struct{ RunnerToken, Pool string }
	if json.Unmarshal(body, &in) != nil || p.runners[in.RunnerToken].id == "" {
		return http.StatusUnauthorized, "bad runner token"
	}
	if len(p.queue) == 0 {
		return http.StatusOK, map[string]bool{"empty": true}
	}
	id := p.queue[0]
	p.queue = p.queue[1:]
	r := p.runs[id]
	r.by, r.status, r.token = p.runners[in.RunnerToken], "claimed", rand.Text()
	genesis, err := r.contract.Hash()
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	c := chain.New(genesis)
	first := []chain.Event{chain.RunCreated{}, chain.RunClaimed{RunnerID: r.by.id, RunnerKeyID: format.KeyID(r.by.pem)}}
	var released []map[string]string
	for _, s := range r.contract.Secrets {
		first = append(first, chain.SecretReleased{Name: s.Name, Scope: s.Scope})
		released = append(released, map[string]string{"name": s.Name, "value": r.secrets[s.Name]})
	}
	for _, e := range first {
		entry, err := c.Append(time.Now(), e)
		if err != nil {
			return http.StatusInternalServerError, err.Error()
		}
		r.events = append(r.events, entry)
	}
	return http.StatusOK, map[string]any{"runId": id, "contract": r.contract, "claimToken": r.token, "events": r.events, "secrets": released}
}

func (p *Plane) events(id string, body []byte) (int, any) {
	var in struct {
		ClaimToken string
		Events     []chain.Entry
	}
	r := p.runs[id]
	if json.Unmarshal(body, &in) != nil || r == nil || in.ClaimToken != r.token {
		return http.StatusUnauthorized, "bad claim token"
	}
	if r.status != "claimed" && r.status != "running" {
		return http.StatusConflict, "cannot transition run from " + r.status + " to running"
	}
	genesis, err := r.contract.Hash()
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	all := append(append([]chain.Entry{}, r.events...), in.Events...)
	for i := range all {
		if chain.Check(genesis, all[:i+1]) != nil {
			return http.StatusBadRequest, fmt.Sprintf("event chain rejected at seq %d: sequence gap", i)
		}
	}
	r.status, r.events = "running", all
	return http.StatusOK, map[string]bool{"ok": true}
}

func (p *Plane) complete(ctx context.Context, id string, body []byte) (int, any) {
	var in struct {
		ClaimToken string
		Receipt    format.Receipt
	}
	r := p.runs[id]
	switch {
	case json.Unmarshal(body, &in) != nil || r == nil || in.ClaimToken != r.token:
		return http.StatusUnauthorized, "bad claim token"
	case r.spent:
		return http.StatusConflict, "claim token already used for completion"
	case r.status != "claimed" && r.status != "running":
		return http.StatusConflict, "cannot transition run from " + r.status
	}
	r.spent = true
	if err := in.Receipt.Sign(ctx, p.key, format.SignerPlane); err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	text, err := canonical.Marshal(format.Bundle{
		Version: format.VersionBundle, Contract: r.contract, Receipt: in.Receipt, Events: r.events,
		Keys: format.Keys{Plane: p.key.PublicPEM(), Runner: r.by.pem},
	})
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	if problems := receipt.Verify(text, receipt.Options{Strict: true}); len(problems) > 0 {
		return http.StatusBadRequest, "receipt rejected: " + strings.Join(problems, "; ")
	}
	r.receipt, r.status = &in.Receipt, in.Receipt.Status
	return http.StatusOK, map[string]any{"receipt": in.Receipt}
}
