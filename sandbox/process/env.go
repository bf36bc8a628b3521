package process

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"egressd/policy"
)

// noProxy exempts what is inside: a client's own dev server at localhost. It
// weakens nothing, since everything else is captured whatever a client thinks
// of proxies.
const noProxy = "localhost,127.0.0.1,::1"

// proxyEnv adds to env what programs need to find the proxy by themselves;
// captured programs do without. What is set here wins over env.
//
// ALL_PROXY is http and not socks5h: Python's and some other clients fail at a
// socks URL when an optional module is missing, and every client that reads
// ALL_PROXY speaks http.
func proxyEnv(env []string, proxy netip.AddrPort) []string {
	url := "http://" + proxy.String()
	env = slices.Clone(env)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = setEnv(env, name, url)
		env = setEnv(env, strings.ToLower(name), url)
	}
	env = setEnv(env, "NO_PROXY", noProxy)
	env = setEnv(env, "no_proxy", noProxy)
	env = setEnv(env, "NODE_USE_ENV_PROXY", "1")
	host, port := proxy.Addr().String(), portString(proxy.Port())
	java := "-Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port +
		" -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port +
		" -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
	return setEnv(env, "JAVA_TOOL_OPTIONS", strings.TrimSpace(envValue(env, "JAVA_TOOL_OPTIONS")+" "+java))
}

// caReplaces names the variables that replace a program's root certificates,
// and so must name a whole bundle. NODE_EXTRA_CA_CERTS adds to them.
var caReplaces = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT",
	"NPM_CONFIG_CAFILE", "npm_config_cafile", "DENO_CERT", "AWS_CA_BUNDLE", "BUNDLE_SSL_CA_CERT", "NODE_EXTRA_CA_CERTS",
}

// caEnv points every known program at bundle.
func caEnv(env []string, bundle string) []string {
	for _, name := range caReplaces {
		env = setEnv(env, name, bundle)
	}
	return setEnv(env, "UV_NATIVE_TLS", "1")
}

// setEnv reports env with name set to value, once.
func setEnv(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}

// envValue reports the value of name, "" when it is not set. The last one
// counts.
func envValue(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// pathValues lists the values of env that may name files: every absolute path,
// also as entries of a list such as PATH. Directories for temporary files are
// made anew inside, and are no such names.
func pathValues(env []string) []string {
	var out []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR", "PWD", "OLDPWD"}, name) {
			continue
		}
		if strings.HasPrefix(value, "/") {
			for _, p := range strings.Split(value, ":") {
				if strings.HasPrefix(p, "/") {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func portString(p uint16) string { return strconv.Itoa(int(p)) }

// secretPlaceholders puts the placeholders of p's secrets into env.
func secretPlaceholders(env []string, p *policy.Current, value func(env string) (placeholder, value string, ok bool)) []string {
	if value == nil || p == nil || p.Load() == nil {
		return env
	}
	env = append([]string{}, env...)
	for _, secret := range p.Load().Secrets() {
		if placeholder, _, ok := value(secret.Env); ok {
			env = setEnv(env, secret.Env, placeholder)
		}
	}
	return env
}
