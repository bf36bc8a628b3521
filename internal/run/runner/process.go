package runner

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// Command is a program that carries out jobs: [Work] in a process of its own. The
// directory of the job is its last argument.
type Command struct {
	Program string // a file
	Name    string // the program's name for itself
	Args    []string
	Env     []string
	Stderr  *os.File
}

// Start starts the process of a job.
func (c Command) Start(dir string) (Process, error) {
	cmd := exec.Command(c.Program, append(append([]string{}, c.Args...), dir)...) // #nosec: launch itself
	cmd.Args[0] = c.Name
	cmd.Env, cmd.Stderr, cmd.WaitDelay = c.Env, c.Stderr, 10*time.Second
	apart(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, in}, cmd.Start()
}

// process is one that was started.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

func (p *process) Tell(text []byte) error { _, err := p.in.Write(text); return err }
func (p *process) Close() error           { return p.in.Close() }
func (p *process) Wait() error            { return p.cmd.Wait() }
