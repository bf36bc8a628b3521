package gate

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"egressd/policy/upstream"
	"egressd/proxy"
)

// maxLoginBytes bounds a file with the login for an upstream proxy. Implementation
// constant.
const maxLoginBytes = 4 << 10

// Upstream reports how upstream proxies are used: with the files that a policy names,
// read anew for each connection so that a new password counts at once. login is that of
// a proxy whose policy names no file; "": none. roots are authorities in PEM that vouch
// for an https:// proxy besides the system's and those of its file; nil: no others.
//
// Threat: the program reads the company's password -> it is read and sent outside, and
// no event, error or header that goes inside has it. Left over: whoever may read the
// file or the launcher's memory, and the way to an http:// proxy, where it goes in the
// clear.
func Upstream(login string, roots []byte) func(*upstream.Proxy) (proxy.UpstreamAccess, error) {
	return func(u *upstream.Proxy) (proxy.UpstreamAccess, error) {
		a := proxy.UpstreamAccess{Login: login}
		var err error
		switch {
		case u.Credentials != "":
			a.Login, err = readLogin(u)
		case u.User != "" && login == "":
			err = fmt.Errorf("the upstream proxy's URL names the user %q, and nothing has the password: put USER:PASSWORD into a file, and name that (credentials_file, --upstream-credentials)", u.User)
		}
		if err == nil && u.TLS && (u.CA != "" || len(roots) > 0) {
			a.Roots, err = rootsWith(u.CA, roots)
		}
		return a, err
	}
}

// readLogin reads USER:PASSWORD, or the PASSWORD alone where the URL names the user.
func readLogin(u *upstream.Proxy) (string, error) {
	f, err := os.Open(u.Credentials)
	if err != nil {
		return "", fmt.Errorf("the login for the upstream proxy: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLoginBytes+1))
	if err != nil {
		return "", fmt.Errorf("the login for the upstream proxy: %w", err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if u.User != "" && !strings.HasPrefix(text, u.User+":") {
		text = u.User + ":" + text
	}
	if len(data) > maxLoginBytes || strings.ContainsAny(text, "\r\n\x00") || !strings.Contains(text, ":") || strings.HasSuffix(text, ":") {
		return "", fmt.Errorf("%s: the login for the upstream proxy is one line, USER:PASSWORD", u.Credentials)
	}
	return text, nil
}

// rootsWith are the system's authorities, those in the file ca and those in more.
func rootsWith(ca string, more []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if ca != "" {
		data, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("the authorities of the upstream proxy: %w", err)
		}
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: there is no certificate in PEM in it", ca)
		}
	}
	if len(bytes.TrimSpace(more)) > 0 && !pool.AppendCertsFromPEM(more) {
		return nil, errors.New("the additional authorities hold no certificate in PEM")
	}
	return pool, nil
}
