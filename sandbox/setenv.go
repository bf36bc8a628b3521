package sandbox

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"egressd/policy"
)

// noProxy exempts servers inside the sandbox, such as a development server on
// localhost. It weakens nothing: everything else is captured, or does not leave,
// whatever a client makes of the variables.
const noProxy = "localhost,127.0.0.1,::1"

// ProxyEnv reports env with the variables by which programs find the proxy.
// Captured programs do without. These variables replace those in env.
//
// ALL_PROXY is http and not socks5h: Python's and some other clients fail on a
// socks URL if an optional module is missing, and every client that reads
// ALL_PROXY speaks http.
func ProxyEnv(env []string, proxy netip.AddrPort) []string {
	url := "http://" + proxy.String()
	env = slices.Clone(env)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = SetEnv(env, name, url)
		env = SetEnv(env, strings.ToLower(name), url)
	}
	env = SetEnv(env, "NO_PROXY", noProxy)
	env = SetEnv(env, "no_proxy", noProxy)
	env = SetEnv(env, "NODE_USE_ENV_PROXY", "1")
	host, port := proxy.Addr().String(), strconv.Itoa(int(proxy.Port()))
	java := "-Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port +
		" -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port +
		" -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
	return SetEnv(env, "JAVA_TOOL_OPTIONS", strings.TrimSpace(EnvValue(env, "JAVA_TOOL_OPTIONS")+" "+java))
}

// caReplaces names the variables that replace a program's root certificates, and
// so must name a whole bundle. NODE_EXTRA_CA_CERTS adds to the roots.
var caReplaces = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT",
	"NPM_CONFIG_CAFILE", "npm_config_cafile", "DENO_CERT", "AWS_CA_BUNDLE", "BUNDLE_SSL_CA_CERT", "NODE_EXTRA_CA_CERTS",
}

// TrustEnv reports env with the variables by which programs find their root
// certificates, all naming bundle, a file in PEM.
func TrustEnv(env []string, bundle string) []string {
	for _, name := range caReplaces {
		env = SetEnv(env, name, bundle)
	}
	return SetEnv(env, "UV_NATIVE_TLS", "1")
}

// SetEnv reports env with name set to value once. It changes env in place.
func SetEnv(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}

// EnvValue reports the value of name in env, "" if it is not set. The last one
// counts.
func EnvValue(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// PlaceholderEnv reports env with the placeholders of the secrets of p, as value
// reports them. Nil p or value: env as it is.
func PlaceholderEnv(env []string, p *policy.Current, value func(env string) (placeholder, value string, ok bool)) []string {
	if value == nil || p == nil || p.Load() == nil {
		return env
	}
	env = append([]string{}, env...)
	for _, secret := range p.Load().Secrets() {
		if placeholder, _, ok := value(secret.Env); ok {
			env = SetEnv(env, secret.Env, placeholder)
		}
	}
	return env
}

// Marker names the variable that says that a program is behind a gate of ours. It
// is 1 in every run, unless the person gave it another value. A program can set it
// as well: it is advice for programs that mean well, and nothing is decided by it.
const Marker = "EGRESSD"

// mark adds to the variables of a program those by which it learns where it is.
func mark(all map[string]string, argv []string) {
	if _, set := all[Marker]; !set {
		all[Marker] = "1"
	}
	if a := find(argv); a != nil && a.sandboxVar != "" {
		if _, set := all[a.sandboxVar]; !set {
			all[a.sandboxVar] = "egressd"
		}
	}
}
