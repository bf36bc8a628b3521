package jq_test

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/jq"
	"egressd/hermetic/internal/yq"
)

func commands() command.Table {
	all, err := command.Join(jq.Commands(), yq.Commands())
	if err != nil {
		panic(err) // two commands of one name
	}
	return all
}
