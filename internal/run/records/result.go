package records

import "strings"

// Result is the output and the end of a process, from its stream.
type Result struct {
	Success  bool   `json:"success"`
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output"`
	Error    string `json:"error"`
	Command  string `json:"command"`
}

// maxResult bounds each text of a result; the beginning is kept.
const maxResult = 16 << 20

// Result reads the result of a process from its stream. A process without an exit
// code has 1.
func (s *Store) Result(sandbox, id string) (Result, error) {
	p, err := s.Process(sandbox, id)
	if err != nil {
		return Result{}, err
	}
	var out, errs strings.Builder
	code := p.ExitCode
	_, err = s.Chunks(sandbox, id, 0, func(c Chunk) error {
		switch c.Type {
		case ChunkStdout:
			keep(&out, c.Text())
		case ChunkStderr:
			keep(&errs, c.Text())
		case ChunkError:
			keep(&errs, c.Message())
		case ChunkExit:
			if n := c.ExitCode(); n != nil {
				code = n
			}
		}
		return nil
	})
	r := Result{ExitCode: 1, Output: out.String(), Error: errs.String(), Command: strings.Join(append([]string{p.Command}, p.Args...), " ")}
	if code != nil {
		r.ExitCode = *code
	}
	r.Success = r.ExitCode == 0
	return r, err
}

// keep appends what of s still fits.
func keep(b *strings.Builder, s string) {
	b.WriteString(s[:min(len(s), max(maxResult-b.Len(), 0))])
}
