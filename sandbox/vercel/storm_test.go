package vercel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/sandbox/vercel/fake"
)

// storms is how many runs go through a storm.
const storms = 100

// bad is what may go wrong with a request.
var bad = []string{
	"status=429", "status=429 retry-after=1", "status=429 retry-after=100", "status=500", "status=502 body=<html>", "status=503 times=3",
	"status=504 times=-1", "status=400", "status=401", "status=404", "status=408", "status=409", "status=410", "status=422", "status=200 body={}",
	"reset=before", "reset=after", "reset=after times=4", "delay=30ms", "slow=1ms", "bytes=20 then=reset", "bytes=100 then=end", "lines=1 then=reset",
	"lines=2 then=end", "lines=1 then=error code=sandbox_stopped", "lines=2 then=error code=sandbox_stream_closed", "lines=0 then=error code=x",
}

// where it may.
var places = []string{
	"POST /v3/sandboxes", "GET /v2/sandboxes/*", "GET /v2/sandboxes/sessions/*", "POST /v2/sandboxes/sessions/*/cmd", "POST /v2/sandboxes/sessions/*/cmd",
	"POST /v2/sandboxes/sessions/*/fs/write", "POST /v2/sandboxes/sessions/*/fs/read", "POST /v2/sandboxes/sessions/*/stop", "DELETE /v2/sandboxes/*",
	"GET /v2/sandboxes/sessions/*/cmd/*", "GET /v2/sandboxes/sessions/*/cmd/*/logs", "GET /v2/sandboxes/sessions/*/cmd", "* *",
}

// Whatever goes wrong: nothing is left running that could be stopped, no file
// here is lost or half written, no secret is where it does not belong.
func TestStorm(t *testing.T) {
	t.Parallel()
	for n := range storms {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			storm(t, rand.New(rand.NewPCG(5, uint64(n))))
		})
	}
}

func storm(t *testing.T, dice *rand.Rand) {
	w := newWorld(t, fake.Config{})
	w.files("keep", "keep", "change", "before", "drop", "drop", "sub/deep", "deep")
	must(t, os.Symlink("keep", filepath.Join(w.dir, "link")))
	var faults []string
	deletes, deaf := 0, false // deaf: the service does not delete, whoever asks
	for range 1 + dice.IntN(4) {
		place, what := places[dice.IntN(len(places))], bad[dice.IntN(len(bad))]
		if what == "status=504 times=-1" && dice.IntN(3) > 0 {
			what = "status=504"
		}
		f, err := fake.ParseFault(fmt.Sprintf("%s skip=%d %s", place, dice.IntN(4), what))
		must(t, err)
		if f.Path == "*" {
			f.Path, f.Skip = "", dice.IntN(12)
		}
		if f.Path == "" || strings.HasPrefix(place, "DELETE") {
			deletes++
			deaf = deaf || deletes > 1 || f.Times > 2 || f.Times < 0 || f.Status/100 == 4 && f.Status != 429 || f.Status == 200 || f.RetryAfter == "100"
		}
		must(t, w.api.Inject(f))
		faults = append(faults, fmt.Sprintf("%s skip=%d %s", place, f.Skip, what))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if dice.IntN(4) == 0 { // somebody gives up
		at := 1 + dice.IntN(12)
		w.watch(func(n int, _ *http.Request) {
			if n == at {
				cancel()
			}
		})
	}
	spec := w.secretive(`echo "hello $VALUE" >/dev/null; echo after >change; rm drop; echo new >new; echo done`)
	spec.Timeout, spec.Grace = 10*time.Second, 100*time.Millisecond
	res, err := w.back.Run(ctx, spec)
	w.watch(nil)
	w.api.ClearFaults()
	heard := []string{w.read(w.out), w.read(w.err)}
	if err != nil {
		heard = append(heard, err.Error())
	}
	w.secrets(w.api.Requests(), heard...)
	if !deaf {
		w.clean()
	}
	w.has("keep", "keep")
	w.has("sub/deep", "deep")
	all := func(change, drop, now string) bool {
		for name, want := range map[string]string{"change": change, "drop": drop, "new": now} {
			data, err := os.ReadFile(filepath.Join(w.dir, name))
			if os.IsNotExist(err) {
				data = []byte("-")
			}
			if string(data) != want {
				return false
			}
		}
		return true
	}
	before, after := all("before", "drop", "-"), all("after\n", "-", "new\n")
	switch {
	case !before && !after && err == nil && ctx.Err() == nil:
		t.Errorf("neither as before nor as after; %d\n%q", res.ExitCode, faults)
	case err == nil && ctx.Err() == nil && res.ExitCode == 0 && (!after || heard[0] != "done\n"):
		t.Errorf("a success without its changes, output %q\n%q", heard[0], faults)
	}
	if t.Failed() {
		t.Logf("%q: %d, %v\n%q", faults, res.ExitCode, err, w.said)
	}
}
