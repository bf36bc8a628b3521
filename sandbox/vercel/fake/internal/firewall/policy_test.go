package firewall

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"egressd/sandbox/vercel/fake/internal/reply"
)

func TestNetworkPolicyShapes(t *testing.T) {
	for body, want := range map[string]string{
		`{"mode":"allow-all"}`:                `{"mode":"allow-all"}`,
		`{"mode":"deny-all"}`:                 `{"mode":"deny-all"}`,
		`{}`:                                  `{"mode":"deny-all"}`,
		`{"allow":[]}`:                        `{"mode":"deny-all"}`,
		`{"subnets":{"deny":["10.0.0.0/8"]}}`: `{"mode":"custom","deniedCIDRs":["10.0.0.0/8"]}`,
		`{"allow":["a.example","*.b.example"],"subnets":{"allow":["10.0.0.0/8"],"deny":["169.254.0.0/16"]}}`:                                                    `{"mode":"custom","allowedDomains":["a.example","*.b.example"],"allowedCIDRs":["10.0.0.0/8"],"deniedCIDRs":["169.254.0.0/16"]}`,
		`{"allow":{"a.example":[{"transform":[{"headers":{"authorization":"Bearer s3cret","x-b":"s3cret"}}]}],"*":[]}}`:                                         `{"mode":"custom","allowedDomains":["*","a.example"],"injectionRules":[{"domain":"a.example","headerNames":["authorization","x-b"]}]}`,
		`{"allow":{"a.example":[{"match":{"path":{"startsWith":"/v1/"},"method":["GET"]},"transform":[{"headers":{"x-key":"s3cret"}}]}]}}`:                      `{"mode":"custom","allowedDomains":["a.example"],"injectionRules":[{"domain":"a.example","headerNames":["x-key"],"match":{"path":{"startsWith":"/v1/"},"method":["GET"]}}]}`,
		`{"mode":"custom","allowedDomains":["a.example"],"allowedCIDRs":["10.0.0.0/8"],"injectionRules":[{"domain":"b.example","headers":{"x-key":"s3cret"}}]}`: `{"mode":"custom","allowedDomains":["a.example","b.example"],"allowedCIDRs":["10.0.0.0/8"],"injectionRules":[{"domain":"b.example","headerNames":["x-key"]}]}`,
	} {
		p, err := Parse(json.RawMessage(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got, _ := json.Marshal(p.JSON()); string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
		if _, err := new(Config).compile(p); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for body, status := range map[string]int{
		`{"mode":"some"}`: 400, `{"mode":"allow-all","allow":[]}`: 400, `{"mode":"deny-all","allowedDomains":["a"]}`: 400, `{"allowedDomains":["a"]}`: 400,
		`{"mode":"custom","allow":["a"]}`: 400, `{"allow":"a"}`: 400, `{"allow":["a b"]}`: 400, `{"allow":["a..b"]}`: 400, `{"allow":["https://a"]}`: 400,
		`{"subnets":{"allow":["10.0.0.0"]}}`: 400, `{"subnets":{"deny":["x/8"]}}`: 400, `{"allow":{"a":[{}]}}`: 400, `{"allow":{"a":{}}}`: 400,
		`{"allow":{"a":[{"transform":[],"forwardURL":"https://b"}]}}`: 400, `{"allow":{"a":[{"transform":[{"headers":{"a b":"c"}}]}]}}`: 400,
		`{"allow":{"a":[{"transform":[{"headers":{"a":"b\r\nc: d"}}]}]}}`: 400, `{"allow":{"a":[{"match":{"path":{}},"transform":[]}]}}`: 400,
		`{"allow":{"a":[{"match":{"path":{"regex":"("}},"transform":[]}]}}`: 400, `{"allow":{"a":[{"forwardURL":"https://b/?q"}]}}`: 400,
		`{"allow":{"a":[{"forwardURL":"https://b/"}]}}`: 501, `{"allow":{"a":[{"response":{"statusCode":200}}]}}`: 501, `{"unknown":1}`: 400,
		`{"allow":{"a":[{"response":{"statusCode":600}}]}}`: 400, `{"allow":{"a":[{"response":{}}]}}`: 400, `{"allow":{"a":[{"response":{"statusCode":200,"x":1}}]}}`: 400,
		`{"allow":{"a":[{"response":{"statusCode":200,"body":"b"}}]}}`: 400, `{"allow":{"a":[{"response":{"statusCode":204,"body":"b","contentType":"a/b"}}]}}`: 400,
		`{"allow":{"a":[{"response":{"statusCode":200,"headers":{"Connection":"close"}}}]}}`: 400, `{"allow":{"a":[{"response":{"statusCode":200,"headers":{"a":"\n"}}}]}}`: 400,
		`{"allow":{"a":[{"response":{"statusCode":200},"match":{"path":{"regex":"("}}}]}}`: 400, `{"allow":{"a":[{"forwardURL":"http://b/"}]}}`: 400,
		`{"allow":{"a":[{"forwardURL":"https://b/","match":{"path":{}}}]}}`: 400, `{"mode":"custom","forwardRules":[{"domain":"a","forwardURL":"b"}]}`: 400,
		`{"mode":"custom","forwardRules":[{"domain":"a b","forwardURL":"https://b/"}]}`: 400, `{"mode":"custom","forwardRules":[{"domain":"a","forwardURL":"https://b/"}]}`: 501,
		`{"allow":{"*":[{"transform":[{"headers":{"a":"b"}}]}]}}`: 501,
	} {
		_, err := Parse(json.RawMessage(body))
		if e := (*reply.Error)(nil); !errors.As(err, &e) || e.Status != status {
			t.Errorf("%s: got %v, want %d", body, err, status)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		domain, name string
		want         bool
	}{
		{"a.example", "a.example", true},
		{"a.example", "A.EXAMPLE", true},
		{"a.example", "b.a.example", false},
		{"*.a.example", "b.a.example", true},
		{"*.a.example", "c.b.a.example", true},
		{"*.a.example", "a.example", false},
		{"*", "a.example", true},
		{"www.*.com", "www.a.com", true},
		{"www.*.com", "www.a.b.com", false},
		{"www.*.com", "www.com", false},
		{"*.x.*.com", "a.b.x.c.com", true},
		{"*.com", "com", false},
	} {
		if got := covers(tt.domain, tt.name); got != tt.want {
			t.Errorf("%s covers %s: %v", tt.domain, tt.name, got)
		}
	}
}

func TestMatch(t *testing.T) {
	r := httptest.NewRequest("GET", "https://a.example/v1/x?k=abc&l=1", nil)
	r.Header.Set("X-A", "1")
	for text, want := range map[string]bool{
		`{}`: true, `{"method":["POST","GET"]}`: true, `{"method":["POST"]}`: false, `{"path":{"exact":"/v1/x"}}`: true, `{"path":{"exact":"/V1/x"}}`: false,
		`{"path":{"regex":"^/v[0-9]/"}}`: true, `{"queryString":[{"key":{"exact":"k"},"value":{"regex":"^a"}}]}`: true,
		`{"queryString":[{"key":{"exact":"l"},"value":{"regex":"^a"}}]}`: false, `{"headers":[{"key":{"exact":"x-a"},"value":{"exact":"1"}}]}`: true,
		`{"headers":[{"key":{"exact":"x-b"}}]}`: false, `{"method":["GET"],"path":{"startsWith":"/v2"}}`: false,
	} {
		var m matchBody
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.matches(r); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
