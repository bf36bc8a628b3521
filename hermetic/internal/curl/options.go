package curl

import (
	"crypto/tls"
	"strconv"
	"strings"
)

// option is one that curl knows. set gets "" or "no" for a switch.
type option struct {
	short byte
	long  string
	value bool
	set   func(p *parser, v string) error
	deny  string // why it is not supported here
}

// onOff makes a switch of the field that at points to.
func onOff(short byte, long string, at func(p *parser) *bool) option {
	return option{short: short, long: long, set: func(p *parser, v string) error {
		*at(p) = v != "no"
		return nil
	}}
}

func valued(short byte, long string, set func(p *parser, v string) error) option {
	return option{short: short, long: long, value: true, set: set}
}

// text is a value that is kept as it is.
func text(short byte, long string, at func(p *parser) *string) option {
	return valued(short, long, func(p *parser, v string) error {
		*at(p) = v
		return nil
	})
}

// none changes nothing here, or nothing that could be seen.
func none(short byte, long string, value bool) option {
	return option{short: short, long: long, value: value, set: func(*parser, string) error { return nil }}
}

func denied(short byte, long string, value bool, why string) option {
	return option{short: short, long: long, value: value, deny: why}
}

func curlOptions() []option {
	all := append(requestOptions(), transferOptions()...)
	all = append(all, outputOptions()...)
	all = append(all, tlsOptions()...)
	all = append(all, quietOptions()...)
	return append(all, deniedOptions()...)
}

func requestOptions() []option {
	return []option{
		text('X', "request", func(p *parser) *string { return &p.s.method }),
		valued('d', "data", (*parser).dataASCII),
		valued(0, "data-ascii", (*parser).dataASCII),
		valued(0, "data-raw", func(p *parser, v string) error { return p.addData([]byte(v)) }),
		valued(0, "data-binary", (*parser).dataBinary),
		valued(0, "data-urlencode", (*parser).dataEncoded),
		valued(0, "json", (*parser).dataJSON),
		valued('F', "form", func(p *parser, v string) error { return p.formPart(v, false) }),
		valued(0, "form-string", func(p *parser, v string) error { return p.formPart(v, true) }),
		valued('T', "upload-file", func(p *parser, v string) error { p.s.uploads = append(p.s.uploads, v); return nil }),
		onOff('G', "get", func(p *parser) *bool { return &p.s.get }),
		onOff('I', "head", func(p *parser) *bool { return &p.s.head }),
		valued('H', "header", (*parser).Header),
		valued('A', "user-agent", func(p *parser, v string) error { p.s.agent, p.s.noAgent = v, v == ""; return nil }),
		valued('e', "referer", (*parser).refer),
		valued('b', "cookie", (*parser).cookie),
		valued('c', "cookie-jar", func(p *parser, v string) error { p.s.cookieTo, p.s.cookies = v, true; return nil }),
		onOff('j', "junk-session-cookies", func(p *parser) *bool { return &p.s.junk }),
		valued('u', "user", func(p *parser, v string) error { p.s.login, p.s.loggedIn = v, true; return nil }),
		text(0, "oauth2-bearer", func(p *parser) *string { return &p.s.bearer }),
		text('r', "range", func(p *parser) *string { return &p.s.ranges }),
		valued('C', "continue-at", (*parser).continueAt),
		text('z', "time-cond", func(p *parser) *string { return &p.s.since }),
		text(0, "etag-compare", func(p *parser) *string { return &p.s.etagFrom }),
		text(0, "etag-save", func(p *parser) *string { return &p.s.etagTo }),
		onOff(0, "compressed", func(p *parser) *bool { return &p.s.compressed }),
		valued(0, "url", func(p *parser, v string) error { p.s.urls = append(p.s.urls, v); return nil }),
		valued(0, "url-query", (*parser).urlQuery),
		onOff('g', "globoff", func(p *parser) *bool { return &p.s.globOff }),
		onOff(0, "path-as-is", func(p *parser) *bool { return &p.s.asIs }),
		onOff(0, "disallow-username-in-url", func(p *parser) *bool { return &p.s.noLogin }),
		{short: ':', long: "next", set: func(p *parser, _ string) error { return p.next() }},
		valued('K', "config", (*parser).config),
	}
}

