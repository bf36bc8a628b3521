package sandboxes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"egressd/internal/cli"
	"egressd/internal/run/records"
)

// timeFormat is how times are shown to people.
const timeFormat = "2006-01-02 15:04:05"

// List prints the sandboxes.
func (s *Set) List(asJSON bool) error {
	all, err := s.store.Sandboxes()
	if asJSON {
		return errors.Join(err, printJSON(s.Stdout, all))
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintln(w, "NAME\tTIER\tSTATUS\tRUNNING\tWHERE\tWORKSPACE")
	} else if err == nil {
		s.Say("launch: there are no sandboxes with a name; make one: launch --name NAME ... -- PROGRAM\n")
	}
	for _, b := range all {
		running := 0
		processes, e := s.store.Processes(b.Name)
		err = errors.Join(err, e)
		for _, p := range processes {
			if !p.Over() {
				running++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", b.Name, b.Tier, statusNow(b, running), running, cmp.Or(b.Remote.Region, "here"), cli.Safe(b.Workspace))
	}
	return errors.Join(err, w.Flush())
}

// statusNow is the status of a sandbox as far as it is known without asking: a
// hosted one that was left running ends by itself.
func statusNow(b records.Sandbox, running int) records.SandboxStatus {
	until := b.Remote.Until
	if b.Status == records.Active && running == 0 && !until.IsZero() && time.Now().After(until) {
		return records.Stopped
	}
	return b.Status
}

// Processes prints what runs and what ran in a sandbox, or in all if name is "".
func (s *Set) Processes(name string, asJSON bool) error {
	names := []string{name}
	if name == "" {
		names = nil
		all, err := s.store.Sandboxes()
		if err != nil {
			s.Fail(cli.ExitNo, err)
		}
		for _, b := range all {
			names = append(names, b.Name)
		}
	} else if _, err := s.sandbox(name); err != nil {
		return err
	}
	var all []records.Process
	var errs []error
	for _, name := range names {
		some, err := s.store.Processes(name)
		all, errs = append(all, s.refresh(some)...), append(errs, err)
	}
	if asJSON {
		return errors.Join(append(errs, printJSON(s.Stdout, all))...)
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintln(w, "PROCESS\tSANDBOX\tSTATUS\tEXIT\tSTARTED\tTOOK\tCOMMAND")
	}
	for _, p := range all {
		exit, took := "-", "-"
		if p.ExitCode != nil {
			exit = strconv.Itoa(*p.ExitCode)
		}
		if p.Ended != nil {
			took = p.Ended.Sub(p.Started).Round(time.Millisecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.60s\n", p.ID, p.Sandbox, p.Status, exit,
			p.Started.Local().Format(timeFormat), took, cli.Safe(commandLine(p)))
	}
	return errors.Join(append(errs, w.Flush())...)
}

func printJSON[T any](w io.Writer, all []T) error {
	for _, v := range all {
		line, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// LogOptions is how Logs prints.
type LogOptions struct {
	JSON   bool
	Follow bool   // until the process ends
	Stream string // stdout or stderr only; "": both
}

// exitInterrupted is the exit code of a command that Ctrl-C ended.
const exitInterrupted = 130

// Logs prints what a process printed, each output on the output of that name. id
// "" is the last process. It reports the exit code.
func (s *Set) Logs(sandbox, id string, o LogOptions) (int, error) {
	if o.Stream != "" && o.Stream != records.ChunkStdout && o.Stream != records.ChunkStderr {
		return cli.ExitNo, fmt.Errorf("--stream %q: stdout or stderr", o.Stream)
	}
	p, err := s.process(sandbox, id)
	if err != nil {
		return cli.ExitNo, err
	}
	if note := p.Metadata.Output; note != "" {
		s.Say("launch: the output of %s %s\n", p.ID, note)
	}
	show := func(c records.Chunk) error { return s.chunk(c, o) }
	if !o.Follow {
		_, err = s.store.Chunks(p.Sandbox, p.ID, 0, show)
		return cli.ExitOK, err
	}
	ctx, stop := interrupted()
	defer stop()
	detach := s.keepAttached(ctx, p)
	err = s.store.Follow(ctx, p.Sandbox, p.ID, 0, show)
	over := ctx.Err() != nil
	stop()
	if err = errors.Join(err, detach()); over && errors.Is(err, context.Canceled) {
		return exitInterrupted, nil
	}
	return cli.ExitOK, err
}

// chunk prints one chunk of a stream.
func (s *Set) chunk(c records.Chunk, o LogOptions) error {
	if o.Stream != "" && c.Type != o.Stream {
		return nil
	}
	var err error
	switch {
	case o.JSON:
		err = printJSON(s.Stdout, []records.Chunk{c})
	case c.Type == records.ChunkStdout:
		_, err = io.WriteString(s.Stdout, c.Text())
	case c.Type == records.ChunkStderr:
		_, err = io.WriteString(s.Stderr, c.Text())
	case c.Type == records.ChunkError:
		s.Say("launch: %s\n", c.Message())
	case c.Truncated():
		s.Say("launch: the rest of the output is not recorded: it was too long\n")
	}
	return err
}

// exitTimeout is the exit code if a wait took too long, as with timeout(1).
const exitTimeout = 124

// Wait waits for the end of a process and reports its exit code. timeout is as
// cli.ParseLimit reads it; "" is 5 minutes.
func (s *Set) Wait(sandbox, id, timeout string) (int, error) {
	var limit time.Duration
	if timeout != "" {
		var err error
		if limit, err = cli.ParseLimit(timeout); err != nil {
			return cli.ExitNo, fmt.Errorf("--timeout: %w", err)
		}
	}
	p, err := s.process(sandbox, id)
	if err != nil {
		return cli.ExitNo, err
	}
	ctx, stop := interrupted()
	defer stop()
	detach := s.keepAttached(ctx, p)
	p, err = s.store.Wait(ctx, sandbox, p.ID, limit)
	stop()
	if err = errors.Join(err, detach()); err != nil {
		return exitTimeout, err
	}
	code := cli.ExitNo
	if p.ExitCode != nil {
		code = *p.ExitCode
	}
	if p.Status == records.Lost {
		return code, fmt.Errorf("process %s is lost: %s", p.ID, p.Metadata.Reason)
	}
	return code, nil
}
