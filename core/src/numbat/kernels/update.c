/* Optimiser steps over many tensors at once.
 *
 * The tensors are laid end to end in thought: offsets[i] is the common index of the first element of
 * tensor i, offsets[count] the number of all elements. A kernel takes a range [begin, end) of that
 * common index, so that one call (or one call a thread) steps a whole model. The file includes itself
 * once for each element type; NAME(adam) is nb_adam_f32 and nb_adam_f64.
 * The formulas and their order of operations are PyTorch's (torch/optim/_multi_tensor, adam.py, sgd.py).
 * The plain-numpy references stand in updates.py.
 */
#ifndef T

#include <math.h>
#include <stdint.h>

typedef struct {
    double beta1, beta2, eps;
    double step_size;        /* lr / (1 - beta1^t) */
    double root_correction;  /* sqrt(1 - beta2^t) */
    double decay;            /* what is subtracted of a parameter, as a part of it: lr * weight_decay */
    double weight_decay;     /* what is added to a gradient, as a part of the parameter (Adam, not AdamW) */
    double grad_scale;       /* 1, -1 to maximise, or the factor of a clip or of loss scaling */
} nb_adam_scalars;

typedef struct {
    double lr, momentum, dampening, weight_decay;
    double grad_scale;
    int64_t nesterov, first; /* first: the momentum buffers hold nothing yet */
} nb_sgd_scalars;

/* The tensor that holds the common index `at`: the last one that begins at or before it. */
static int64_t tensor_at(const int64_t *offsets, int64_t count, int64_t at) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (offsets[middle] <= at) low = middle; else high = middle;
    }
    return low;
}

