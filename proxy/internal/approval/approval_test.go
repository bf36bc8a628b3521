package approval

import (
	"testing"

	"egressd/policy"
)

// TestApprovalIsForOneHostAndPort approves one flow, and asks about others.
func TestApprovalIsForOneHostAndPort(t *testing.T) {
	current, err := policy.Compile(&policy.Document{Deny: []policy.Entry{{Text: "denied.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(name string, port uint16) policy.Request {
		h, err := policy.ParseHost(name)
		if err != nil {
			t.Fatal(err)
		}
		return policy.Request{Host: h, Port: port}
	}
	var approved Set
	r := request("a.example", 443)
	if approved.Policy(r) != nil {
		t.Error("approved before it was asked about")
	}
	if err := approved.Add(current, r, current.Decide(r)); err != nil {
		t.Fatal(err)
	}
	p := approved.Policy(r)
	if p == nil || !p.Decide(r).Allowed() {
		t.Fatalf("not approved: %v", p)
	}
	for _, other := range []policy.Request{request("b.example", 443), request("a.example", 22)} {
		if approved.Policy(other) != nil || p.Decide(other).Allowed() {
			t.Errorf("%v:%d is approved, too", other.Host, other.Port)
		}
	}
	if denied := request("denied.example", 443); p.Decide(denied).Reason != policy.ReasonDeniedByRule {
		t.Errorf("deny rules do not stay: %v", p.Decide(denied))
	}
	for port := uint16(1); err == nil; port++ {
		if r := request("a.example", 1000+port); port > maxApprovals {
			t.Fatal("there is no bound")
		} else {
			err = approved.Add(current, r, current.Decide(r))
		}
	}
}
