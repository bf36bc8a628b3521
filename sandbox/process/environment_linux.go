package process

import (
	"net/netip"

	"egressd/sandbox"
)

// environment is the program's: that of the spec, with placeholders for secrets,
// the proxy's address and, with interception, the certificates to trust.
func (s *supervisor) environment(proxyPort uint16) []string {
	env := sandbox.PlaceholderEnv(append(s.files.env, s.spec.Env...), s.b.Gate.Policy, s.b.Gate.SecretValue)
	env = sandbox.ProxyEnv(env, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), proxyPort))
	if s.doors.Bundle() != nil {
		env = sandbox.TrustEnv(env, runtimeDir()+"/ca.pem")
	}
	return env
}
