package head

import (
	"errors"
	"io"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

func tee(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "a,append i,ignore-interrupts p ,output-error::")
	if !ok {
		return
	}
	appending, patient := false, false
	for _, o := range sets {
		switch o.Name {
		case "append":
			appending = true
		case "p", "output-error":
			patient = true
		}
	}
	type sink struct {
		name string
		out  io.Writer
	}
	sinks := []sink{{"standard output", w.Stdout}}
	for _, name := range operands {
		f, err := w.Create(name, appending)
		if err != nil {
			w.Fault("%s: %s", gnu.QuoteName(name), command.Reason(err))
			continue
		}
		defer f.Close()
		sinks = append(sinks, sink{name, f})
	}
	in, _ := w.Open("-")
	buf := make([]byte, 32<<10)
	for len(sinks) > 0 {
		n, err := in.Read(buf)
		kept := sinks[:0]
		for _, s := range sinks {
			_, err := s.out.Write(buf[:n])
			switch {
			case n == 0 || err == nil:
				kept = append(kept, s)
			case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
				if !patient {
					w.Status = 141
					return
				}
			default:
				w.Fault("%s: %s", gnu.QuoteName(s.name), command.Reason(err))
			}
		}
		sinks = kept
		if err != nil {
			if !errors.Is(err, io.EOF) && w.Ctx.Err() == nil {
				w.Fault("read error: %s", command.Reason(err))
			}
			return
		}
	}
}
