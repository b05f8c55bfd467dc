#include "textflag.h"

// func prefetch(addresses *[groupLen]unsafe.Pointer, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ addresses+0(FP), AX
	MOVQ n+8(FP), CX
	LEAQ (AX)(CX*8), CX
	CMPQ AX, CX
	JGE  done

next:
	MOVQ       (AX), DX
	PREFETCHT0 (DX)
	ADDQ       $8, AX
	CMPQ       AX, CX
	JLT        next

done:
	RET
