package diff_test

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/diff"
	"egressd/hermetic/internal/patch"
)

func commands() command.Table {
	all, err := command.Join(diff.Commands(), patch.Commands())
	if err != nil {
		panic(err) // two commands of one name
	}
	return all
}
