package microvm

import (
	"encoding/json"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/policy"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/network"
)

// Explain says what a policy becomes at Vercel, and which of the targets stay
// inside there although the policy allows them: none if same is true. The error is
// the policy that Vercel cannot enforce.
func Explain(p *policy.Policy, targets []string) (text string, same bool, err error) {
	n, err := network.Translate(p, func(string) (string, bool) { return "...", true })
	if err != nil {
		return "", false, err
	}
	words, err := json.Marshal((&vercel.Backend{Network: n}).Policy())
	if err != nil {
		return "", false, err
	}
	text, same = "in the vercel tier the policy is: "+string(words)+"\n", true
	for _, note := range n.Notes {
		text += "  " + note + "\n"
	}
	for _, target := range targets {
		t, err := explain.Parse(target, "")
		if err == nil && !n.All && t.Host.Name() != "" && t.Port != 443 {
			text += "not in the vercel tier: " + cli.Safe(target) + ": to a name only TLS gets out, judged by the name in its hello\n"
			same = false
		}
	}
	return text, same, nil
}
