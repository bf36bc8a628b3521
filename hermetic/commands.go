package hermetic

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/awk"
	"egressd/hermetic/internal/base64"
	"egressd/hermetic/internal/chmod"
	"egressd/hermetic/internal/cksum"
	"egressd/hermetic/internal/cp"
	"egressd/hermetic/internal/curl"
	"egressd/hermetic/internal/cut"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/dd"
	"egressd/hermetic/internal/diff"
	"egressd/hermetic/internal/du"
	"egressd/hermetic/internal/env"
	"egressd/hermetic/internal/expr"
	"egressd/hermetic/internal/file"
	"egressd/hermetic/internal/find"
	"egressd/hermetic/internal/getopt"
	"egressd/hermetic/internal/grep"
	"egressd/hermetic/internal/gzip"
	"egressd/hermetic/internal/head"
	"egressd/hermetic/internal/iconv"
	"egressd/hermetic/internal/jq"
	"egressd/hermetic/internal/ls"
	"egressd/hermetic/internal/mkdir"
	"egressd/hermetic/internal/numfmt"
	"egressd/hermetic/internal/od"
	"egressd/hermetic/internal/patch"
	"egressd/hermetic/internal/printf"
	"egressd/hermetic/internal/realpath"
	"egressd/hermetic/internal/sed"
	"egressd/hermetic/internal/seq"
	"egressd/hermetic/internal/sort"
	"egressd/hermetic/internal/split"
	"egressd/hermetic/internal/stat"
	"egressd/hermetic/internal/tar"
	"egressd/hermetic/internal/touch"
	"egressd/hermetic/internal/tr"
	"egressd/hermetic/internal/tree"
	"egressd/hermetic/internal/uname"
	"egressd/hermetic/internal/wget"
	"egressd/hermetic/internal/xargs"
	"egressd/hermetic/internal/yq"
)

// Commands is what a script can call besides the shell's builtins: ours, curl
// and wget if there is a network, and more (nil: none). A name that is there
// twice is an error.
func Commands(network bool, more command.Table) (command.Table, error) {
	tables := []command.Table{
		awk.Commands(), base64.Commands(), chmod.Commands(), cksum.Commands(), cp.Commands(), cut.Commands(),
		date.Commands(), dd.Commands(), diff.Commands(), du.Commands(), env.Commands(), expr.Commands(),
		file.Commands(), find.Commands(), getopt.Commands(), grep.Commands(), gzip.Commands(), head.Commands(),
		iconv.Commands(), jq.Commands(), ls.Commands(), mkdir.Commands(), numfmt.Commands(), od.Commands(),
		patch.Commands(), printf.Commands(), realpath.Commands(), sed.Commands(), seq.Commands(), sort.Commands(),
		split.Commands(), stat.Commands(), tar.Commands(), touch.Commands(), tr.Commands(), tree.Commands(),
		uname.Commands(), xargs.Commands(), yq.Commands(),
		more,
	}
	if network {
		tables = append(tables, curl.Commands(), wget.Commands())
	}
	return command.Join(tables...)
}
