// Command reader reads a request as a collector does, with its own library, and prints
// what it found.
package main

import (
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = read(text)
	}
	if err != nil {
		fmt.Println("wrong:", err)
		os.Exit(1)
	}
}

func read(text []byte) error {
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalJSON(text); err != nil {
		return err
	}
	for _, from := range req.Logs().ResourceLogs().All() {
		fmt.Println(from.Resource().Attributes().AsRaw())
		for _, scope := range from.ScopeLogs().All() {
			for _, r := range scope.LogRecords().All() {
				fmt.Println(scope.Scope().Name(), r.Timestamp().AsTime().Format("2006-01-02T15:04:05.999999999Z"), r.SeverityNumber(), r.EventName(), r.Attributes().AsRaw(), len(r.Body().Str()))
			}
		}
	}
	return nil
}
