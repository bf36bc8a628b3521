// Package override finds what in the head of an HTTP request puts something else
// in the place of its method, path or host.
//
//	override.Find(&head, request.Header, "?_method=DELETE")
//	head.Methods // ["DELETE"]
//
// Whether that differs from what is judged is the policy's to say.
package override

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"egressd/policy"
)

// Find adds to head what the fields h and the query (with its question mark, or
// empty) say. It allocates only for what it finds.
func Find(head *policy.Head, h http.Header, query string) {
	for name, values := range h {
		switch kindOf(name) {
		case method:
			head.Methods = appendAll(head.Methods, values)
		case path:
			head.Paths = appendPaths(head, values)
		case prefix:
			for _, v := range values {
				if strings.Trim(v, "/ \t") != "" {
					head.Paths = append(head.Paths, v+"/**") // no path of a request
				}
			}
		case host:
			for _, v := range values {
				for part := range strings.SplitSeq(v, ",") {
					head.Hosts = append(head.Hosts, textproto.TrimString(part))
				}
			}
		case forwarded:
			for _, v := range values {
				head.Hosts = forwardedHosts(head.Hosts, v)
			}
		case hops:
			head.Hops = true
		case none:
		}
	}
	head.Methods = methodsOf(head.Methods, query)
}

// kind is what a field puts something else in the place of.
type kind int

const (
	none kind = iota
	method
	path
	prefix // of the path
	host
	forwarded // RFC 7239
	hops
)

// kindOf knows the fields that frameworks, gateways and servers obey. An
// underscore is a hyphen to whoever reads fields as CGI does.
func kindOf(name string) kind {
	if len(name) < len("X-Host") || name[0] != 'X' && name[0] != 'F' && name[0] != 'M' {
		return none // names are in canonical form
	}
	switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
	case "x-http-method", "x-http-method-override", "x-method-override", "x-original-method", "x-forwarded-method":
		return method
	case "x-original-url", "x-rewrite-url", "x-override-url", "x-original-uri", "x-rewrite-uri", "x-forwarded-uri", "x-forwarded-path", "x-original-path":
		return path
	case "x-forwarded-prefix", "x-script-name":
		return prefix
	case "x-forwarded-host", "x-original-host", "x-host", "x-http-host-override":
		return host
	case "forwarded":
		return forwarded
	case "max-forwards":
		return hops
	}
	return none
}

func appendAll(to, values []string) []string {
	for _, v := range values {
		to = append(to, textproto.TrimString(v))
	}
	return to
}

// appendPaths takes a whole URL apart: its host counts as well.
func appendPaths(head *policy.Head, values []string) []string {
	to := head.Paths
	for _, v := range values {
		v = textproto.TrimString(v)
		if i := strings.Index(v, "://"); i > 0 {
			authority := v[i+len("://"):]
			v = "/"
			if j := strings.IndexAny(authority, "/?"); j >= 0 {
				authority, v = authority[:j], authority[j:]
			}
			head.Hosts = append(head.Hosts, authority)
		}
		to = append(to, v)
	}
	return to
}

// forwardedHosts adds the host parameters of one Forwarded field.
func forwardedHosts(to []string, field string) []string {
	for element := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == ';' || r == ',' }) {
		name, value, ok := strings.Cut(element, "=")
		if ok && strings.EqualFold(textproto.TrimString(name), "host") {
			to = append(to, strings.Trim(value, " \t\""))
		}
	}
	return to
}

// methodsOf adds the values of _method in a query. PHP takes a space, a dot and
// an opening bracket in a name for an underscore, and cuts spaces before it.
func methodsOf(to []string, query string) []string {
	for pair := range strings.FieldsFuncSeq(strings.TrimPrefix(query, "?"), func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		name = unescape(name)
		name, _, _ = strings.Cut(strings.TrimLeft(name, " "), "[")
		if !strings.EqualFold(strings.NewReplacer(" ", "_", ".", "_").Replace(name), "_method") {
			continue
		}
		to = append(to, unescape(value))
	}
	return to
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}
