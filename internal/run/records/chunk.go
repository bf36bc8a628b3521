package records

import (
	"encoding/json"
	"time"
)

// Types of chunks.
const (
	ChunkStatus = "status" // the process started; or its output is no longer recorded
	ChunkStdout = "stdout"
	ChunkStderr = "stderr"
	ChunkError  = "error"
	ChunkExit   = "exit" // the last one
)

// Chunk is one line of a process's stream.
type Chunk struct {
	Version int             `json:"version"`
	At      time.Time       `json:"at"`
	Seq     int             `json:"seq"` // from 1, without gaps
	Type    string          `json:"type"`
	Sandbox string          `json:"sandboxId"`
	Process string          `json:"processId"`
	Data    json.RawMessage `json:"data,omitempty"`   // a string in ChunkStdout and ChunkStderr, else an object
	Offset  int64           `json:"offset,omitempty"` // of an output: its bytes so far, this chunk's included
}

// Data of the chunks that are not output, as they are written.
type (
	startData struct {
		Args    []string `json:"args"`
		Command string   `json:"command"`
		Dir     *string  `json:"cwd"` // null: launch's own
		Status  Status   `json:"status"`
	}
	truncatedData struct {
		Status    Status `json:"status"`
		Truncated bool   `json:"truncated"`
	}
	errorData struct {
		Message string `json:"message"`
	}
	exitData struct {
		ExitCode *int   `json:"exitCode"` // null: not known
		Message  string `json:"message,omitempty"`
		Status   Status `json:"status"`
	}
)

// Text reports what an output chunk printed, else "".
func (c *Chunk) Text() string { return dataOf[string](c) }

// Message reports the message of a ChunkError or ChunkExit, else "".
func (c *Chunk) Message() string { return dataOf[exitData](c).Message }

// ExitCode reports the exit code of a ChunkExit; nil if it is not known.
func (c *Chunk) ExitCode() *int { return dataOf[exitData](c).ExitCode }

// Truncated reports whether the output from here on is not recorded.
func (c *Chunk) Truncated() bool {
	return c.Type == ChunkStatus && dataOf[truncatedData](c).Truncated
}

// dataOf decodes the data of c. Data of another shape is the zero T: a stream is
// shown as far as it can be read.
func dataOf[T any](c *Chunk) T {
	var v T
	if json.Unmarshal(c.Data, &v) != nil {
		var zero T
		return zero
	}
	return v
}
