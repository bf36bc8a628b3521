package fake

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// try is send for requests whose answer may not come.
func (d *double) try(method, path, body string) (status int, header http.Header, got string, err error) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t")
	// A connection of its own: net/http would try again on a kept one.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(data), err
}

func (d *double) fault(text string) {
	d.t.Helper()
	f, err := ParseFault(text)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.Inject(f); err != nil {
		d.t.Fatal(err)
	}
}

func TestFaultAnswers(t *testing.T) {
	d := newDouble(t, Config{})
	d.fault("GET /v2/sandboxes status=429 retry-after=1 times=2 skip=1")
	d.fault("* /v2/sandboxes/* status=503 body=<html>bad</html>")
	d.fault("* /v2/sandboxes/* status=402")
	d.fault("* /v2/sandboxes/* status=403 code=resource_limit_exceeded")
	d.fault("* /v2/sandboxes/* status=400 code=image_not_ready message=later")
	list, one := "/api/v2/sandboxes?project=p", "/v2/sandboxes/x?projectId=p"
	for i, tt := range []struct {
		path   string
		status int
		has    string
	}{
		{list, 200, "pagination"},
		{list, 429, `"rate_limited"`},
		{list, 429, "rate_limited"},
		{list, 200, ""},
		{one, 503, "<html>bad</html>"},
		{one, 402, "payment_required"},
		{one, 403, "resource_limit_exceeded"},
		{one, 400, `"image_not_ready"`},
		{one, 404, "not_found"},
	} {
		status, header, body, err := d.try("GET", tt.path, "")
		if err != nil || status != tt.status || !strings.Contains(body, tt.has) {
			t.Errorf("%d: got %d %s, %v", i, status, body, err)
		}
		if status == 429 && header.Get("Retry-After") != "1" || header.Get("X-Vercel-Id") == "" {
			t.Errorf("%d: header %v", i, header)
		}
	}
	if left := d.Faults(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestFaultConnections(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false}`)
	d.fault("POST /v3/sandboxes reset=before")
	if _, _, _, err := d.try("POST", "/v3/sandboxes", `{"projectId":"p","name":"a"}`); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("before: %v", err)
	}
	d.send("GET", "/v2/sandboxes/a?projectId=p", nil).want(404)
	d.fault("POST /v3/sandboxes reset=after")
	if _, _, _, err := d.try("POST", "/v3/sandboxes", `{"projectId":"p","name":"a"}`); err == nil {
		t.Error("the answer came")
	}
	d.send("GET", "/v2/sandboxes/a?projectId=p", nil).want(200)
	run := `{"command":"sh","args":["-c","echo one; sleep 0.05; echo two"],"wait":true,"logs":true}`
	cmd := sessions + sid + "/cmd"
	for _, tt := range []struct {
		fault, has, hasNot string
		broken             bool
	}{
		{"then=reset lines=2", "one", `two\n`, true},
		{"then=end lines=2", "one", `two\n`, false},
		{"then=error lines=1 code=sandbox_stream_closed", `"sandbox_stream_closed"`, `one\n`, false},
		{"then=end bytes=30", `{"command"`, "\n", false},
		{"then=end", "", "c", false},
	} {
		d.fault("POST /v2/sandboxes/sessions/*/cmd " + tt.fault)
		status, _, body, err := d.try("POST", cmd, run)
		if status != 200 || !strings.Contains(body, tt.has) || strings.Contains(body, tt.hasNot) && tt.hasNot != "" || (err != nil) != tt.broken {
			t.Errorf("%s: got %d %q, %v", tt.fault, status, body, err)
		}
	}
	d.fault("POST /v2/sandboxes/sessions/*/cmd delay=20ms slow=10ms")
	begun := time.Now()
	if out, code := d.run(sid, "echo ok"); out != "ok\n" || code != 0 || time.Since(begun) < 50*time.Millisecond {
		t.Errorf("got %q, %d after %v", out, code, time.Since(begun))
	}
}

func TestFaultsRefused(t *testing.T) {
	for _, text := range []string{
		"", "GET /", "GET / status", "GET / status=x", "GET / status=99", "GET / unknown=1", "GET / reset=now", "GET / then=stop", "GET [ status=500",
		"GET / delay=-1s", "GET / times=2", "GET / lines=-1 then=end",
	} {
		if f, err := ParseFault(text); err == nil {
			t.Errorf("%q was taken for %+v", text, f)
		}
	}
	d := newDouble(t, Config{})
	for range maxFaults {
		if err := d.Inject(Fault{Status: 500}); err != nil {
			t.Fatal(err)
		}
	}
	if d.Inject(Fault{Status: 500}) == nil {
		t.Error("one too many")
	}
	d.ClearFaults()
	d.send("GET", "/v2/sandboxes?project=p", nil).want(200)
}

// Requests and faults over HTTP, for programs in other languages.
func TestSideChannel(t *testing.T) {
	d := newDouble(t, Config{})
	side := func(method, what, body string) (int, string) {
		status, _, got, err := d.try(method, "/_double/"+what, body)
		if err != nil {
			t.Fatal(err)
		}
		return status, got
	}
	if status, got := side("POST", "faults", `{"path":"/v2/sandboxes","status":500}`); status != 200 {
		t.Fatal(got)
	}
	if status, _ := side("POST", "faults", `{"stat":500}`); status != 400 {
		t.Error("an unknown field was taken")
	}
	if _, got := side("GET", "faults", ""); !strings.Contains(got, `"status":500`) {
		t.Errorf("got %s", got)
	}
	d.send("POST", "/v2/sandboxes?teamId=t&x=%20", `{"a":1}`).want(500)
	var reqs []Request
	_, got := side("GET", "requests", "")
	if err := json.Unmarshal([]byte(got), &reqs); err != nil {
		t.Fatal(err)
	}
	if len(reqs) != 1 || reqs[0].Method != "POST" || reqs[0].Path != "/api/v2/sandboxes" || reqs[0].Query != "teamId=t&x=%20" ||
		string(reqs[0].Body) != `{"a":1}` || reqs[0].BodyBytes != 7 || reqs[0].Status != 500 || reqs[0].Header.Get("Authorization") != "Bearer token" {
		t.Errorf("got %+v", reqs)
	}
	side("DELETE", "requests", "")
	side("DELETE", "faults", "")
	if len(d.Requests())+len(d.Faults()) != 0 {
		t.Error("not forgotten")
	}
	if status, _ := side("GET", "other", ""); status != 404 {
		t.Error(status)
	}
}

// The record has a bound.
func TestRecordIsBounded(t *testing.T) {
	d := newDouble(t, Config{})
	big := bytes.Repeat([]byte(" "), maxRecordedBody+100)
	d.send("POST", "/v3/sandboxes", string(big)).want(400)
	r := d.Requests()[0]
	if len(r.Body) != maxRecordedBody || r.BodyBytes != int64(len(big)) {
		t.Errorf("kept %d of %d", len(r.Body), r.BodyBytes)
	}
	d.record.mu.Lock()
	for range maxRecorded {
		d.record.all = append(d.record.all, &recorded{rec: &d.record})
	}
	d.record.mu.Unlock()
	d.send("GET", "/v2/sandboxes?project=p", nil)
	if n := len(d.Requests()); n != maxRecorded {
		t.Errorf("%d are kept", n)
	}
}
