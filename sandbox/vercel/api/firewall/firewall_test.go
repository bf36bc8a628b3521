package firewall

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestMarshal(t *testing.T) {
	headers := map[string]string{"authorization": "Bearer <x>"}
	for _, tt := range []struct {
		name string
		p    *Policy
		want string
	}{
		{"nil", nil, `null`},
		{"zero", &Policy{}, `{"mode":"deny-all"}`},
		{"only denied subnets", &Policy{DenySubnets: []string{"10.0.0.0/8"}}, `{"mode":"deny-all"}`},
		{"all", &Policy{AllowAll: true}, `{"mode":"allow-all"}`},
		{"names", &Policy{Domains: []Domain{{Name: "api.github.com"}, {Name: "*.x.org"}}, AllowSubnets: []string{"10.0.0.0/8"}, DenySubnets: []string{"169.254.0.0/16"}}, `{"allow":["api.github.com","*.x.org"],"subnets":{"allow":["10.0.0.0/8"],"deny":["169.254.0.0/16"]}}`},
		{"subnets alone", &Policy{AllowSubnets: []string{"10.0.0.0/8"}}, `{"subnets":{"allow":["10.0.0.0/8"]}}`},
		{"headers", &Policy{Domains: []Domain{{Name: "a.b", Rules: []Rule{{Headers: headers}}}, {Name: "*"}}}, `{"allow":{"a.b":[{"transform":[{"headers":{"authorization":"Bearer <x>"}}]}],"*":[]}}`},
		{
			"a match", &Policy{Domains: []Domain{{Name: "a.b", Rules: []Rule{{Headers: headers, Match: &Match{
				Path: &Matcher{StartsWith: "/v1/"}, Method: []string{"GET"}, QueryString: []KeyMatcher{{Key: &Matcher{Exact: "k"}, Value: &Matcher{Regex: "^a"}}},
			}}}}}},
			`{"allow":{"a.b":[{"match":{"path":{"startsWith":"/v1/"},"method":["GET"],"queryString":[{"key":{"exact":"k"},"value":{"regex":"^a"}}]},"transform":[{"headers":{"authorization":"Bearer <x>"}}]}]}}`,
		},
		{"an answer", &Policy{Domains: []Domain{{Name: "a.b", Rules: []Rule{{Response: &Response{StatusCode: 404}}, {ForwardURL: "https://f"}}}}}, `{"allow":{"a.b":[{"response":{"statusCode":404}},{"forwardURL":"https://f"}]}}`},
	} {
		if err := tt.p.Validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got, err := json.Marshal(tt.p)
		if err != nil {
			t.Fatal(err)
		}
		var x, y any
		if json.Unmarshal(got, &x) != nil || json.Unmarshal([]byte(tt.want), &y) != nil || !reflect.DeepEqual(x, y) {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	rule := func(r Rule) *Policy { return &Policy{Domains: []Domain{{Name: "a.b", Rules: []Rule{r}}}} }
	for name, p := range map[string]*Policy{
		"all and more":             {AllowAll: true, AllowSubnets: []string{"10.0.0.0/8"}},
		"no name":                  {Domains: []Domain{{}}},
		"a name twice":             {Domains: []Domain{{Name: "a.b"}, {Name: "A.b"}}},
		"a port":                   {Domains: []Domain{{Name: "a.b:443"}}},
		"not a subnet":             {AllowSubnets: []string{"10.0.0.1"}},
		"a rule that does nothing": rule(Rule{}),
		"a rule that does two":     rule(Rule{Headers: map[string]string{}, ForwardURL: "https://x"}),
		"forwarding over http":     rule(Rule{ForwardURL: "http://x"}),
		"a line break":             rule(Rule{Headers: map[string]string{"a": "SECRET\r\nb: c"}}),
		"a body for 204":           rule(Rule{Response: &Response{StatusCode: 204, Body: "x", ContentType: "text/plain"}}),
		"a body of no type":        rule(Rule{Response: &Response{StatusCode: 200, Body: "x"}}),
		"a length":                 rule(Rule{Response: &Response{StatusCode: 200, Headers: map[string]string{"Content-Length": "1"}}}),
		"status 99":                rule(Rule{Response: &Response{StatusCode: 99}}),
	} {
		err := p.Validate()
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompare(t *testing.T) {
	asked := &Policy{
		Domains: []Domain{{Name: "A.example"}, {Name: "b.example", Rules: []Rule{
			{Headers: map[string]string{"X-B": "1", "authorization": "2"}, Match: &Match{Method: []string{"PUT", "GET"}}}, {ForwardURL: "https://f"},
		}}},
		AllowSubnets: []string{"10.1.2.3/8"}, DenySubnets: []string{"169.254.0.0/16"},
	}
	const same = `{"mode":"custom","allowedDomains":["b.example","a.example"],"allowedCIDRs":["10.0.0.0/8"],"deniedCIDRs":["169.254.0.0/16"],
 "injectionRules":[{"domain":"b.example","headerNames":["Authorization","x-b"],"match":{"method":["GET","PUT"]}}],"forwardRules":[{"domain":"b.example","forwardURL":"https://f"}]}`
	for _, tt := range []struct {
		name            string
		p               *Policy
		got             string
		wider, narrower string
	}{
		{"the same", asked, same, "", ""},
		{"one domain more", asked, strings.Replace(same, `"a.example"`, `"a.example","*"`, 1), "domain *", ""},
		{"one domain less", asked, strings.Replace(same, `,"a.example"`, ``, 1), "", "domain a.example"},
		{"another subnet", asked, strings.Replace(same, "10.0.0.0/8", "10.0.0.0/7", 1), "subnet 10.0.0.0/7", "subnet 10.0.0.0/8"},
		{"a denied subnet less", asked, strings.Replace(same, `"169.254.0.0/16"`, ``, 1), "deny 169.254.0.0/16", ""},
		{"a denied subnet more", asked, strings.Replace(same, `"169.254.0.0/16"`, `"169.254.0.0/16","1.0.0.0/8"`, 1), "", "deny 1.0.0.0/8"},
		{"headers for every method", asked, strings.Replace(same, `,"match":{"method":["GET","PUT"]}`, ``, 1), "headers authorization+x-b of b.example", "headers authorization+x-b"},
		{"everything", asked, `{"mode":"allow-all"}`, "everything", "domain a.example"},
		{"of old", &Policy{}, `{"mode":"default-deny"}`, "", ""},
		{"of old, everything", &Policy{}, `{"mode":"default-allow"}`, "everything", ""},
		{"a mode of the future", &Policy{}, `{"mode":"some"}`, "unknown mode", ""},
		{"nothing, in full", nil, `{"mode":"custom","deniedCIDRs":["10.0.0.0/8"]}`, "", ""},
		{"everything", &Policy{AllowAll: true}, `{"mode":"allow-all"}`, "", ""},
		{"not everything", &Policy{AllowAll: true}, `{"mode":"deny-all"}`, "", "everything"},
		{"no answer", asked, `null`, "nothing was reported", ""},
	} {
		var got *State
		if err := json.Unmarshal([]byte(tt.got), &got); err != nil {
			t.Fatal(err)
		}
		err := tt.p.Compare(got)
		if tt.wider+tt.narrower == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		d, _ := err.(*Difference) //nolint:errorlint // it comes bare
		if d == nil || !strings.Contains(strings.Join(d.Wider, ","), tt.wider) || !strings.Contains(strings.Join(d.Narrower, ","), tt.narrower) ||
			(tt.wider == "") != (len(d.Wider) == 0) || (tt.narrower == "") != (len(d.Narrower) == 0) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
