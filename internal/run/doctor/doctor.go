// Package doctor finds out what this machine can do for launch.
//
//	code := doctor.Examine(launcher, doctor.Output{}) // prints what it found
//
// Package kernel does the same for the kernel alone; doctor adds the tiers, and a
// real run.
package doctor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/kernel"
	"egressd/internal/run/microvm"
	"egressd/netns/capture"
	"egressd/sandbox"
	"egressd/sandbox/hermetic"
	"egressd/sandbox/process"
)

// Bounds of an examination.
const (
	probeTime = 30 * time.Second
	runTime   = 20 * time.Second
)

// InsideFlag is the argument of launch doctor in the process that looks from
// inside: it calls Inside.
const InsideFlag = "--inside"

// Inside prints what can be seen only from inside new namespaces, for Examine.
func Inside(w io.Writer) error { return kernel.Inside(w, prepare) }

// Output is how Examine prints.
type Output struct {
	JSON  bool
	Color cli.ColorMode
}

// Report is what Examine prints in JSON.
type Report struct {
	Version  int              `json:"version"` // 1
	Works    bool             `json:"works"`   // a program really ran behind the gate
	Findings []kernel.Finding `json:"findings"`
}

// Examine prints what this machine can do and what to change. It reports success
// only if a program really ran in the process tier.
func Examine(l *run.Launcher, how Output) int {
	self, err := os.Executable()
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	findings := kernel.Probe(ctx, kernel.Options{Binary: self, Inside: []string{self, "doctor", InsideFlag}})
	findings = append(findings, limits(), hermeticTier(ctx), vercelTier(l.Program))
	paint := l.Paint(how.Color, l.Stdout != nil && term.IsTerminal(int(l.Stdout.Fd())))
	var out strings.Builder
	for _, f := range findings {
		out.WriteString(f.Text(paint))
	}
	if !how.JSON && l.Print(out.String()) != cli.ExitOK {
		return cli.ExitNo
	}
	var o run.Options
	o.Flags() // the defaults
	o.Report.Quiet, o.Report.NoRecord, o.Program.Timeout, o.Argv = true, true, runTime, []string{"/bin/true"}
	works := l.Run(&o) == cli.ExitOK
	if how.JSON {
		code := l.PrintJSON(Report{Version: 1, Works: works, Findings: findings})
		if works {
			return code
		}
		return cli.ExitNo
	}
	if !works {
		return max(cli.ExitNo, l.Print(paint.Bad("FAIL ")+" a real run: /bin/true did not run behind the gate (see above)\nlaunch does not work on this machine yet.\n"))
	}
	return l.Print(paint.Good("ok   ") + " a real run: /bin/true ran behind the gate\nlaunch works on this machine.\n")
}

// limits reports which --limit can be kept here.
func limits() kernel.Finding {
	h := process.LimitsHere()
	f := kernel.Finding{Name: "limits", OK: h.WhyNot == nil, Detail: "every --limit can be kept; control groups are made in " + h.Groups}
	if f.OK {
		return f
	}
	f.Detail = "no control group can be made here (" + h.WhyNot.Error() + "), so --limit memory and cpu are refused; files and disk are kept"
	if h.Pids {
		f.Detail += ", and pids, " + strconv.FormatInt(process.DefaultPids(), 10) + " unless you say else"
	} else {
		f.Detail += "; the number of processes is not bounded, since this kernel does not count those of uid 0"
	}
	f.Fix = "systemd-run --user --scope -p Delegate=yes launch ...   # in a session of systemd\nin a container: mount /sys/fs/cgroup writable"
	return f
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

// vercelTier reports whether there are credentials. It does not use them.
func vercelTier(p *cli.Program) kernel.Finding {
	f := kernel.Finding{Name: "vercel tier", OK: true}
	client, err := new(microvm.Options).Client(p, slog.New(slog.DiscardHandler), nil)
	var lacks *sandbox.CapabilityError
	switch {
	case err == nil:
		f.Detail = "there are credentials, from " + client.From + ", for project " + cli.Safe(client.ProjectID)
	case errors.As(err, &lacks):
		f.Detail = "--tier vercel has no credentials here: " + lacks.What
	default:
		f.Detail = "--tier vercel has no credentials here: " + err.Error()
	}
	return f
}

// prepare prepares a namespace for capture as a run does, in this process's own new
// namespaces.
func prepare() (kernel.Prepared, error) {
	doors, err := capture.Setup(capture.Config{})
	if err != nil {
		return kernel.Prepared{}, err
	}
	return kernel.Prepared{
		NFT: doors.Mode == capture.ModeNFT, Refusals: doors.Refusals != nil, IPv6: doors.IPv6, Dummy: doors.Dummy, Notes: doors.Notes,
	}, doors.Close()
}
