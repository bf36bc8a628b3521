package od

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// stringsOf is strings(1) of binutils for bytes: runs of printable ASCII.
func stringsOf(w *gnu.Work) {
	args := append([]string{}, w.Args...)
	for i, a := range args {
		if i > 0 && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" && args[i-1] != "-n" {
			args[i] = "-n" + a[1:]
		}
	}
	w.Args = args
	sets, operands, ok := w.Options("[option(s)] [file(s)]", "a,all d,data f,print-file-name n:,bytes: t:,radix: o e:,encoding: w,include-all-whitespace s:,output-separator: T:,target: U:,unicode:")
	if !ok {
		return
	}
	least, radix, named, white, sep := 4, "", false, false, "\n"
	for _, o := range sets {
		switch o.Name {
		case "print-file-name":
			named = true
		case "bytes":
			n, err := strconv.Atoi(o.Value)
			if err != nil || n < 1 {
				w.Die(1, "invalid minimum string length %s", o.Value)
				return
			}
			least = n
		case "radix":
			if radix = map[string]string{"o": "%7o ", "x": "%7x ", "d": "%7d "}[o.Value]; radix == "" {
				w.Die(1, "invalid radix %s", o.Value)
				return
			}
		case "o":
			radix = "%7o "
		case "include-all-whitespace":
			white = true
		case "output-separator":
			sep = o.Value
		case "encoding", "target", "unicode":
			if o.Name != "encoding" || o.Value != "s" && o.Value != "S" {
				w.Refuse("--" + o.Name)
				return
			}
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Fault("'%s': No such file", name)
			continue
		}
		shown := name
		if name == "-" {
			shown = "{standard input}"
		}
		if !named {
			shown = ""
		}
		err = scanStrings(w, r, least, white, func(at int64, s []byte) {
			if shown != "" {
				w.Out.WriteString(shown + ": ")
			}
			if radix != "" {
				fmt.Fprintf(w.Out, radix, at)
			}
			w.Out.Write(s)
			w.Out.WriteString(sep)
		})
		_ = r.Close()
		if err != nil && w.Ctx.Err() == nil {
			w.Complain("Warning: '%s' is %s", name, strings.ToLower(strings.Replace(command.Reason(err), "Is", "", 1)[1:]))
			w.Status = 1
		}
	}
}

func scanStrings(w *gnu.Work, r io.Reader, least int, white bool, found func(int64, []byte)) error {
	buf := make([]byte, 32<<10)
	var run []byte
	at := int64(0)
	flush := func() {
		if len(run) >= least {
			found(at-int64(len(run)), run)
		}
		run = run[:0]
	}
	for {
		n, err := r.Read(buf)
		for _, c := range buf[:n] {
			if c >= 0x20 && c < 0x7f || c == '\t' || white && c >= '\n' && c <= '\r' {
				if run = append(run, c); int64(len(run)) > w.Most() {
					return gnu.ErrMemory
				}
			} else {
				flush()
			}
			at++
		}
		if err != nil {
			flush()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
