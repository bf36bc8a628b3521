package text

import (
	"bufio"
	"fmt"
	"math/big"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// factor writes the prime factors of numbers, of up to 128 bits.
func factor(w *gnu.Work) {
	_, operands, ok := w.Options("[NUMBER]...", "")
	if !ok {
		return
	}
	if len(operands) > 0 {
		for _, o := range operands {
			factorOne(w, o)
		}
		return
	}
	in, _ := w.Open("-")
	words := bufio.NewScanner(in)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		factorOne(w, words.Text())
		if w.Out.Flush() != nil {
			return
		}
	}
}

func factorOne(w *gnu.Work, text string) {
	plain := strings.TrimPrefix(strings.TrimLeft(text, " "), "+")
	n, ok := new(big.Int).SetString(plain, 10)
	if !ok || plain == "" || plain[0] == '-' || plain[0] == '+' {
		w.Fault("%s is not a valid positive integer", gnu.Quote(text))
		return
	}
	if n.BitLen() > 128 {
		w.Fault("%s is too large", gnu.Quote(text))
		return
	}
	fmt.Fprintf(w.Out, "%s:", n)
	primes, ok := primesOf(w, n)
	if !ok {
		return
	}
	for _, p := range primes {
		fmt.Fprintf(w.Out, " %s", p)
	}
	w.Out.WriteByte('\n')
}

// primesOf divides by small numbers, then splits by Pollard's rho.
func primesOf(w *gnu.Work, n *big.Int) ([]*big.Int, bool) {
	var out []*big.Int
	n = new(big.Int).Set(n)
	q, r := new(big.Int), new(big.Int)
	for d := int64(2); d < 1000; d++ {
		small := big.NewInt(d)
		for n.BitLen() > 1 {
			if q.QuoRem(n, small, r); r.Sign() != 0 {
				break
			}
			n.Set(q)
			out = append(out, small)
		}
	}
	stack := []*big.Int{n}
	for len(stack) > 0 {
		m := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch {
		case m.BitLen() <= 1:
		case m.ProbablyPrime(20):
			at := len(out)
			for at > 0 && out[at-1].Cmp(m) > 0 {
				at--
			}
			out = append(out[:at], append([]*big.Int{m}, out[at:]...)...)
		default:
			d := pollard(w, m)
			if d == nil {
				return nil, false
			}
			stack = append(stack, d, new(big.Int).Quo(m, d))
		}
	}
	return out, true
}

// pollard finds a divisor of a number that is not prime; nil: the call ended.
func pollard(w *gnu.Work, n *big.Int) *big.Int {
	one := big.NewInt(1)
	for c := int64(1); ; c++ {
		add := big.NewInt(c)
		x, y, d := big.NewInt(2), big.NewInt(2), big.NewInt(1)
		diff := new(big.Int)
		step := func(v *big.Int) { v.Mod(v.Add(v.Mul(v, v), add), n) }
		for i := 0; d.Cmp(one) == 0; i++ {
			if i%4096 == 4095 && (w.Ctx.Err() != nil || w.Budget.Steps(4096) != nil) {
				return nil
			}
			step(x)
			step(y)
			step(y)
			d.GCD(nil, nil, diff.Abs(diff.Sub(x, y)), n)
		}
		if d.Cmp(n) != 0 {
			return d
		}
	}
}
