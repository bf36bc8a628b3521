package hermetic

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"egressd/hermetic/command"
)

// No name is in two tables, and curl is there only with a network.
func TestCommands(t *testing.T) {
	with, err := Commands(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Commands(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curl", "wget"} {
		if with[name] == nil || without[name] != nil {
			t.Errorf("%s: with a network %t, without %t", name, with[name] != nil, without[name] != nil)
		}
	}
	twice := command.Table{"cat": func(context.Context, *command.Call) int { return 0 }}
	if _, err := Commands(false, twice); err == nil {
		t.Error("two commands of one name are no error")
	}
}

// Every room that has commands is joined, here or by a room that is.
func TestAllTables(t *testing.T) {
	source := ""
	files, err := filepath.Glob("internal/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	files = append(files, "commands.go")
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
