#ifndef FL_BENCH_TRAIN_PEAK_H
#define FL_BENCH_TRAIN_PEAK_H

/* What this core can do at most, in GFLOP/s; measured for about so many seconds. */

/* Best of several square products. */
double train_gemm_peak(double seconds);
/*
 * Fused multiply-adds between registers, memory untouched: with the vectors of "avx512" or "avx2";
 * any other name stands for what the compiler has without them (on x86-64 SSE2, a multiplication
 * and an addition). 0: the processor lacks the instructions.
 */
double train_fma_peak(const char *instructions, double seconds);

#endif
