// Denials measures what a program costs that is denied over and over: bytes of
// events a second and processor time of egressd for each denied question.
//
//	go run ./bench/denials -egressd ./egressd [-against ./egressd-before]
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// figures are those of one run.
type figures struct {
	Binary         string  `json:"binary"`
	Names          string  `json:"names"`
	Questions      int     `json:"questions"`
	PerSecond      float64 `json:"questions_per_second"`
	EventBytes     int64   `json:"event_bytes"`
	BytesPerSecond float64 `json:"event_bytes_per_second"`
	CPUMicros      float64 `json:"cpu_us_per_question"`
}

func main() {
	binary := flag.String("egressd", "egressd", "the `FILE` to measure")
	against := flag.String("against", "", "another `FILE`, in turns with it; none if empty")
	n := flag.Int("n", 50_000, "questions in a run")
	runs := flag.Int("runs", 3, "runs of each")
	flag.Parse()
	for range *runs {
		for _, names := range []string{"one", "many"} {
			for _, b := range []string{*against, *binary} {
				if b == "" {
					continue
				}
				f, err := measure(b, names, *n)
				if err != nil {
					fmt.Fprintln(os.Stderr, "denials:", err)
					os.Exit(1)
				}
				if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
					os.Exit(1)
				}
			}
		}
	}
}

// measure runs one egressd, asks it n questions that it denies, one after the other,
// and ends it.
func measure(binary, names string, n int) (figures, error) {
	f := figures{Binary: binary, Names: names, Questions: n}
	dir, err := os.MkdirTemp("", "denials")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	events := filepath.Join(dir, "events.jsonl")
	cmd := exec.Command(binary, "--allow", "good.example", "--listen", "none", "--dns", "127.0.0.1:0", "--events", events) //nolint:gosec,noctx // the operator's own binary
	log, err := cmd.StderrPipe()
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	door := ""
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), "msg=ready"); {
		if _, rest, ok := strings.Cut(lines.Text(), "door=dns addr="); ok {
			door, _, _ = strings.Cut(rest, " ")
		}
	}
	took, err := flood(door, names, n)
	_ = cmd.Process.Signal(os.Interrupt)
	if werr := cmd.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return f, err
	}
	fi, err := os.Stat(events)
	if err != nil {
		return f, err
	}
	used := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
	f.PerSecond, f.EventBytes = float64(n)/took.Seconds(), fi.Size()
	f.BytesPerSecond, f.CPUMicros = float64(fi.Size())/took.Seconds(), float64(used.Microseconds())/float64(n)
	return f, nil
}

func flood(door, names string, n int) (time.Duration, error) {
	c, err := net.Dial("udp", strings.Trim(door, `"`)) //nolint:noctx // has deadlines
	if err != nil {
		return 0, err
	}
	defer c.Close()
	begin := time.Now()
	buf := make([]byte, 1500)
	for i := range n {
		name := "evil.example."
		if names == "many" {
			name = fmt.Sprintf("x%d.evil.example.", i)
		}
		q := dnsmessage.Message{
			Header:    dnsmessage.Header{ID: uint16(i), RecursionDesired: true}, //nolint:gosec // wraps
			Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		}
		data, err := q.Pack()
		if err != nil {
			return 0, err
		}
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return 0, err
		}
		if _, err := c.Write(data); err != nil {
			return 0, err
		}
		if _, err := c.Read(buf); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}
