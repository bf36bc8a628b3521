package process

import "net/netip"

// environment is the harness's: the spec's, secrets as placeholders, the
// proxy's address and, with interception, whom to trust.
func (s *session) environment(proxyPort uint16) []string {
	env := s.spec.Env
	if p := s.policy(); p != nil && s.b.SecretValue != nil {
		for _, secret := range p.Secrets() {
			if placeholder, _, ok := s.b.SecretValue(secret.Env); ok {
				env = setEnv(append([]string{}, env...), secret.Env, placeholder)
			}
		}
	}
	env = proxyEnv(env, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), proxyPort))
	if s.gate.bundle != nil {
		env = caEnv(env, runtimeDir()+"/ca.pem")
	}
	return env
}
