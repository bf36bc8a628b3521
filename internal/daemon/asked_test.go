package daemon

import (
	"sync"
	"testing"
	"time"

	"egressd/dnsfilter"
)

// The questions of all policies to one server are counted together, and its counter is
// there before the first.
func TestAsked(t *testing.T) {
	made, heard := map[string]int{}, 0
	var mu sync.Mutex
	a := asked{count: func(server string) func(time.Duration, bool) {
		mu.Lock()
		defer mu.Unlock()
		made[server]++
		return func(took time.Duration, failed bool) {
			mu.Lock()
			defer mu.Unlock()
			if took == time.Second && failed {
				heard++
			}
		}
	}}
	u, err := dnsfilter.ParseUpstream("192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	a.of(u)
	if made["udp://192.0.2.1:53"] != 1 {
		t.Errorf("made: %v", made)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { a.hear(u, time.Second, true) })
	}
	wg.Wait()
	if heard != 4 || len(made) != 1 || made["udp://192.0.2.1:53"] != 1 {
		t.Errorf("heard %d, made %v", heard, made)
	}
}
