package mountinfo

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	const data = `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
37 36 0:5 / /a\040b\011c\012d\134e rw - tmpfs none rw
38 36 0:6 /x\0 /back\\slash\9 rw - tmpfs none rw
short line
`
	want := Table{
		{"98:0", "/mnt1", "/mnt2"},
		{"0:5", "/", "/a b\tc\nd\\e"},
		{"0:6", `/x\0`, `/back\\slash\9`},
	}
	if got := parse(data); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
