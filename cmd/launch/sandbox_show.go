package main

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
	"egressd/internal/run/summary"
)

// list prints the sandboxes.
func (c *boxCall) list() error {
	all, err := c.store.Sandboxes()
	if c.opts.json {
		return errors.Join(err, printJSON(c.Stdout, all))
	}
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintln(w, "NAME\tTIER\tSTATUS\tRUNNING\tWHERE\tWORKSPACE")
	} else if err == nil {
		c.Say("launch: there are no sandboxes with a name; make one: launch --name NAME ... -- PROGRAM\n")
	}
	for _, b := range all {
		running := 0
		processes, e := c.store.Processes(b.Name)
		err = errors.Join(err, e)
		for _, p := range processes {
			if !p.Over() {
				running++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", b.Name, b.Tier, statusNow(b, running), running, cmp.Or(b.Remote.Region, "here"), summary.Safe(b.Workspace))
	}
	return errors.Join(err, w.Flush())
}

// statusNow is the status of a sandbox, as far as that is known without asking:
// a hosted one that was left running ends by itself.
func statusNow(b records.Sandbox, running int) records.SandboxStatus {
	until := b.Remote.Until
	if b.Status == records.Active && running == 0 && !until.IsZero() && time.Now().After(until) {
		return records.Stopped
	}
	return b.Status
}

// processes prints what runs and what ran.
func (c *boxCall) processes() error {
	var names []string
	if len(c.operands) > 0 {
		if _, err := c.box(); err != nil {
			return err
		}
		names = c.operands
	} else {
		all, err := c.store.Sandboxes()
		if err != nil {
			c.Fail(cli.ExitNo, err)
		}
		for _, b := range all {
			names = append(names, b.Name)
		}
	}
	var all []records.Process
	var errs []error
	for _, name := range names {
		some, err := c.store.Processes(name)
		some = c.askAbout(some)
		all, errs = append(all, some...), append(errs, err)
	}
	if c.opts.json {
		return errors.Join(append(errs, printJSON(c.Stdout, all))...)
	}
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
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
			p.Started.Local().Format("2006-01-02 15:04:05"), took, summary.Safe(commandLine(p)))
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

// logs prints what a process printed: its outputs on the outputs of the same
// name.
func (c *boxCall) logs() error {
	if c.opts.stream != "" && c.opts.stream != records.ChunkStdout && c.opts.stream != records.ChunkStderr {
		return fmt.Errorf("--stream %q: stdout or stderr", c.opts.stream)
	}
	p, err := c.process()
	if err != nil {
		return err
	}
	if note := p.Metadata.Output; note != "" {
		c.Say("launch: the output of %s %s\n", p.ID, note)
	}
	if !c.opts.follow {
		_, err = c.store.Chunks(p.Sandbox, p.ID, 0, c.chunk)
		return err
	}
	ctx, stop := interrupted()
	defer stop()
	reattached := c.attach(ctx, p)
	err = errors.Join(c.store.Follow(ctx, p.Sandbox, p.ID, 0, c.chunk), reattached())
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		c.code = 130
		return nil
	}
	return err
}

func (c *boxCall) chunk(k records.Chunk) error {
	if c.opts.stream != "" && k.Type != c.opts.stream {
		return nil
	}
	var err error
	switch {
	case c.opts.json:
		err = printJSON(c.Stdout, []records.Chunk{k})
	case k.Type == records.ChunkStdout:
		_, err = io.WriteString(c.Stdout, k.Text())
	case k.Type == records.ChunkStderr:
		_, err = io.WriteString(c.Stderr, k.Text())
	case k.Type == records.ChunkError:
		c.Say("launch: %s\n", k.Message())
	case k.Truncated():
		c.Say("launch: the rest of the output is not recorded: it was too long\n")
	}
	return err
}

// wait waits for a process and ends as it did.
func (c *boxCall) wait() error {
	var limit time.Duration
	if c.opts.timeout != "" {
		var err error
		if limit, err = cli.ParseLimit(c.opts.timeout); err != nil {
			return fmt.Errorf("--timeout: %w", err)
		}
	}
	p, err := c.process()
	if err != nil {
		return err
	}
	ctx, stop := interrupted()
	defer stop()
	reattached := c.attach(ctx, p)
	p, err = c.store.Wait(ctx, c.operands[0], c.operands[1], limit)
	stop()
	if err = errors.Join(err, reattached()); err != nil {
		c.code = 124
		return err
	}
	c.code = cli.ExitNo
	if p.ExitCode != nil {
		c.code = *p.ExitCode
	}
	if p.Status == records.Lost {
		return fmt.Errorf("process %s is lost: %v", p.ID, p.Metadata.Reason)
	}
	return nil
}
