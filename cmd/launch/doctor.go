package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/run"
	"egressd/internal/run/kernel"
	"egressd/internal/run/microvm"
	"egressd/netns/capture"
	"egressd/sandbox"
	"egressd/sandbox/hermetic"
)

// doctor says what this machine can do and what to change. It reports success
// only when a program really ran in the netns tier.
func (l *launcher) doctor(args []string) int {
	if len(args) == 1 && args[0] == "--inside" {
		if err := kernel.Inside(l.Stdout, prepare); err != nil {
			return l.Fail(cli.ExitNo, err)
		}
		return cli.ExitOK
	}
	if len(args) > 0 {
		return l.Usage(errors.New("doctor takes no arguments"))
	}
	self, err := os.Executable()
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var out strings.Builder
	for _, f := range kernel.Probe(ctx, kernel.Options{Binary: self, Inside: []string{self, "doctor", "--inside"}}) {
		out.WriteString(explain.Finding(f))
	}
	out.WriteString(explain.Finding(hermeticTier(ctx)))
	out.WriteString(explain.Finding(l.vercelTier()))
	var o run.Options
	o.Flags() // the defaults
	o.Report.Quiet, o.Program.Timeout, o.Argv = true, 20*time.Second, []string{"/bin/true"}
	if l.Print(out.String()) != cli.ExitOK {
		return cli.ExitNo
	}
	if code := l.Run(&o); code != cli.ExitOK {
		return max(cli.ExitNo, l.Print("FAIL  a real run: /bin/true did not run behind the gate (see above)\nlaunch does not work on this machine yet.\n"))
	}
	return l.Print("ok    a real run: /bin/true ran behind the gate\nlaunch works on this machine.\n")
}

// hermeticTier runs a script in the hermetic tier, in a directory of its own.
func hermeticTier(ctx context.Context) kernel.Finding {
	f := kernel.Finding{Name: "hermetic tier", OK: true, Detail: "a script ran in a worker that Landlock and seccomp confine"}
	dir, err := os.MkdirTemp("", "launch-doctor-")
	var res sandbox.Result
	if err == nil {
		defer os.RemoveAll(dir)
		res, err = new(hermetic.Backend).Run(ctx, sandbox.Spec{Script: "true", Dir: dir})
	}
	var lacks *sandbox.CapabilityError
	switch {
	case errors.As(err, &lacks):
		f.OK, f.Detail, f.Fix = false, "--tier hermetic does not work: "+lacks.What, lacks.Fix
	case err != nil:
		f.OK, f.Detail = false, "--tier hermetic does not work: "+err.Error()
	case res.ExitCode != 0:
		f.OK, f.Detail = false, "--tier hermetic does not work: a script ended with "+strconv.Itoa(res.ExitCode)
	}
	return f
}

// vercelTier looks for credentials, and asks nobody.
func (l *launcher) vercelTier() kernel.Finding {
	f := kernel.Finding{Name: "vercel tier", OK: true}
	client, err := new(microvm.Options).Client(l.Program, slog.New(slog.DiscardHandler))
	var lacks *sandbox.CapabilityError
	switch {
	case err == nil:
		f.Detail = "there are credentials, for project " + client.ProjectID
	case errors.As(err, &lacks):
		f.Detail = "--tier vercel has no credentials here: " + lacks.What
	default:
		f.Detail = "--tier vercel has no credentials here: " + err.Error()
	}
	return f
}

// prepare sets a namespace up as a run does, in new namespaces of its own.
func prepare() (kernel.Prepared, error) {
	doors, err := capture.Setup(capture.Config{})
	if err != nil {
		return kernel.Prepared{}, err
	}
	return kernel.Prepared{
		NFT: doors.Mode == capture.ModeNFT, Refusals: doors.Refusals != nil, IPv6: doors.IPv6, Dummy: doors.Dummy, Notes: doors.Notes,
	}, doors.Close()
}
