// Smoke says whether egressd has become slower by a factor: its processor time for an
// operation, divided by that of a relay in C on the same machine in the same minute, the
// best round of each, against limits that are more than twice what they are.
//
//	go run ./bench/smoke
//
// The exit code is 1 when a limit is passed. See bench/README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

// limits are processor time by that of the relay. Measured in November 2026: 2.1, 3.0, 1.4,
// 1.4 and 6.
var limits = []struct {
	what string
	most float64
}{{"connect", 5}, {"refused", 7}, {"ping_200", 4}, {"bulk_8", 4}, {"http_get", 15}}

// row is what the load prints of one contestant.
type row struct {
	What string    `json:"what"`
	Who  string    `json:"who"`
	Why  string    `json:"why"`
	CPU  []float64 `json:"rounds_cpu_us"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	slow, err := smoke(ctx)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	case slow > 0:
		fmt.Fprintf(os.Stderr, "smoke: egressd is slower than it may be in %d of %d; `go run ./bench/load -other BEFORE` compares it with another build\n", slow, len(limits))
		os.Exit(1)
	}
}

func smoke(ctx context.Context) (slow int, err error) {
	var names []string
	for _, l := range limits {
		names = append(names, l.what)
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./bench/load", "-raw", "-rounds", "5", "-each", "250ms", "-only", strings.Join(names, ","),
		"-without", "direct,bare,tinyproxy,squid,squid-2,haproxy,smokescreen,goproxy")
	var text bytes.Buffer
	cmd.Stderr = &text
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("bench/load: %w: %s", err, &text)
	}
	cpu := map[string][]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return 0, err
		}
		if r.What == "missing" {
			fmt.Println("skipped: there is nothing to compare with:", r.Who, "is missing:", r.Why)
			return 0, nil
		}
		if len(r.CPU) > 0 {
			cpu[r.What+" "+r.Who] = r.CPU
		}
	}
	for _, l := range limits {
		ours, bound := cpu[l.what+" egressd"], cpu[l.what+" relay"]
		if len(ours) == 0 || len(bound) == 0 {
			return 0, fmt.Errorf("%s was not measured", l.what)
		}
		ratio, word := slices.Min(ours)/slices.Min(bound), "ok"
		if !(ratio <= l.most) {
			slow++
			word = "TOO SLOW"
		}
		fmt.Printf("%-9s %6.1f us, relay %5.1f us: %5.2f times, at most %4.1f: %s\n", l.what, slices.Min(ours), slices.Min(bound), ratio, l.most, word)
	}
	return slow, nil
}
