package policyflags

import (
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"egressd/policy/upstream"
)

// RegisterUpstream adds the flags about an upstream proxy to fs.
func (f *Flags) RegisterUpstream(fs *flag.FlagSet) {
	s := &f.Upstream
	fs.StringVar(&s.URL, "upstream-proxy", "", "leave through this proxy: `URL` is http[s]://[USER@]HOST[:PORT]; none for none")
	fs.Func("upstream-bypass", "go directly to this `HOST`, *.HOST, .HOST, address or prefix, in spite of the upstream proxy", func(v string) error {
		_, err := upstream.ParseBypass(splitNames(v))
		s.Bypass = append(s.Bypass, splitNames(v)...)
		return err
	})
	fs.StringVar(&s.Credentials, "upstream-credentials", "", "log in to the upstream proxy with the USER:PASSWORD in this `FILE`")
	fs.StringVar(&s.CA, "upstream-ca", "", "trust an https:// upstream proxy by the authorities in this `FILE`, too")
	fs.Func("upstream-resolve", "`WHO` looks names up: local (the gate judges the addresses; the default), or proxy", func(v string) error {
		s.Resolve = v
		if v != upstream.Local && v != upstream.AtProxy {
			return fmt.Errorf("%q: local or proxy", v)
		}
		return nil
	})
}

// Environ is what the proxy variables of a caller say.
type Environ struct {
	Section upstream.Section // zero: nothing
	Login   string           // USER:PASSWORD; "": none
	Name    string           // of the variable that names the proxy
	Unknown []string         // words of NO_PROXY that bypass nothing
}

// proxyVariables in the order in which they count: the gate sends all traffic to one
// proxy, and most of it is TLS.
var proxyVariables = []string{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"}

// ReadEnviron reads the proxy variables. nested: the caller runs behind a gate, whose
// own door they then name on the loopback: that is no upstream proxy, since all that
// leaves is captured there. An error names the variable, and repeats no password.
func ReadEnviron(getenv func(string) string, nested bool) (Environ, error) {
	at := slices.IndexFunc(proxyVariables, func(name string) bool { return getenv(name) != "" })
	if at < 0 {
		return Environ{}, nil
	}
	e := Environ{Name: proxyVariables[at]}
	text := getenv(e.Name)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	to, password, err := upstream.Parse(text)
	if err != nil {
		return Environ{}, fmt.Errorf("%s: %w (to leave without a proxy: --upstream-proxy none)", e.Name, err)
	}
	if nested && (to.Addr.IsLoopback() || to.Name == "localhost") {
		return Environ{}, nil
	}
	noProxy := getenv("no_proxy")
	if noProxy == "" {
		noProxy = getenv("NO_PROXY")
	}
	bypass, all, unknown := upstream.NoProxy(noProxy)
	if all {
		return Environ{}, nil
	}
	e.Unknown = unknown
	if password != "" {
		e.Login = to.User + ":" + password
	}
	where := url.URL{Scheme: "http", Host: to.String()}
	if to.TLS {
		where.Scheme = "https"
	}
	if to.User != "" {
		where.User = url.User(to.User)
	}
	e.Section = upstream.Section{URL: where.String(), Bypass: bypass, At: e.Name}
	return e, nil
}

// upstreamSection is what the flags say. What they leave to the environment is the
// address.
func (f *Flags) upstreamSection() upstream.Section {
	s := f.Upstream
	s.At = "--upstream-proxy"
	if env := f.Environ.Section; s.URL == "" && !s.IsZero() {
		s.URL, s.Bypass = env.URL, append(slices.Clone(s.Bypass), env.Bypass...)
	}
	if s.IsZero() {
		return upstream.Section{}
	}
	return s
}
