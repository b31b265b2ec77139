/* Softmax, its logarithm and cross-entropy over rows of float32 without gaps.
 *
 * A row is read while it lies in the cache. Sums go through LANES partial sums, always the same ones, so a
 * result does not depend on threads. The references stand in kernels/softmax.py.
 */
#include "vector_math.h"

#define LANES 32

static float row_max(const float *x, int64_t columns) {
    float lanes[LANES];
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = -INFINITY;
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
    for (; j < columns; j++) lanes[0] = x[j] > lanes[0] ? x[j] : lanes[0];
    for (int lane = 1; lane < LANES; lane++) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
    return lanes[0];
}

static float lane_sum(const float *lanes) {
    float total = 0;
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    return total;
}

/* The sum of exp(x - shift); what is summed goes to `out`, which may be x. */
static float row_exp(const float *x, float shift, float *out, int64_t columns) {
    float lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float e = v_exp(x[j + lane] - shift);
            out[j + lane] = e;
            lanes[lane] += e;
        }
    for (; j < columns; j++) {
        out[j] = v_exp(x[j] - shift);
        lanes[0] += out[j];
    }
    return lane_sum(lanes);
}

/* As row_exp, but nothing is kept. */
static float row_exp_sum(const float *x, float shift, int64_t columns) {
    float lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += v_exp(x[j + lane] - shift);
    for (; j < columns; j++) lanes[0] += v_exp(x[j] - shift);
    return lane_sum(lanes);
}

static float row_dot(const float *x, const float *y, int64_t columns) {
    float lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += x[j + lane] * y[j + lane];
    for (; j < columns; j++) lanes[0] += x[j] * y[j];
    return lane_sum(lanes);
}

static float row_sum(const float *x, int64_t columns) {
    float lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += x[j + lane];
    for (; j < columns; j++) lanes[0] += x[j];
    return lane_sum(lanes);
}

void nb_softmax(const float *x, float *out, int64_t columns, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *from = x + row * columns;
        float *to = out + row * columns;
        const float total = row_exp(from, row_max(from, columns), to, columns);
        const float scale = 1.0f / total;
        for (int64_t j = 0; j < columns; j++) to[j] *= scale;
    }
}

/* dx = y * (grad - sum(grad * y)) */
void nb_softmax_backward(const float *grad, const float *y, float *out, int64_t columns, int64_t begin,
                         int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *g = grad + row * columns, *p = y + row * columns;
        float *to = out + row * columns;
        const float mean = row_dot(g, p, columns);
        for (int64_t j = 0; j < columns; j++) to[j] = p[j] * (g[j] - mean);
    }
}

void nb_log_softmax(const float *x, float *out, int64_t columns, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *from = x + row * columns;
        float *to = out + row * columns;
        const float top = row_max(from, columns);
        const float rest = logf(row_exp_sum(from, top, columns));
        for (int64_t j = 0; j < columns; j++) to[j] = (from[j] - top) - rest;
    }
}

/* dx = grad - exp(y) * sum(grad) */
void nb_log_softmax_backward(const float *grad, const float *y, float *out, int64_t columns, int64_t begin,
                             int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *g = grad + row * columns, *l = y + row * columns;
        float *to = out + row * columns;
        const float total = row_sum(g, columns);
        for (int64_t j = 0; j < columns; j++) to[j] = g[j] - v_exp(l[j]) * total;
    }
}

/* Cross-entropy of rows with classes. A row whose target is `ignored` has loss 0.
 * loss = (1 - smoothing) w[t] (L - x[t]) + smoothing / columns * sum_c w[c] (L - x[c]), where L is the
 * logarithm of the row's sum of exponentials, which is kept. `weight` may be NULL: ones. */
void nb_cross_entropy(const float *x, const int64_t *target, const float *weight, float *loss, float *log_sum,
                      int64_t columns, int64_t ignored, float smoothing, float weight_sum, int64_t begin,
                      int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *from = x + row * columns;
        const int64_t t = target[row];
        if (t == ignored) {
            loss[row] = log_sum[row] = 0;
            continue;
        }
        const float top = row_max(from, columns);
        const float whole = top + logf(row_exp_sum(from, top, columns));
        const float sharp = (1.0f - smoothing) * (weight ? weight[t] : 1.0f) * (whole - from[t]);
        float smooth = 0;
        if (smoothing > 0) {
            const float sum = weight ? row_dot(from, weight, columns) : row_sum(from, columns);
            smooth = smoothing / (float)columns * (weight_sum * whole - sum);
        }
        log_sum[row] = whole;
        loss[row] = sharp + smooth;
    }
}

/* dx = scale[row] * ((a + B) exp(x - L) - a [j = t] - b w[j]), with a = (1 - smoothing) w[t],
 * b = smoothing / columns, B = b * weight_sum; `out` may be x. */
void nb_cross_entropy_backward(const float *scale, const float *x, const int64_t *target, const float *weight,
                               const float *log_sum, float *out, int64_t columns, int64_t ignored,
                               float smoothing, float weight_sum, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *from = x + row * columns;
        float *to = out + row * columns;
        const int64_t t = target[row];
        if (t == ignored) {
            memset(to, 0, (size_t)columns * sizeof(float));
            continue;
        }
        const float a = (1.0f - smoothing) * (weight ? weight[t] : 1.0f) * scale[row];
        const float b = smoothing / (float)columns * scale[row], whole = log_sum[row];
        const float both = a + b * weight_sum;
        if (b == 0)
            for (int64_t j = 0; j < columns; j++) to[j] = both * v_exp(from[j] - whole);
        else if (weight)
            for (int64_t j = 0; j < columns; j++) to[j] = both * v_exp(from[j] - whole) - b * weight[j];
        else
            for (int64_t j = 0; j < columns; j++) to[j] = both * v_exp(from[j] - whole) - b;
        to[t] -= a;
    }
}
