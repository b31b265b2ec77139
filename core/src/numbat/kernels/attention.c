/* Attention of float32 in tiles of rows: scores of a tile, their softmax, the product with the values.
 *
 * The products are BLAS's, called by the address that Python hands over (`blas.py`), with the strides of the
 * tensors as they are, so packed queries, keys and values need no copies. The whole matrix of scores
 * never exists: a tile of TILE rows lies in `scratch`, which the caller provides for each range. The backward
 * pass computes the scores again, from the logarithms of the rows' sums that the forward pass kept.
 * The reference is `composed` in ops/attention.py.
 */
#include "vector_math.h"

#define TILE 128
#define LANES 16

typedef void (*gemm_function)(int order, int turn_a, int turn_b, int64_t m, int64_t n, int64_t k, float alpha,
                              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                              int64_t ldc);
enum { BY_ROWS = 101, PLAIN = 111, TURNED = 112 };

/* Strides are in elements, from one batch, head and row to the next; columns have no gaps. */
typedef struct {
    float *data;
    int64_t batch, head, row;
} nb_matrix;

typedef struct {
    nb_matrix query, key, value, out, mask, grad, for_query, for_key, for_value;
    float *log_sums; /* (batches, heads, rows) without gaps */
    gemm_function gemm;
    int64_t batches, heads, rows, key_rows, width, value_width;
    int64_t share;   /* heads of the queries that share a head of keys and values */
    int64_t causal;  /* row i sees the keys up to i */
    double scale;
} nb_attention;

static float *at(const nb_matrix *matrix, int64_t batch, int64_t head, int64_t row) {
    return matrix->data + batch * matrix->batch + head * matrix->head + row * matrix->row;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Adds the mask's row to a row of scores. */
static void add_mask(float *scores, const float *mask, int64_t count) {
    for (int64_t j = 0; j < count; j++) scores[j] += mask[j];
}

/* Softmax of a row in place; gives the logarithm of its sum, or inf for a row that sees nothing. */
static float soften(float *x, int64_t count) {
    float lanes[LANES];
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = -INFINITY;
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
    for (; j < count; j++) lanes[0] = x[j] > lanes[0] ? x[j] : lanes[0];
    float top = lanes[0];
    for (int lane = 1; lane < LANES; lane++) top = lanes[lane] > top ? lanes[lane] : top;
    if (top == -INFINITY) {
        int seen = 0; /* NaN is seen by no maximum */
        for (j = 0; j < count; j++) seen |= x[j] != x[j];
        if (!seen) {
            memset(x, 0, (size_t)count * sizeof(float));
            return INFINITY;
        }
    }
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = 0;
    for (j = 0; j + LANES <= count; j += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            x[j + lane] = v_exp(x[j + lane] - top);
            lanes[lane] += x[j + lane];
        }
    for (; j < count; j++) {
        x[j] = v_exp(x[j] - top);
        lanes[0] += x[j];
    }
    float total = 0;
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    const float scale = 1.0f / total;
    for (j = 0; j < count; j++) x[j] *= scale;
    return top + logf(total);
}

/* The scores of a tile: scale * Q K^T over the first `keys` keys. */
static void score(const nb_attention *a, int64_t b, int64_t h, int64_t row, int64_t height, int64_t keys,
                  float *scores) {
    a->gemm(BY_ROWS, PLAIN, TURNED, height, keys, a->width, (float)a->scale, at(&a->query, b, h, row),
            a->query.row, at(&a->key, b, h / a->share, 0), a->key.row, 0.0f, scores, keys);
}

/* Tiles [begin, end) of batches * heads * tiles. scratch: TILE * key_rows floats. */
void nb_attention_forward(const nb_attention *a, float *scratch, int64_t begin, int64_t end) {
    const int64_t tiles = (a->rows + TILE - 1) / TILE;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit % tiles * TILE, h = unit / tiles % a->heads, b = unit / tiles / a->heads;
        const int64_t height = least(TILE, a->rows - row);
        const int64_t keys = a->causal ? least(a->key_rows, row + height) : a->key_rows;
        float *log_sums = a->log_sums + (b * a->heads + h) * a->rows + row;
        score(a, b, h, row, height, keys, scratch);
        for (int64_t i = 0; i < height; i++) {
            float *scores = scratch + i * keys;
            const int64_t seen = a->causal ? least(keys, row + i + 1) : keys;
            if (a->mask.data) add_mask(scores, at(&a->mask, b, h, row + i), seen);
            log_sums[i] = soften(scores, seen);
            for (int64_t j = seen; j < keys; j++) scores[j] = 0;
        }
        a->gemm(BY_ROWS, PLAIN, PLAIN, height, a->value_width, keys, 1.0f, scratch, keys,
                at(&a->value, b, h / a->share, 0), a->value.row, 0.0f, at(&a->out, b, h, row), a->out.row);
    }
}

