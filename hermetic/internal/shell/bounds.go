package shell

import (
	"egressd/hermetic/limits"
)

// grow counts bytes that variables hold, and refuses a value of size bytes that
// is over the limit.
func (sh *shell) grow(by int64, size int) {
	sh.checkLen(size)
	sh.held += by
	if most := sh.ses.Budget.Limits.Memory / 2; sh.held > most {
		sh.exceed(&limits.Exceeded{Name: "memory", Limit: most, What: "bytes are held by variables"})
	}
}

func (sh *shell) checkLen(n int) {
	if most := sh.ses.Budget.Limits.String; int64(n) > most {
		sh.exceed(&limits.Exceeded{Name: "string", Limit: most, What: "bytes are in one string"})
	}
}

func (sh *shell) checkArray(n int) {
	if most := sh.ses.Budget.Limits.Array; int64(n) > most {
		sh.exceed(&limits.Exceeded{Name: "array", Limit: most, What: "elements are in one array"})
	}
}

func (sh *shell) checkGlobs(n int) {
	if most := sh.ses.Budget.Limits.Globs; int64(n) > most {
		sh.exceed(&limits.Exceeded{Name: "globs", Limit: most, What: "words came out of one expansion"})
	}
}
