package inside

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"egressd/hermetic/command"
	"egressd/sandbox/hermetic/control"
)

// No name is in two tables, and curl is there only with a network.
func TestCommands(t *testing.T) {
	with, err := commands(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	without, err := commands(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curl", "wget"} {
		if with[name] == nil || without[name] != nil {
			t.Errorf("%s: with a network %t, without %t", name, with[name] != nil, without[name] != nil)
		}
	}
	twice := command.Table{"cat": func(context.Context, *command.Call) int { return 0 }}
	if _, err := commands(false, twice); err == nil {
		t.Error("two commands of one name are no error")
	}
}

// Every room that has commands is joined, here or by a room that is.
func TestAllTables(t *testing.T) {
	source := ""
	files, err := filepath.Glob("../../../hermetic/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var rooms []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source += string(text)
		if strings.Contains(string(text), "\nfunc Commands() command.Table") {
			rooms = append(rooms, filepath.Base(filepath.Dir(file)))
		}
	}
	for _, room := range rooms {
		if !regexp.MustCompile(`\b` + room + `\.Commands\(\)`).MatchString(source) {
			t.Errorf("the commands of %s are joined nowhere", room)
		}
	}
	if len(rooms) < 5 {
		t.Errorf("found %d rooms with commands", len(rooms))
	}
}

func TestIsWorker(t *testing.T) {
	for _, args := range [][]string{nil, {"launch"}, {"launch", control.Name}, {control.Name, "x"}, {"/bin/" + control.Name}} {
		if IsWorker(args) {
			t.Errorf("%q is a worker", args)
		}
	}
	if !IsWorker([]string{control.Name}) {
		t.Error("a worker is none")
	}
}
