package process

import "net/netip"

// environment is the harness's: the spec's, secrets as placeholders, the
// proxy's address and, with interception, whom to trust.
func (s *session) environment(proxyPort uint16) []string {
	env := secretPlaceholders(s.spec.Env, s.b.Gate.Policy, s.b.Gate.SecretValue)
	env = proxyEnv(env, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), proxyPort))
	if s.doors.Bundle() != nil {
		env = caEnv(env, runtimeDir()+"/ca.pem")
	}
	return env
}