/* For each tensor that [begin, end) touches: its number i, the first element j0 and one past the last, j1. */
#define FOR_EACH_TENSOR                                                                               \
    for (int64_t i = tensor_at(offsets, count, begin), at = begin, j0, j1; at < end && i < count;     \
         at = offsets[++i])                                                                           \
        if ((j0 = at - offsets[i]),                                                                   \
            (j1 = (end < offsets[i + 1] ? end : offsets[i + 1]) - offsets[i]), j0 < j1)

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(nb_##name, SUFFIX)

#define T float
#define SUFFIX _f32
#define ROOT sqrtf
#include "update.c"
#undef T
#undef SUFFIX
#undef ROOT
#define T double
#define SUFFIX _f64
#define ROOT sqrt
#include "update.c"

#else

/* Adam and AdamW. `largest` is NULL, or the running maxima of AMSGrad. */
void NAME(adam)(int64_t count, const int64_t *offsets, T *const *params, const T *const *grads,
                T *const *means, T *const *squares, T *const *largest, const nb_adam_scalars *scalars,
                int64_t begin, int64_t end) {
    const T step = (T)-scalars->step_size, root = (T)scalars->root_correction, eps = (T)scalars->eps;
    const T keep = (T)(1 - scalars->decay), lambda = (T)scalars->weight_decay;
    const T one_beta1 = (T)(1 - scalars->beta1), beta2 = (T)scalars->beta2;
    const T one_beta2 = (T)(1 - scalars->beta2), scale = (T)scalars->grad_scale;
    FOR_EACH_TENSOR {
        T *restrict p = params[i], *restrict m = means[i], *restrict v = squares[i];
        const T *restrict g = grads[i];
        if (largest) {
            T *restrict top = largest[i];
            for (int64_t j = j0; j < j1; j++) {
                T gradient = g[j] * scale + lambda * p[j];
                m[j] += one_beta1 * (gradient - m[j]);
                v[j] = v[j] * beta2 + one_beta2 * gradient * gradient;
                top[j] = v[j] > top[j] || v[j] != v[j] ? v[j] : top[j];
                p[j] = p[j] * keep + step * (m[j] / (ROOT(top[j]) / root + eps));
            }
        } else {
            for (int64_t j = j0; j < j1; j++) {
                T gradient = g[j] * scale + lambda * p[j];
                m[j] += one_beta1 * (gradient - m[j]);
                v[j] = v[j] * beta2 + one_beta2 * gradient * gradient;
                p[j] = p[j] * keep + step * (m[j] / (ROOT(v[j]) / root + eps));
            }
        }
    }
}

/* SGD. `buffers` is NULL without momentum. */
void NAME(sgd)(int64_t count, const int64_t *offsets, T *const *params, const T *const *grads,
               T *const *buffers, const nb_sgd_scalars *scalars, int64_t begin, int64_t end) {
    const T lr = (T)scalars->lr, momentum = (T)scalars->momentum, lambda = (T)scalars->weight_decay;
    const T fresh = (T)(1 - scalars->dampening), scale = (T)scalars->grad_scale;
    const int nesterov = (int)scalars->nesterov, first = (int)scalars->first;
    FOR_EACH_TENSOR {
        T *restrict p = params[i];
        const T *restrict g = grads[i];
        if (!buffers) {
            for (int64_t j = j0; j < j1; j++) p[j] -= lr * (g[j] * scale + lambda * p[j]);
            continue;
        }
        T *restrict b = buffers[i];
        if (first)
            for (int64_t j = j0; j < j1; j++) b[j] = g[j] * scale + lambda * p[j];
        if (first && nesterov)
            for (int64_t j = j0; j < j1; j++) p[j] -= lr * (b[j] + momentum * b[j]);
        else if (first)
            for (int64_t j = j0; j < j1; j++) p[j] -= lr * b[j];
        else if (nesterov)
            for (int64_t j = j0; j < j1; j++) {
                T gradient = g[j] * scale + lambda * p[j];
                b[j] = b[j] * momentum + fresh * gradient;
                p[j] -= lr * (gradient + momentum * b[j]);
            }
        else
            for (int64_t j = j0; j < j1; j++) {
                b[j] = b[j] * momentum + fresh * (g[j] * scale + lambda * p[j]);
                p[j] -= lr * b[j];
            }
    }
}

/* The sums of squares of blocks of `block` elements of the common index: partials[b] for the blocks
 * b in [begin_block, end_block). Which elements make a block does not depend on the threads, so
 * neither does the sum of all. Added up in float64 in eight lanes. */
void NAME(square_sum)(int64_t count, const int64_t *offsets, const T *const *tensors, int64_t block,
                      double *partials, int64_t begin_block, int64_t end_block) {
    for (int64_t b = begin_block; b < end_block; b++) {
        const int64_t begin = b * block, last = offsets[count];
        const int64_t end = begin + block < last ? begin + block : last;
        double total = 0;
        FOR_EACH_TENSOR {
            const T *restrict x = tensors[i];
            double lanes[8] = {0};
            int64_t j = j0;
            for (; j + 8 <= j1; j += 8)
                for (int lane = 0; lane < 8; lane++) lanes[lane] += (double)x[j + lane] * (double)x[j + lane];
            for (; j < j1; j++) lanes[0] += (double)x[j] * (double)x[j];
            for (int lane = 0; lane < 8; lane++) total += lanes[lane];
        }
        partials[b] = total;
    }
}

/* Multiplies every element, in place. */
void NAME(scale)(int64_t count, const int64_t *offsets, T *const *tensors, double factor,
                 int64_t begin, int64_t end) {
    const T by = (T)factor;
    FOR_EACH_TENSOR {
        T *restrict x = tensors[i];
        for (int64_t j = j0; j < j1; j++) x[j] *= by;
    }
}

/* Moves every element of `targets` by `weight` of the way to `sources`, in place; as torch.lerp. */
void NAME(lerp)(int64_t count, const int64_t *offsets, T *const *targets, const T *const *sources,
                double weight, int64_t begin, int64_t end) {
    const T near = (T)weight, far = (T)1 - (T)weight;
    const int from_start = weight < 0.5;
    FOR_EACH_TENSOR {
        T *restrict x = targets[i];
        const T *restrict y = sources[i];
        if (from_start)
            for (int64_t j = j0; j < j1; j++) x[j] += near * (y[j] - x[j]);
        else
            for (int64_t j = j0; j < j1; j++) x[j] = y[j] - (y[j] - x[j]) * far;
    }
}

#endif
