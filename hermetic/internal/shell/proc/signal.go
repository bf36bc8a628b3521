package proc

import (
	"strconv"
	"strings"
)

// signalNames lists the signals by number, as kill -l does; 0 is EXIT.
func signalNames() []string {
	return []string{
		"EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
		"STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
	}
}

// MaxSignal is the highest signal number.
const MaxSignal = 64

// SignalName is the name of a signal without SIG; "" if there is none of that
// number.
func SignalName(n int) string {
	names := signalNames()
	switch {
	case n >= 0 && n < len(names):
		return names[n]
	case n == 34:
		return "RTMIN"
	case n > 34 && n <= 49:
		return "RTMIN+" + strconv.Itoa(n-34)
	case n >= 50 && n < MaxSignal:
		return "RTMAX-" + strconv.Itoa(MaxSignal-n)
	case n == MaxSignal:
		return "RTMAX"
	}
	return ""
}

// SignalNumber is the number of a signal, given by number or by name, with or
// without SIG; -1 if there is none.
func SignalNumber(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		if SignalName(n) == "" {
			return -1
		}
		return n
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	for n := 0; n <= MaxSignal; n++ {
		if name := SignalName(n); name != "" && name == s {
			return n
		}
	}
	return -1
}

// TrapName is the name that a trap is kept under; "" if s is not a signal.
func TrapName(s string) string {
	switch up := strings.ToUpper(s); up {
	case "ERR", "DEBUG", "RETURN", "EXIT":
		return up
	}
	if n := SignalNumber(s); n >= 0 {
		return SignalName(n)
	}
	return ""
}
