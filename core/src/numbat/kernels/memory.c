/* Memory of arrays: every block begins on a cache line (64 bytes), and freed blocks are kept to be
 * handed out again, so that a training step touches pages which are already mapped.
 *
 * numpy calls these through its data-memory handler (NEP 49). A header of one cache line stands
 * before each block and holds its class, so that nothing rests on the size numpy names at the end.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64
#define CLASSES 512
#define STEPS 8 /* classes per doubling: at most one eighth of a block is unused */

typedef struct block {
    uint64_t class_index;
    uint64_t capacity;
    struct block *next;
    void *whole; /* what malloc gave */
} block;

static block *kept[CLASSES];
static uint64_t kept_bytes, used_bytes, peak_bytes;
static uint64_t kept_limit = (uint64_t)4 << 30;
static volatile int busy;

static void enter(void) {
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) { }
}
static void leave(void) { __atomic_store_n(&busy, 0, __ATOMIC_RELEASE); }

/* Class of a size: multiples of a line up to 8 lines, then eight classes per doubling. */
static unsigned class_of(uint64_t size, uint64_t *capacity) {
    uint64_t lines = (size + LINE - 1) / LINE;
    if (lines < 1) lines = 1;
    if (lines <= STEPS) { *capacity = lines * LINE; return (unsigned)lines; }
    unsigned shift = 63 - (unsigned)__builtin_clzll(lines) - 3;
    uint64_t unit = (uint64_t)1 << shift, steps = (lines + unit - 1) >> shift;
    if (steps == 2 * STEPS) { shift += 1; steps = STEPS; }
    *capacity = (steps << shift) * LINE;
    return (shift + 1) * STEPS + (unsigned)(steps - STEPS) + 1;
}

static block *take(uint64_t size) {
    uint64_t capacity;
    if (size > ((uint64_t)1 << 46)) return NULL;
    unsigned index = class_of(size, &capacity);
    enter();
    block *found = kept[index];
    if (found) { kept[index] = found->next; kept_bytes -= capacity; }
    used_bytes += capacity;
    if (used_bytes > peak_bytes) peak_bytes = used_bytes;
    leave();
    if (!found) {
        void *whole = malloc((size_t)capacity + 2 * LINE);
        if (!whole) {
            enter(); used_bytes -= capacity; leave();
            return NULL;
        }
        found = (block *)(((uintptr_t)whole + LINE - 1) & ~(uintptr_t)(LINE - 1));
        found->whole = whole;
        found->class_index = index;
        found->capacity = capacity;
    }
    return found;
}

static block *head_of(void *data) { return (block *)((char *)data - LINE); }
static void *data_of(block *head) { return head ? (char *)head + LINE : NULL; }

static void *memory_take(void *context, size_t size) {
    (void)context;
    return data_of(take(size));
}

static void *memory_take_zeroed(void *context, size_t count, size_t item) {
    (void)context;
    if (item && count > SIZE_MAX / item) return NULL;
    void *data = data_of(take(count * item));
    if (data) memset(data, 0, count * item);
    return data;
}

static void memory_give(void *context, void *data, size_t size) {
    (void)context;
    (void)size;
    if (!data) return;
    block *head = head_of(data);
    enter();
    used_bytes -= head->capacity;
    int keep = kept_bytes + head->capacity <= kept_limit;
    if (keep) {
        head->next = kept[head->class_index];
        kept[head->class_index] = head;
        kept_bytes += head->capacity;
    }
    leave();
    if (!keep) free(head->whole);
}

static void *memory_resize(void *context, void *data, size_t size) {
    if (!data) return memory_take(context, size);
    block *head = head_of(data);
    if (size <= head->capacity) return data;
    void *moved = memory_take(context, size);
    if (!moved) return NULL;
    memcpy(moved, data, (size_t)head->capacity);
    memory_give(context, data, 0);
    return moved;
}

/* Frees every kept block; answers how many bytes went back to the system. */
uint64_t nb_memory_release(void) {
    uint64_t freed = 0;
    for (unsigned index = 0; index < CLASSES; index++) {
        enter();
        block *head = kept[index];
        kept[index] = NULL;
        for (block *one = head; one; one = one->next) { kept_bytes -= one->capacity; freed += one->capacity; }
        leave();
        while (head) { block *next = head->next; free(head->whole); head = next; }
    }
    return freed;
}

void nb_memory_limit(uint64_t bytes) { kept_limit = bytes; }
uint64_t nb_memory_used(void) { return used_bytes; }
uint64_t nb_memory_kept(void) { return kept_bytes; }
uint64_t nb_memory_peak(void) { return peak_bytes; }
void nb_memory_reset_peak(void) { peak_bytes = used_bytes; }

/* numpy's PyDataMem_Handler, version 1. */
static struct {
    char name[127];
    uint8_t version;
    void *context;
    void *(*take)(void *, size_t);
    void *(*take_zeroed)(void *, size_t, size_t);
    void *(*resize)(void *, void *, size_t);
    void (*give)(void *, void *, size_t);
} handler = {"numbat", 1, NULL, memory_take, memory_take_zeroed, memory_resize, memory_give};

void *nb_memory_handler(void) { return &handler; }
