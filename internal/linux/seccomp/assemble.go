package seccomp

import "golang.org/x/net/bpf"

// Offsets in struct seccomp_data (linux/seccomp.h). Both architectures here
// are little-endian: the low half of an argument comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// Return values, linux/seccomp.h.
const (
	retKill  = 0x80000000 // SECCOMP_RET_KILL_PROCESS
	retErrno = 0x00050000
	retAllow = 0x7fff0000
)

// block is a piece of filter that either returns or falls through to what
// follows it.
type block []bpf.Instruction

func ret(value uint32) bpf.Instruction { return bpf.RetConstant{Val: value} }

func loadNumber() bpf.Instruction { return bpf.LoadAbsolute{Off: offNumber, Size: 4} }

// loadArg loads the low 32 bits of argument i. Every argument compared with it is
// an int, or flags below 1<<32: the kernel ignores the upper half too, so
// comparing it would let a caller slip past by setting it (CVE-2019-10063).
func loadArg(i uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offArgs + 8*i, Size: 4} }

// loadUpper loads the upper 32 bits of argument i, for pointers.
func loadUpper(i uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offArgs + 8*i + 4, Size: 4} }

func and(mask uint32) bpf.Instruction {
	return bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask}
}

// when runs body if the accumulator meets test against value, else skips it.
func when(test bpf.JumpTest, value uint32, body ...bpf.Instruction) block {
	return append(block{bpf.JumpIf{Cond: test, Val: value, SkipFalse: uint8(len(body))}}, body...) // #nosec: bodies are short, see TestJumpsFit
}

// oneOf returns from the filter with otherwise unless the accumulator is one
// of values.
func oneOf(otherwise uint32, values ...uint32) block {
	var b block
	for i, v := range values {
		b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(b, ret(otherwise))
}

// unlessNil runs body, which ends in a return, unless argument i is a nil pointer.
func unlessNil(i uint32, body ...bpf.Instruction) block {
	return join(
		block{loadArg(i)}, when(bpf.JumpNotEqual, 0, body...),
		block{loadUpper(i)}, when(bpf.JumpNotEqual, 0, body...),
	)
}

func join(blocks ...block) block {
	var b block
	for _, x := range blocks {
		b = append(b, x...)
	}
	return b
}
