package fetch_test

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/curl"
	"egressd/hermetic/internal/wget"
)

func commands() command.Table {
	all, err := command.Join(curl.Commands(), wget.Commands())
	if err != nil {
		panic(err) // two commands of one name
	}
	return all
}
