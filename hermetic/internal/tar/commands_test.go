package tar_test

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gzip"
	"egressd/hermetic/internal/tar"
)

func commands() command.Table {
	all, err := command.Join(gzip.Commands(), tar.Commands())
	if err != nil {
		panic(err) // two commands of one name
	}
	return all
}
