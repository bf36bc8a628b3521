package hermetic

import (
	_ "embed"
	"testing"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu/gnutest"
)

// What the real commands print of Debian 12: coreutils 9.1, findutils 4.9,
// util-linux 2.38, tree 2.1.0, file 5.44.
var (
	//go:embed testdata/text.json
	recordedText []byte
	//go:embed testdata/files.json
	recordedFiles []byte
	//go:embed testdata/run.json
	recordedRuns []byte
)

func allCommands(t testing.TB) command.Table {
	t.Helper()
	all, err := Commands(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Tools that work on lines and bytes.
func TestRecordedText(t *testing.T) { gnutest.Recorded(t, allCommands(t), recordedText) }

// Tools that work on files, and what they change.
func TestRecordedFiles(t *testing.T) { gnutest.Changes(t, allCommands(t), recordedFiles, false) }

// Tools that run others, compare and describe.
func TestRecordedRuns(t *testing.T) { gnutest.Changes(t, allCommands(t), recordedRuns, false) }
