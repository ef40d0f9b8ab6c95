"""How the pursuit is computed: compiled single-thread kernels that release the GIL.

`pursue` is the page that says what happens; the files beside it say how. With
NUMBA_DISABLE_JIT=1 they run as the plain Python they are written in, those of `lanes` as the plain
Python written beside them.
"""
