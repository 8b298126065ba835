#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libfl/h2/h2_session_impl.h"

/*
 * nghttp2 gets its memory here, so that failure tests reach it by wrapping malloc().
 *
 * Large blocks are pages of their own. A session keeps a buffer for one frame of 16 KiB for as long
 * as it lives and hardly ever uses more than its first hundred bytes, since payloads go around it
 * (NGHTTP2_DATA_FLAG_NO_COPY): of pages, only those that were written to are in memory, while a
 * block of the heap lies where others have been before. Half of what an idle client costs was this.
 */
#define LARGE ((size_t)16 * 1024)

/* In front of each block; as long as malloc() aligns. */
struct head {
    _Alignas(max_align_t) size_t size; /* of the block, as asked for */
    size_t mapped;                     /* bytes of the mapping; 0: of malloc() */
};

_Static_assert(sizeof(struct head) % _Alignof(max_align_t) == 0, "blocks would not be aligned");

static struct head *head_of(void *ptr)
{
    return (struct head *)ptr - 1;
}

static void *mem_malloc(size_t size, void *ctx)
{
    size_t all = size + sizeof(struct head);
    struct head *head;

    (void)ctx;
    if (all < size) {
        return NULL;
    }
    if (size < LARGE) {
        head = malloc(all);
        if (head == NULL) {
            return NULL;
        }
        all = 0;
    } else {
        head = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (head == MAP_FAILED) {
            return NULL;
        }
    }
    *head = (struct head){.size = size, .mapped = all};
    return head + 1;
}

static void mem_free(void *ptr, void *ctx)
{
    struct head *head;

    (void)ctx;
    if (ptr == NULL) {
        return;
    }
    head = head_of(ptr);
    if (head->mapped > 0) {
        (void)munmap(head, head->mapped);
    } else {
        free(head);
    }
}

static void *mem_calloc(size_t n, size_t size, void *ctx)
{
    void *ptr;

    if (size > 0 && n > SIZE_MAX / size) {
        return NULL;
    }
    ptr = mem_malloc(n * size, ctx);
    if (ptr != NULL && head_of(ptr)->mapped == 0) {
        (void)memset(ptr, 0, n * size);
    }
    return ptr;
}

static void *mem_realloc(void *ptr, size_t size, void *ctx)
{
    size_t old = ptr != NULL ? head_of(ptr)->size : 0;
    struct head *head;
    void *fresh;

    if (ptr != NULL && head_of(ptr)->mapped == 0 && size < LARGE) {
        head = realloc(head_of(ptr), size + sizeof(*head));
        if (head == NULL) {
            return NULL;
        }
        head->size = size;
        return head + 1;
    }
    fresh = mem_malloc(size, ctx);
    if (fresh != NULL && old > 0) {
        (void)memcpy(fresh, ptr, old < size ? old : size);
    }
    if (fresh != NULL) {
        mem_free(ptr, ctx);
    }
    return fresh;
}

nghttp2_mem fl__h2_mem(void)
{
    return (nghttp2_mem){
        .malloc = mem_malloc, .free = mem_free, .calloc = mem_calloc, .realloc = mem_realloc};
}
