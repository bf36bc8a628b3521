// Lists measures what a long allow list costs: how long egressd takes until it is
// ready, what it holds in memory, what a set-up costs with it, and what a reload of
// it does to set-ups and to memory.
//
//	go run ./bench/lists [-egressd FILE] [-names 1000000]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// figures are those of one run. CPU is user and system time of egressd.
type figures struct {
	Names         int     `json:"names"`
	As            string  `json:"as"` // list: allow_file; yaml: allow
	ReadySeconds  float64 `json:"ready_s"`
	ReadyCPU      float64 `json:"ready_cpu_s"`
	ReadyPeakMiB  float64 `json:"ready_peak_rss_mib"`
	RSSMiB        float64 `json:"rss_mib"` // a second after it was ready
	PerSecond     float64 `json:"set_ups_per_second"`
	CPUPer10k     float64 `json:"set_up_cpu_s_per_10k"`
	LoadedRSSMiB  float64 `json:"rss_after_set_ups_mib"`
	P999Millis    float64 `json:"p999_ms"`        // of a set-up
	Reloads       int     `json:"reloads"`        // of a list in which one name is another
	ReloadSeconds float64 `json:"reload_s"`       // from the change of the file; longest
	ReloadP999    float64 `json:"reload_p999_ms"` // of a set-up while lists are loaded
	ReloadPeakMiB float64 `json:"reload_peak_rss_mib"`
	AfterRSSMiB   float64 `json:"rss_after_reloads_mib"`
}

func main() {
	binary := flag.String("egressd", "", "the `FILE` to measure; built from this tree if empty")
	n := flag.Int("names", 1_000_000, "names in the long list")
	setups := flag.Int("set-ups", 20_000, "set-ups in a run")
	reloads := flag.Int("reloads", 5, "reloads under load")
	runs := flag.Int("runs", 3, "runs of each, in turns")
	yaml := flag.Bool("yaml", true, "the same names in allow, too")
	flag.Parse()
	if err := run(*binary, *runs, *yaml, task{names: *n, setups: *setups, reloads: *reloads}); err != nil {
		fmt.Fprintln(os.Stderr, "lists:", err)
		os.Exit(1)
	}
}

func run(binary string, runs int, yaml bool, long task) error {
	dir, err := os.MkdirTemp("", "lists")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "egressd")
		build := exec.Command("go", "build", "-trimpath", "-o", binary, "egressd/cmd/egressd") //nolint:gosec,noctx // this tree
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	ten := long
	ten.names, ten.reloads = 10, 0
	tasks := []task{ten, long}
	if yaml {
		text := long
		text.yaml = true
		tasks = append(tasks, text)
	}
	for range runs {
		for _, t := range tasks {
			f, err := t.measure(binary)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
				return err
			}
		}
	}
	return nil
}
