#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libfl/h2/h2_session_impl.h"

/*
 * The allocator of nghttp2, so that failure tests reach it by wrapping malloc(). Any thread.
 *
 * Large blocks are mapped pages. A session keeps a buffer for one frame of 16 KiB for its whole
 * life and rarely uses more than the first hundred bytes, since payloads bypass it
 * (NGHTTP2_DATA_FLAG_NO_COPY): of mapped pages only the written ones are resident, while heap
 * memory was used before and is resident as a whole. This buffer was half of the cost of an idle
 * client.
 */
#define LARGE ((size_t)16 * 1024)

/* Header of each block; its size keeps the alignment of malloc(). */
struct block_head {
    _Alignas(max_align_t) size_t size; /* of the block, as requested */
    size_t mapped;                     /* bytes of the mapping; 0: from malloc() */
};

_Static_assert(sizeof(struct block_head) % _Alignof(max_align_t) == 0,
               "blocks would not be aligned");

static struct block_head *head_of(void *ptr)
{
    return (struct block_head *)ptr - 1;
}

static void *mem_malloc(size_t size, void *ctx)
{
    size_t all = size + sizeof(struct block_head);
    struct block_head *head;

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
    *head = (struct block_head){.size = size, .mapped = all};
    return head + 1;
}

static void mem_free(void *ptr, void *ctx)
{
    struct block_head *head;

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
    struct block_head *head;
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
