package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What an operator adds to every event is bounded, and named as what reads it expects.
func TestResourceIsBounded(t *testing.T) {
	many := map[string]string{}
	for i := range maxAttributes + 1 {
		many[fmt.Sprint("k", i)] = "v"
	}
	for name, resource := range map[string]map[string]string{
		"too many": many, "no name": {"": "v"}, "no value": {"host.name": ""}, "capitals": {"Host": "v"},
		"a quote": {`a"b`: "v"}, "long name": {strings.Repeat("a", maxAttributeName+1): "v"},
		"long value": {"a": strings.Repeat("v", maxAttributeValue+1)},
	} {
		c := Config{Policies: []Source{{Name: "p"}}, Doors: Doors{Listen: []Door{{Policy: "p", Addr: "127.0.0.1:0"}}}}
		c.Resource = resource
		var config *ConfigError
		if err := c.Validate(); !errors.As(err, &config) || !strings.Contains(err.Error(), "--resource") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := Config{Policies: []Source{{Name: "p"}}, Doors: Doors{Listen: []Door{{Policy: "p", Addr: "127.0.0.1:0"}}}}
	c.Resource = map[string]string{"k8s.pod.name": "agent-7d9f-x2x4z"}
	if err := c.Validate(); err != nil && strings.Contains(err.Error(), "--resource") {
		t.Error(err)
	}
}
