package records

import (
	"encoding/json"
	"strings"
)

// clean reports v as JSON without NUL characters in names and values: databases
// and terminals that records end up in do not accept them.
func clean(v any) any {
	data, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(data), `\u0000`) {
		return v
	}
	var tree any
	if json.Unmarshal(data, &tree) != nil {
		return v
	}
	return withoutNUL(tree)
}

func withoutNUL(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", "")
	case []any:
		for i := range v {
			v[i] = withoutNUL(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[strings.ReplaceAll(k, "\x00", "")] = withoutNUL(e)
		}
		return out
	}
	return v
}
