package policyflags

import "strings"

// Split splits a comma list of rules. Commas inside a rule stay:
//
//	github.com:22,443        a part of digits (or a range) belongs to the rule before it
//	GET,POST https://h/**    words of capitals belong to the rule after them
//	GET https://h/a,b        after a URL has begun every comma is part of its path
//
// Empty parts are dropped. An empty list is one empty rule, which is an error later
// on, with its place.
func Split(list string) []string {
	var rules []string
	var methods []string // capitals whose URL is still to come
	for list != "" {
		part, rest, _ := strings.Cut(list, ",")
		trimmed := strings.TrimSpace(part)
		switch {
		case strings.Contains(part, "://"):
			rule := strings.TrimSpace(list)
			return append(rules, strings.Join(append(methods, rule), ","))
		case trimmed == "":
		case isPorts(trimmed) && len(rules) > 0:
			rules[len(rules)-1] += "," + trimmed
		case isMethod(trimmed) && strings.Contains(rest, "://"):
			methods = append(methods, trimmed)
		default:
			rules = append(append(rules, methods...), trimmed)
			methods = nil
		}
		list = rest
	}
	if rules = append(rules, methods...); len(rules) == 0 {
		return []string{""}
	}
	return rules
}

// isPorts reports whether s is a port or a range of ports.
func isPorts(s string) bool {
	return s != "" && s[0] != '-' && strings.Trim(s, "0123456789-") == ""
}

// isMethod reports whether s may be an HTTP method as a rule spells it.
func isMethod(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}