func transferOptions() []option {
	return []option{
		onOff('L', "location", func(p *parser) *bool { return &p.s.follow }),
		valued(0, "max-redirs", func(p *parser, v string) error { return number(v, &p.s.maxRedirects, -1) }),
		onOff(0, "post301", func(p *parser) *bool { return &p.s.post301 }),
		onOff(0, "post302", func(p *parser) *bool { return &p.s.post302 }),
		onOff(0, "post303", func(p *parser) *bool { return &p.s.post303 }),
		{short: 'f', long: "fail", set: (*parser).failing},
		{long: "fail-with-body", set: (*parser).failingBody},
		valued('m', "max-time", func(p *parser, v string) error { return duration(v, &p.s.maxTime) }),
		valued(0, "connect-timeout", func(p *parser, v string) error { return duration(v, &p.s.connect) }),
		valued(0, "retry", func(p *parser, v string) error { return number(v, &p.s.retries, 0) }),
		valued(0, "retry-delay", func(p *parser, v string) error { return seconds(v, &p.s.retryDelay) }),
		valued(0, "retry-max-time", func(p *parser, v string) error { return seconds(v, &p.s.retryMax) }),
		onOff(0, "retry-all-errors", func(p *parser) *bool { return &p.s.retryAll }),
		onOff(0, "retry-connrefused", func(p *parser) *bool { return &p.s.retryRefused }),
		valued(0, "max-filesize", func(p *parser, v string) error { return size(v, &p.s.maxSize) }),
		valued(0, "proto", func(p *parser, v string) error { return protocols(v, p.s.protocols) }),
		valued(0, "proto-redir", func(p *parser, v string) error { return protocols(v, p.s.redirProtocols) }),
		text(0, "proto-default", func(p *parser) *string { return &p.s.scheme }),
		onOff(0, "fail-early", func(p *parser) *bool { return &p.g.failEarly }),
	}
}

func outputOptions() []option {
	return []option{
		valued('o', "output", func(p *parser, v string) error { p.s.outs = append(p.s.outs, out{name: v}); return nil }),
		{short: 'O', long: "remote-name", set: func(p *parser, v string) error {
			p.s.outs = append(p.s.outs, out{remote: v != "no"})
			return nil
		}},
		onOff(0, "remote-name-all", func(p *parser) *bool { return &p.s.allRemote }),
		onOff('J', "remote-header-name", func(p *parser) *bool { return &p.s.remoteHeader }),
		text(0, "output-dir", func(p *parser) *string { return &p.s.outputDir }),
		onOff(0, "create-dirs", func(p *parser) *bool { return &p.s.createDirs }),
		onOff('R', "remote-time", func(p *parser) *bool { return &p.s.remoteTime }),
		{long: "clobber", set: func(p *parser, v string) error { p.s.noClobber = v == "no"; return nil }},
		onOff(0, "remove-on-error", func(p *parser) *bool { return &p.s.discard }),
		onOff('i', "include", func(p *parser) *bool { return &p.s.include }),
		text('D', "dump-header", func(p *parser) *string { return &p.s.dumpTo }),
		valued('w', "write-out", (*parser).writeOut),
		onOff('s', "silent", func(p *parser) *bool { return &p.g.silent }),
		onOff('S', "show-error", func(p *parser) *bool { return &p.g.showError }),
		onOff('v', "verbose", func(p *parser) *bool { return &p.g.verbose }),
		text(0, "stderr", func(p *parser) *string { return &p.g.stderr }),
		{short: 'V', long: "version", set: func(p *parser, _ string) error { return errVersion }},
		{short: 'h', long: "help", set: func(p *parser, _ string) error { return errHelp }},
	}
}

func tlsOptions() []option {
	at := func(short byte, long string, version uint16) option {
		return option{short: short, long: long, set: func(p *parser, _ string) error { p.s.tlsMin = version; return nil }}
	}
	return []option{
		onOff('k', "insecure", func(p *parser) *bool { return &p.s.insecure }),
		text(0, "cacert", func(p *parser) *string { return &p.s.caFile }),
		at('1', "tlsv1", tls.VersionTLS12), at(0, "tlsv1.0", tls.VersionTLS12), at(0, "tlsv1.1", tls.VersionTLS12),
		at(0, "tlsv1.2", tls.VersionTLS12), at(0, "tlsv1.3", tls.VersionTLS13),
		valued(0, "tls-max", func(p *parser, v string) error {
			switch v {
			case "1.2":
				p.s.tlsMax = tls.VersionTLS12
			case "default", "1.3":
				p.s.tlsMax = tls.VersionTLS13
			default:
				return errBadUse
			}
			return nil
		}),
	}
}

// quietOptions are those that change nothing through a gate that speaks
// HTTP/1.1, or only what a terminal shows.
func quietOptions() []option {
	var all []option
	for _, name := range []string{
		"basic", "http1.1", "http2", "http3", "no-progress-meter", "progress-meter", "keepalive", "tcp-nodelay", "tcp-fastopen", "sessionid",
		"alpn", "npn", "ssl", "ssl-reqd", "styled-output", "buffer", "parallel-immediate", "suppress-connect-headers", "ca-native", "ssl-no-revoke",
		"ssl-revoke-best-effort",
	} {
		all = append(all, none(0, name, false))
	}
	return append(all,
		none('#', "progress-bar", false), none('N', "no-buffer", false), none('Z', "parallel", false), none('q', "disable", false),
		none('4', "ipv4", false), none('6', "ipv6", false), // the gate chooses the address
		none(0, "keepalive-time", true), none(0, "parallel-max", true), none(0, "expect100-timeout", true),
		none(0, "happy-eyeballs-timeout-ms", true), none(0, "noproxy", true), none(0, "speed-time", true),
	)
}

