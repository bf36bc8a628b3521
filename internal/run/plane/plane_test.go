package plane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

// serve is a client of a plane that answers like this.
func serve(t *testing.T, answer func(n int, w http.ResponseWriter, body []byte)) *Client {
	t.Helper()
	n := 0
	var mu sync.Mutex // one request at a time: an answer that is lost orders nothing
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		answer(n, w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := New(srv.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Secrets come with claims: who can listen must not.
func TestNew(t *testing.T) {
	for _, bad := range []string{"", "plane.example.com", "http://plane.example.com", "http://10.0.0.1", "ftp://localhost", "https://user@plane.example.com", "https://plane.example.com/?a=b"} {
		if _, err := New(bad, nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, good := range []string{"https://plane.example.com", "https://plane.example.com/base/", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"} {
		if _, err := New(good, nil); err != nil {
			t.Error(err)
		}
	}
}

// An answer that was lost makes no event twice, and none is left out.
func TestEventsAgain(t *testing.T) {
	entries := make([]chain.Entry, 5)
	for i := range entries {
		entries[i].Seq, entries[i].Event = i+2, json.RawMessage(`{}`)
	}
	for _, row := range []struct {
		name  string
		have  int // what the plane has got before
		first func(w http.ResponseWriter)
		ok    bool
	}{
		{"all had arrived", 7, lose, true},
		{"some had arrived", 4, lose, true},
		{"none had arrived", 2, lose, true},
		{"the chain is broken", 4, func(w http.ResponseWriter) { reject(w, 4) }, false},
		{"the plane knows more than there is", 9, lose, false},
	} {
		have := row.have
		c := serve(t, func(n int, w http.ResponseWriter, body []byte) {
			var in struct{ Events []chain.Entry }
			if err := json.Unmarshal(body, &in); err != nil {
				t.Error(err)
			}
			switch {
			case n == 1:
				row.first(w)
			case in.Events[0].Seq != have:
				reject(w, have)
			default:
				have += len(in.Events)
				_, _ = io.WriteString(w, `{"ok":true}`)
			}
		})
		err := c.Events(t.Context(), "run_1", "t", entries, false)
		if (err == nil) != row.ok || row.ok && have != 7 {
			t.Errorf("%s: %v, %d", row.name, err, have)
		}
	}
}

func lose(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func reject(w http.ResponseWriter, seq int) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":"event chain rejected at seq %d: sequence gap"}`, seq)
}

// A claim is never asked for twice in one go: the first may have been given.
func TestClaimOnce(t *testing.T) {
	var calls atomic.Int32 // an answer that is lost tells the client nothing, not even that it was asked
	c := serve(t, func(_ int, w http.ResponseWriter, _ []byte) {
		calls.Add(1)
		lose(w)
	})
	if claim, err := c.Claim(t.Context(), "t", "p"); err == nil || claim != nil || calls.Load() != 1 {
		t.Error(claim, err, calls.Load())
	}
}

func TestComplete(t *testing.T) {
	for name, row := range map[string]struct {
		answer func(n int, w http.ResponseWriter)
		spent  bool
		ok     bool
	}{
		"wrapped":         {func(_ int, w http.ResponseWriter) { _, _ = io.WriteString(w, `{"receipt":{"runId":"signed"}}`) }, false, true},
		"bare":            {func(_ int, w http.ResponseWriter) { _, _ = io.WriteString(w, `{"runId":"signed"}`) }, false, true},
		"busy at first":   {func(n int, w http.ResponseWriter) { busyOnce(n, w) }, false, true},
		"the answer lost": {func(n int, w http.ResponseWriter) { spentAfter(n, w) }, true, false},
		"refused":         {func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) }, false, false},
		"not JSON":        {func(_ int, w http.ResponseWriter) { _, _ = io.WriteString(w, `{`) }, false, false},
		"a redirection":   {func(_ int, w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(http.StatusFound) }, false, false},
		"an endless error": {func(_ int, w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		}, false, false},
	} {
		c := serve(t, func(n int, w http.ResponseWriter, _ []byte) { row.answer(n, w) })
		got, err := c.Complete(t.Context(), "run_1", "t", format.Receipt{})
		if (err == nil) != row.ok || errors.Is(err, ErrSpent) != row.spent || row.ok && got.RunID != "signed" {
			t.Errorf("%s: %v %v", name, got.RunID, err)
		}
	}
}

func busyOnce(n int, w http.ResponseWriter) {
	if n == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, `{"receipt":{"runId":"signed"}}`)
}

func spentAfter(n int, w http.ResponseWriter) {
	if n == 1 {
		lose(w)
	}
	w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(w, `{"error":"claim token already used for completion"}`)
}

// A blob is what its hash says, or nothing.
func TestBlob(t *testing.T) {
	c := serve(t, func(_ int, w http.ResponseWriter, _ []byte) { _, _ = io.WriteString(w, "another") })
	if data, err := c.Blob(t.Context(), "0000"); err == nil {
		t.Errorf("%q", data)
	}
	if err := c.PutBlob(t.Context(), "t", []byte("x")); err == nil {
		t.Error("an answer that is no hash is taken")
	}
}
