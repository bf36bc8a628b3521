package firewall

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// check returns what is invalid in m. A nil m matches everything.
func (m *matchBody) check() error {
	if m == nil {
		return nil
	}
	all := []*matcher{m.Path}
	for _, kv := range append(slices.Clone(m.QueryString), m.Headers...) {
		all = append(all, kv.Key, kv.Value)
	}
	for _, one := range all {
		if one == nil {
			continue
		}
		given := 0
		for _, is := range []bool{one.Exact != nil, one.StartsWith != nil, one.Regex != nil} {
			if is {
				given++
			}
		}
		if given != 1 {
			return reply.BadRequest("Invalid request: a matcher should have exactly one of exact, startsWith and regex.")
		}
		if one.Regex != nil {
			if _, err := regexp.Compile(*one.Regex); err != nil {
				return reply.BadRequest("Invalid request: `regex` %q: %v.", *one.Regex, err)
			}
		}
	}
	return nil
}

// matches reports whether r satisfies m: path, query and headers must all match,
// and one of the methods.
func (m *matchBody) matches(r *http.Request) bool {
	if m == nil {
		return true
	}
	if len(m.Method) > 0 && !slices.Contains(m.Method, r.Method) {
		return false
	}
	path, _, _ := strings.Cut(r.URL.RequestURI(), "?") // as it is sent
	if m.Path != nil && !m.Path.matches(path, false) {
		return false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil && len(m.QueryString) > 0 {
		return false
	}
	for _, kv := range m.QueryString {
		if !kv.matches(query, false) {
			return false
		}
	}
	for _, kv := range m.Headers {
		if !kv.matches(r.Header, true) {
			return false
		}
	}
	return true
}

func (kv keyValue) matches(fields map[string][]string, fold bool) bool {
	for k, values := range fields {
		if kv.Key != nil && !kv.Key.matches(k, fold) {
			continue
		}
		if kv.Value == nil || slices.ContainsFunc(values, func(v string) bool { return kv.Value.matches(v, false) }) {
			return true
		}
	}
	return false
}

// matches reports whether s satisfies m. With fold, case is ignored; a regex then
// sees s in lower case.
func (m *matcher) matches(s string, fold bool) bool {
	lower := func(s string) string {
		if fold {
			return strings.ToLower(s)
		}
		return s
	}
	switch {
	case m.Exact != nil:
		return lower(s) == lower(*m.Exact)
	case m.StartsWith != nil:
		return strings.HasPrefix(lower(s), lower(*m.StartsWith))
	case m.Regex != nil:
		re, err := regexp.Compile(*m.Regex)
		return err == nil && re.MatchString(lower(s))
	}
	return false
}
