#include "bench/train_peak.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train_work.h"
#include "libfl/base/clock.h"
#include "libfl/num/gemm.h"

double train_gemm_peak(double seconds)
{
    static const size_t sides[] = {192, 384, 768, 1024};
    size_t largest = 1024 * 1024;
    float *a = train_alloc(largest, sizeof(*a));
    float *b = train_alloc(largest, sizeof(*b));
    float *c = train_alloc(largest, sizeof(*c));
    double best = 0.0;
    size_t i;

    for (i = 0; i < largest; i++) {
        a[i] = (float)(i % 7) - 3.0f;
        b[i] = (float)(i % 5) - 2.0f;
    }
    for (i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        size_t n = sides[i];
        uint64_t end = fl_clock_ns() + (uint64_t)(seconds / 4.0 * 1e9);
        uint64_t before;

        do {
            double rate;

            before = fl_clock_ns();
            fl_gemm(false, false, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
            rate = 2.0 * (double)n * (double)n * (double)n / (double)(fl_clock_ns() - before + 1);
            best = rate > best ? rate : best;
        } while (before < end);
    }
    free(a);
    free(b);
    free(c);
    return best;
}

/*
 * Twelve chains hide a latency of four at two or three a cycle, and with their two operands they
 * fit into the sixteen registers that SSE and AVX2 have. Compiled with contraction.
 */
#define CHAINS 12
#define TURNS  20000

#define REGISTER_LOOP(name, threads, target)                                           \
    typedef float name##_v __attribute__((vector_size((threads) * sizeof(float))));    \
    target static float name(void)                                                     \
    {                                                                                  \
        name##_v a0 = {0.0f}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0;             \
        name##_v a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0, a11 = a0;               \
        name##_v x = a0 + 1.0f, y = a0 + 0.5f;                                         \
        int i;                                                                         \
                                                                                       \
        for (i = 0; i < TURNS; i++) {                                                  \
            /* What the compiler does not know it cannot compute beforehand. */        \
            __asm__ volatile("" : REGISTER(x), REGISTER(y));                           \
            a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y;        \
            a4 = a4 * x + y, a5 = a5 * x + y, a6 = a6 * x + y, a7 = a7 * x + y;        \
            a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y, a11 = a11 * x + y;    \
            __asm__ volatile(""                                                        \
                             : REGISTER(a0), REGISTER(a1), REGISTER(a2), REGISTER(a3), \
                               REGISTER(a4), REGISTER(a5));                            \
            __asm__ volatile(""                                                        \
                             : REGISTER(a6), REGISTER(a7), REGISTER(a8), REGISTER(a9), \
                               REGISTER(a10), REGISTER(a11));                          \
        }                                                                              \
        a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                  \
        return a0[0];                                                                  \
    }

#if defined(__x86_64__)
#define REGISTER(v) "+x"(v)
REGISTER_LOOP(loop_avx512, 16, __attribute__((target("avx512f"))))
REGISTER_LOOP(loop_avx2, 8, __attribute__((target("avx2,fma"))))
#elif defined(__aarch64__)
#define REGISTER(v) "+w"(v)
#else
#define REGISTER(v) "+m"(v)
#endif
REGISTER_LOOP(loop_plain, 4, )

struct loop {
    float (*run)(void);
    double threads;
};

static struct loop loop_of(const char *instructions)
{
#if defined(__x86_64__)
    if (strcmp(instructions, "avx512") == 0) {
        return (struct loop){__builtin_cpu_supports("avx512f") ? loop_avx512 : NULL, 16.0};
    }
    if (strcmp(instructions, "avx2") == 0) {
        bool there = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

        return (struct loop){there ? loop_avx2 : NULL, 8.0};
    }
#endif
    (void)instructions;
    return (struct loop){loop_plain, 4.0};
}

double train_fma_peak(const char *instructions, double seconds)
{
    const struct loop loop = loop_of(instructions);
    uint64_t end = fl_clock_ns() + (uint64_t)(seconds * 1e9);
    volatile float sink = 0.0f;
    double best = 0.0;
    uint64_t before;

    if (loop.run == NULL) {
        return 0.0;
    }
    do {
        double rate;

        before = fl_clock_ns();
        sink += loop.run();
        rate = 2.0 * loop.threads * CHAINS * TURNS / (double)(fl_clock_ns() - before + 1);
        best = rate > best ? rate : best;
    } while (before < end);
    (void)sink;
    return best;
}
