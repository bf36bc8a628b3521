package otlp

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"egressd/internal/daemon/ship"
)

const connected = `{"time":"2026-01-02T03:04:05.680123Z","seq":3,"type":"network.connected","session":"Q5ZV","flow":1,"decision":"blocked","reason":"host_not_listed","host":"api.example.com","port":443,"addr":"203.0.113.9:443","client":"[2001:db8::1]:5","audit":true,"files":["a","b"],"v":1,"boot":"k4vq","resource":{"k8s.pod.name":"web-1","host.name":"node"}}`

// Names, kinds and places are those of the conventions, and the body is the line.
func TestEncode(t *testing.T) {
	text, err := encode([][]byte{
		[]byte(connected), []byte(`{"time":"2026-01-02T03:04:06Z","seq":4,"type":"dns.query","host":"a.test","boot":"k4vq"}`), []byte("half a li\xff"),
	}, "1.2.3", time.Unix(1, 5))
	if err != nil {
		t.Fatal(err)
	}
	var req request
	if err := json.Unmarshal(text, &req); err != nil || len(req.Logs) != 2 {
		t.Fatal(err, len(req.Logs))
	}
	flat := func(all []attribute) string {
		var b strings.Builder
		for _, a := range all {
			v, err := json.Marshal(a.Value)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(a.Key + "=" + string(v) + "\n")
		}
		return b.String()
	}
	if got, want := flat(req.Logs[0].Resource.Attributes), `service.name={"stringValue":"egressd"}
host.name={"stringValue":"node"}
k8s.pod.name={"stringValue":"web-1"}
`; got != want {
		t.Errorf("resource\n%s", got)
	}
	r := req.Logs[0].Scopes[0].Records[0]
	if got, want := flat(r.Attributes), `network.peer.address={"stringValue":"203.0.113.9"}
network.peer.port={"intValue":"443"}
egressd.audit={"boolValue":true}
log.record.uid={"stringValue":"k4vq-3"}
client.address={"stringValue":"2001:db8::1"}
client.port={"intValue":"5"}
egressd.decision={"stringValue":"blocked"}
egressd.files={"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":"b"}]}}
egressd.flow={"intValue":"1"}
server.address={"stringValue":"api.example.com"}
server.port={"intValue":"443"}
egressd.reason={"stringValue":"host_not_listed"}
egressd.seq={"intValue":"3"}
session.id={"stringValue":"Q5ZV"}
egressd.v={"intValue":"1"}
`; got != want {
		t.Errorf("attributes\n%s", got)
	}
	if r.Event != "network.connected" || r.Time != "1767323045680123000" || r.Observed != "1000000005" || r.Severity != severityWarn || *r.Body.String != connected {
		t.Errorf("%+v", r)
	}
	if q := req.Logs[1].Scopes[0].Records; len(q) != 2 || !strings.Contains(flat(q[0].Attributes), `dns.question.name={"stringValue":"a.test"}`) || q[0].Text != "INFO" {
		t.Errorf("%+v", q)
	} else if *q[1].Body.String != "half a li\ufffd" || q[1].Text != "WARN" || len(q[1].Attributes) != 0 {
		t.Errorf("%+v", q[1])
	}
}

// Each answer means what the protocol says.
func TestSend(t *testing.T) {
	var unwanted *ship.Unwanted
	var later *ship.RetryAfter
	taken := func(err error) bool { return err == nil }
	never := func(err error) bool { return errors.As(err, &unwanted) && !unwanted.Some }
	some := func(err error) bool { return errors.As(err, &unwanted) && unwanted.Some }
	again := func(err error) bool { return err != nil && !errors.As(err, &unwanted) && !errors.As(err, &later) }
	wait := func(err error) bool { return errors.As(err, &later) && later.Wait == 7*time.Second }
	for name, row := range map[string]struct {
		status int
		answer string
		is     func(error) bool
	}{
		"taken":             {200, `{}`, taken},
		"taken, as told":    {200, `{"partialSuccess":{}}`, taken},
		"some left out":     {200, `{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"odd"}}`, some},
		"no collector":      {200, `<html>`, again},
		"malformed":         {400, `{"code":3,"message":"bad"}`, never},
		"too large":         {413, ``, never},
		"no token":          {401, ``, again},
		"another path":      {404, ``, again},
		"moved":             {302, ``, again},
		"busy":              {429, ``, wait},
		"away for a moment": {503, ``, wait},
		"broken":            {500, ``, again},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				z, err := gzip.NewReader(r.Body)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(z)
				if err != nil || !strings.Contains(string(body), "k4vq-3") || r.URL.Path != "/v1/logs" || r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Content-Type") != "application/json" {
					t.Error(err, r.URL, r.Header, string(body))
				}
				if row.status == 429 || row.status == 503 {
					w.Header().Set("Retry-After", "7")
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.answer)
			}))
			defer srv.Close()
			url, err := ParseURL(srv.URL, true)
			if err != nil {
				t.Fatal(err)
			}
			h := srv.Client()
			h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			c := Client{URL: url, Header: http.Header{"Authorization": {"Bearer x"}}, HTTP: h, Version: "1"}
			if err := c.Send(t.Context(), [][]byte{[]byte(connected)}); !row.is(err) || calls != 1 {
				t.Errorf("%v after %d calls", err, calls)
			}
		})
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:4318": "http://127.0.0.1:4318/v1/logs", "https://c.example/x": "https://c.example/x", "http://[::1]:1/": "http://[::1]:1/v1/logs",
		"http://c.example": "", "ftp://c.example": "", "c.example:4318": "", "https://u:p@c.example": "", "https://c.example/?a=b": "", "": "",
	} {
		if got, err := ParseURL(text, true); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := ParseURL("http://c.example:4318", false); err != nil {
		t.Error(err)
	}
}
