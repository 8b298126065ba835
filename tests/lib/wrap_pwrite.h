#ifndef FL_TESTS_WRAP_PWRITE_H
#define FL_TESTS_WRAP_PWRITE_H

/*
 * For tests that replace pwrite() (-Wl,--wrap=pwrite -Wl,--wrap=pwrite64): where a word is shorter
 * than the length of a file, the C library has it under another name for the linker.
 */

#include <stdint.h>

#if SIZE_MAX <= UINT32_MAX
#define __wrap_pwrite __wrap_pwrite64
#define __real_pwrite __real_pwrite64
#endif

#endif
