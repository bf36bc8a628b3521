#include "textflag.h"

// doNothing is a signal handler in the kernel's calling convention: its return
// address is the restorer of the sigaction.
TEXT doNothing<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	LEAQ	doNothing<>(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