func deniedOptions() []option {
	const gate = "the session's gate decides where connections lead"
	const auth = "only --basic and --oauth2-bearer are"
	all := []option{
		denied('x', "proxy", true, gate), denied('U', "proxy-user", true, gate), denied('p', "proxytunnel", false, gate),
		denied(0, "proxy1.0", true, gate), denied(0, "preproxy", true, gate), denied(0, "proxy-header", true, gate),
		denied(0, "proxy-insecure", false, gate), denied(0, "proxy-cacert", true, gate), denied(0, "proxy-basic", false, gate),
		denied(0, "socks4", true, gate), denied(0, "socks4a", true, gate), denied(0, "socks5", true, gate), denied(0, "socks5-hostname", true, gate),
		denied(0, "resolve", true, gate), denied(0, "connect-to", true, gate), denied(0, "interface", true, gate), denied(0, "local-port", true, gate),
		denied(0, "unix-socket", true, gate), denied(0, "abstract-unix-socket", true, gate), denied(0, "dns-servers", true, gate),
		denied(0, "dns-interface", true, gate), denied(0, "dns-ipv4-addr", true, gate), denied(0, "dns-ipv6-addr", true, gate), denied(0, "doh-url", true, gate),
		denied(0, "location-trusted", false, "a login is never sent to another host"),
		denied(0, "digest", false, auth), denied(0, "ntlm", false, auth), denied(0, "negotiate", false, auth), denied(0, "anyauth", false, auth), denied(0, "aws-sigv4", true, auth),
		denied('n', "netrc", false, auth), denied(0, "netrc-file", true, auth), denied(0, "netrc-optional", false, auth),
	}
	for _, o := range []option{
		{short: 'E', long: "cert", value: true},
		{long: "key", value: true},
		{long: "cert-type", value: true},
		{long: "pass", value: true},
		{long: "capath", value: true},
		{long: "pinnedpubkey", value: true},
		{long: "ciphers", value: true},
		{long: "tls13-ciphers", value: true},
		{long: "crlfile", value: true},
		{short: '0', long: "http1.0"},
		{long: "http0.9"},
		{long: "http2-prior-knowledge"},
		{long: "http3-only"},
		{long: "raw"},
		{long: "tr-encoding"},
		{long: "limit-rate", value: true},
		{long: "rate", value: true},
		{long: "hsts", value: true},
		{long: "alt-svc", value: true},
		{long: "trace", value: true},
		{long: "trace-ascii", value: true},
		{long: "trace-time"},
		{long: "libcurl", value: true},
		{long: "request-target", value: true},
		{short: 'Y', long: "speed-limit", value: true},
		{short: 'y', value: true, long: "speed-time"},
		{long: "xattr"},
		{long: "crlf"},
		{short: 'a', long: "append"},
		{short: 'B', long: "use-ascii"},
		{short: 'Q', long: "quote", value: true},
		{short: 'l', long: "list-only"},
		{short: 'M', long: "manual"},
		{long: "form-escape"},
		{long: "ignore-content-length"},
		{long: "create-file-mode", value: true},
		{long: "haproxy-protocol"},
		{short: 't', long: "telnet-option", value: true},
		{long: "metalink"},
		{short: '2', long: "sslv2"},
		{short: '3', long: "sslv3"},
	} {
		o.deny = "it is not supported here"
		all = append(all, o)
	}
	return all
}

func number(v string, at *int, least int) error {
	n, err := strconv.ParseInt(v, 10, 32)
	switch {
	case err != nil:
		return errNumber
	case int(n) < least:
		return errPositive
	}
	*at = int(n)
	return nil
}

func size(v string, at *int64) error {
	unit := int64(1)
	if v != "" {
		if i := strings.IndexByte("bkmg", v[len(v)-1]|0x20); i >= 0 {
			unit, v = 1<<(10*i), v[:len(v)-1]
		}
	}
	n, err := strconv.ParseInt(v, 10, 32+10)
	if err != nil || n < 0 {
		return errNumber
	}
	*at = n * unit
	return nil
}

// protocols reads "=https", "-all,https", "+http".
func protocols(v string, set map[string]bool) error {
	for word := range strings.SplitSeq(v, ",") {
		action := byte('+')
		if word != "" && strings.IndexByte("+-=", word[0]) >= 0 {
			action, word = word[0], word[1:]
		}
		if action == '=' {
			clear(set)
		}
		names := []string{strings.ToLower(word)}
		if names[0] == "all" {
			names = []string{"http", "https"}
		}
		for _, n := range names {
			set[n] = action != '-'
		}
	}
	return nil
}
