package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"egressd/test/e2e/job"
)

const (
	maxErrs   = 8 // different errors that a tally keeps
	stormPace = 2 * time.Millisecond
)

// storm reads one line of jobs and tries each again and again, side by side,
// until stdin ends; then it prints the tallies.
func storm(stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var jobs []job.Job
	if err := json.Unmarshal(line, &jobs); err != nil {
		return err
	}
	stop := make(chan struct{})
	tallies := make([]job.Tally, len(jobs))
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() { tallies[i] = again(j, stop) })
	}
	_, _ = io.Copy(io.Discard, in) // its end is the word
	close(stop)
	wg.Wait()
	return json.NewEncoder(stdout).Encode(tallies)
}

// again tries j until stop.
func again(j job.Job, stop <-chan struct{}) job.Tally {
	t := job.Tally{ID: j.ID, Status: map[int]int{}, Errs: map[string]int{}}
	pace := time.NewTicker(stormPace)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return t
		case <-pace.C:
		}
		r := try(j)
		t.Tries++
		if r.Reached {
			t.Reached++
			continue
		}
		t.Status[r.Status]++
		text := unported(r.Err)
		if _, known := t.Errs[text]; known || len(t.Errs) < maxErrs {
			t.Errs[text]++
		}
	}
}

// unported leaves the digits of ports out, which differ from try to try.
func unported(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c >= '0' && c <= '9' {
			out[i] = '#'
		}
	}
	return string(out)
}

// later waits between the two halves of what a job says.
func later(j job.Job) {
	if j.Delay > 0 {
		time.Sleep(time.Duration(j.Delay) * time.Millisecond)
	}
}

// doorHalf opens a connection to the explicit doors, says Raw, which is less
// than a request, and keeps it open until the other side ends it or Delay is over.
func doorHalf(j job.Job) job.Result {
	c, _, err := dialProxy(j.From)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if _, err := c.Write(j.Raw); err != nil {
		return local(c, fail(err))
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Duration(j.Delay) * time.Millisecond)) // shows in the read
	n, err := io.Copy(io.Discard, c)
	r := outcome(err, strconv.FormatInt(n, 10))
	return local(c, r)
}

// doorUDP sends a datagram to the address and waits a moment for the marker.
func doorUDP(j job.Job) job.Result {
	c, err := net.DialTimeout("udp", net.JoinHostPort(j.Host, strconv.Itoa(j.Port)), stepTimeout)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("PING")); err != nil {
		return local(c, fail(err))
	}
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // shows in the read
	buf := make([]byte, 64)
	n, err := c.Read(buf)
	return local(c, job.Result{Reached: string(buf[:n]) == job.Marker, Status: -1, Err: outcome(err, "").Err})
}
