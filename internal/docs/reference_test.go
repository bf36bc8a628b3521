package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const root = "../.."

// metricName finds metrics of ours in any text.
var metricName = regexp.MustCompile(`\begressd_[a-z][a-z0-9_]*[a-z0-9]\b`)

// baseMetric strips what a histogram adds to its name.
func baseMetric(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.HasSuffix(base, "_seconds") {
			return base
		}
	}
	return name
}

// metricNames lists the metrics of docs/metrics.md, which TestMetrics holds
// against the program.
func metricNames() (map[string]bool, error) {
	data, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(egressd_[a-z0-9_]+)` ").FindAllStringSubmatch(string(data), -1) {
		out[m[1]] = true
	}
	return out, nil
}
