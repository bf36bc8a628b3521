package layout

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func TestFunction(t *testing.T) {
	text := "f() { echo a; if x; then b; elif c; then d; else e; fi; for i in 1 2; do :; done; case x in a|b) q;; esac; ( s ) & }"
	f, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	want := `f () 
{ 
    echo a;
    if x; then
        b;
    else
        if c; then
            d;
        else
            e;
        fi;
    fi;
    for i in 1 2;
    do
        :;
    done;
    case x in 
        a | b)
            q
        ;;
    esac;
    ( s ) &
}
`
	if got := Function("f", f.Stmts[0].Cmd.(*syntax.FuncDecl).Body, text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