static float row_dot(const float *x, const float *y, int64_t count) {
    float lanes[LANES] = {0}, total = 0;
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += x[j + lane] * y[j + lane];
    for (; j < count; j++) lanes[0] += x[j] * y[j];
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    return total;
}

/* Heads of keys [begin, end) of batches * heads / share. scratch: 2 * TILE * key_rows floats.
 * for_key and for_value hold zeros. */
void nb_attention_backward(const nb_attention *a, float *scratch, int64_t begin, int64_t end) {
    const int64_t shared = a->heads / a->share;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t b = unit / shared, kh = unit % shared;
        for (int64_t h = kh * a->share; h < (kh + 1) * a->share; h++)
            for (int64_t row = 0; row < a->rows; row += TILE) {
                const int64_t height = least(TILE, a->rows - row);
                const int64_t keys = a->causal ? least(a->key_rows, row + height) : a->key_rows;
                const float *log_sums = a->log_sums + (b * a->heads + h) * a->rows + row;
                float *weights = scratch, *slopes = scratch + TILE * a->key_rows;
                const float *grad = at(&a->grad, b, h, row);
                score(a, b, h, row, height, keys, weights);
                a->gemm(BY_ROWS, PLAIN, TURNED, height, keys, a->value_width, 1.0f, grad, a->grad.row,
                        at(&a->value, b, kh, 0), a->value.row, 0.0f, slopes, keys);
                for (int64_t i = 0; i < height; i++) {
                    float *p = weights + i * keys, *d = slopes + i * keys;
                    const int64_t seen = a->causal ? least(keys, row + i + 1) : keys;
                    const float delta = row_dot(at(&a->grad, b, h, row + i), at(&a->out, b, h, row + i), a->value_width);
                    const float log_sum = log_sums[i], scale = (float)a->scale;
                    if (a->mask.data) add_mask(p, at(&a->mask, b, h, row + i), seen);
                    for (int64_t j = 0; j < seen; j++) {
                        p[j] = v_exp(p[j] - log_sum);
                        d[j] = p[j] * (d[j] - delta) * scale;
                    }
                    for (int64_t j = seen; j < keys; j++) p[j] = d[j] = 0;
                }
                a->gemm(BY_ROWS, PLAIN, PLAIN, height, a->width, keys, 1.0f, slopes, keys, at(&a->key, b, kh, 0),
                        a->key.row, 0.0f, at(&a->for_query, b, h, row), a->for_query.row);
                a->gemm(BY_ROWS, TURNED, PLAIN, keys, a->width, height, 1.0f, slopes, keys,
                        at(&a->query, b, h, row), a->query.row, 1.0f, at(&a->for_key, b, kh, 0), a->for_key.row);
                a->gemm(BY_ROWS, TURNED, PLAIN, keys, a->value_width, height, 1.0f, weights, keys, grad,
                        a->grad.row, 1.0f, at(&a->for_value, b, kh, 0), a->for_value.row);
            }
    }
}
