package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Implementation constants.
const (
	asked    = 10 // names that set-ups ask for, spread over the list
	clients  = 16
	patience = 60 * time.Second
)

// task is one run.
type task struct {
	names, setups, reloads int
	yaml                   bool
}

// run is an egressd that is running.
type running struct {
	cmd    *exec.Cmd
	door   string
	target string // PORT of the origin
	loads  chan struct{}
}

// list writes the list: plain names, and those that are asked for with the port of
// the origin. version makes the last line another one.
func (t task) list(version int, origin string) []byte {
	var b bytes.Buffer
	b.WriteString(map[bool]string{true: "allow:\n", false: ""}[t.yaml])
	each := max(t.names/asked, 1)
	for i := range t.names {
		if t.yaml {
			b.WriteString("  - ")
		}
		switch {
		case i%each == 0:
			fmt.Fprintf(&b, "%s:%s\n", name(i), origin)
		case i == t.names-1:
			fmt.Fprintf(&b, "v%d.example.com\n", version)
		default:
			b.WriteString(name(i) + "\n")
		}
	}
	return b.Bytes()
}

func name(i int) string { return "host-" + strconv.Itoa(i) + ".example.com" }

// write puts the policy of a version in place, by a rename.
func (t task) write(dir, origin string, version int) error {
	var hosts strings.Builder
	hosts.WriteString("hosts:\n")
	for i := 0; i < t.names; i += max(t.names/asked, 1) {
		hosts.WriteString("  " + name(i) + ": 127.0.0.1\n")
	}
	policy := hosts.String() + "allow_file: allow.txt\n"
	file := "allow.txt"
	text := t.list(version, origin)
	if t.yaml {
		file, text = "policy.yaml", append([]byte(hosts.String()), text...)
	} else if version == 0 {
		if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
			return err
		}
	}
	next := filepath.Join(dir, "next")
	return errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, filepath.Join(dir, file)))
}

func (t task) measure(binary string) (f figures, err error) {
	f.Names, f.As = t.names, map[bool]string{true: "yaml", false: "list"}[t.yaml]
	dir, err := os.MkdirTemp("", "lists")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	origin, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the run
	if err != nil {
		return f, err
	}
	defer origin.Close()
	go echo(origin)
	_, port, _ := net.SplitHostPort(origin.Addr().String())
	if err := t.write(dir, port, 0); err != nil {
		return f, err
	}
	begin := time.Now()
	r, err := start(binary, dir, port)
	if err != nil {
		return f, err
	}
	defer func() {
		_ = r.cmd.Process.Signal(os.Interrupt)
		err = errors.Join(err, r.cmd.Wait())
	}()
	f.ReadySeconds, f.ReadyCPU, f.ReadyPeakMiB = time.Since(begin).Seconds(), r.cpu(), r.status("VmHWM")
	<-time.After(time.Second) // the collector and the first look at the files
	f.RSSMiB = r.status("VmRSS")

	before, begin := r.cpu(), time.Now()
	took, err := t.load(r, nil)
	if err != nil {
		return f, err
	}
	f.CPUPer10k, f.PerSecond = (r.cpu()-before)*10_000/float64(t.setups), float64(t.setups)/time.Since(begin).Seconds()
	f.P999Millis, f.LoadedRSSMiB = permille(took, 999), r.status("VmRSS")
	if t.reloads == 0 {
		return f, nil
	}
	return f, t.underReload(r, dir, &f)
}

// underReload changes the list several times while set-ups go on.
func (t task) underReload(r *running, dir string, f *figures) error {
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		took, err := t.load(r, stop)
		f.ReloadP999 = permille(took, 999)
		ended <- err
	}()
	var err error
	for version := 1; version <= t.reloads && err == nil; version++ {
		if err = t.write(dir, r.target, version); err != nil {
			break
		}
		begin, due := time.Now(), time.After(patience)
		for waiting := true; waiting; {
			select {
			case <-r.loads:
				waiting = false
			case <-due:
				err, waiting = errors.New("a changed list is not in force"), false
			case <-time.After(2 * time.Millisecond):
				f.ReloadPeakMiB = max(f.ReloadPeakMiB, r.status("VmRSS"))
			}
		}
		f.ReloadSeconds = max(f.ReloadSeconds, time.Since(begin).Seconds())
		f.Reloads++
	}
	close(stop)
	err = errors.Join(err, <-ended)
	<-time.After(time.Second)
	f.AfterRSSMiB = r.status("VmRSS")
	return err
}

// start runs egressd and returns when it is ready.
func start(binary, dir, target string) (*running, error) {
	cmd := exec.Command(binary, "--policy", filepath.Join(dir, "policy.yaml"), "--listen", "127.0.0.1:0", "--events", filepath.Join(dir, "events.jsonl")) //nolint:gosec,noctx // the operator's own binary
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &running{cmd: cmd, target: target, loads: make(chan struct{}, 1)}
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "msg=ready") {
		if _, rest, ok := strings.Cut(lines.Text(), "door=proxy addr="); ok {
			r.door, _, _ = strings.Cut(rest, " ")
		}
	}
	if r.door == "" {
		return nil, errors.Join(errors.New("egressd did not start"), cmd.Wait())
	}
	go func() {
		for lines.Scan() {
			if strings.Contains(lines.Text(), `msg="the policy is in force" `) {
				r.loads <- struct{}{}
			}
		}
	}()
	return r, nil
}

// load makes set-ups: t.setups of them, or until stop is closed. It reports how
// long each took.
func (t task) load(r *running, stop <-chan struct{}) ([]time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(t.setups))
	all, errs := make([][]time.Duration, clients), make([]error, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := c; stop != nil || left.Add(-1) >= 0; i++ {
				select {
				case <-stop:
					return
				default:
				}
				begin := time.Now()
				target := name(i%asked*max(t.names/asked, 1)) + ":" + r.target
				if err := setUp(r.door, target); err != nil {
					errs[c] = fmt.Errorf("%s: %w", target, err)
					return
				}
				all[c] = append(all[c], time.Since(begin))
			}
		})
	}
	wg.Wait()
	return slices.Concat(all...), errors.Join(errs...)
}

// setUp is one tunnel with a byte there and back.
func setUp(door, target string) error {
	c, err := net.DialTimeout("tcp", door, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	status, err := in.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200") {
		return fmt.Errorf("%q, %w", status, errors.Join(err, errors.New("no tunnel")))
	}
	for line := status; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			return err
		}
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err = in.ReadByte()
	return err
}

func echo(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c) // until the tunnel ends
		}()
	}
}

// permille is the value below which that many of a thousand lie, in milliseconds.
func permille(took []time.Duration, of int) float64 {
	if len(took) == 0 {
		return math.NaN()
	}
	slices.Sort(took)
	return float64(took[min(len(took)*of/1000, len(took)-1)].Microseconds()) / 1000
}

// status is a line of /proc/PID/status, in MiB; 0 without.
func (r *running) status(key string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	_, rest, _ := bytes.Cut(data, []byte("\n"+key+":"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(string(fields[0])) // 0 is no figure
	return float64(kib) / 1024
}

// cpu is the user and system time of egressd, in seconds; 0 without.
func (r *running) cpu() float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return float64(user+system) / 100 // USER_HZ is 100 on every Linux
}
