//go:build !unix

package stage

const noBlock, noFollow = 0, 0
