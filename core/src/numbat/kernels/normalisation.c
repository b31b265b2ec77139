/* Normalisation of float32: statistics, affine maps and gradients over planes, and layer norm over rows.
 *
 * Two layouts of a tensor with channels are known, and each kernel comes in both:
 *   _planes: (outer, channels, inner), as NCHW; a channel is `outer` stretches of `inner` elements.
 *   _rows:   (rows, channels), as NHWC; a channel is a column.
 * Kernels over planes take a range of channels or of planes; kernels over rows take a range of rows and, for
 * sums, lay them into the slot of their piece (begin / grain); Python adds the slots up in their order.
 * Sums are kept in float32 for a few thousand elements at most and then in float64.
 * The references stand in kernels/normalisation.py.
 */
#include "vector_math.h"

#define LANES 16
#define STRETCH 4096
#define BLOCK 256 /* channels whose sums stay in the nearest cache */

/* Repeats a loop for each activation, so that none asks within: f is its value, f##_slope its derivative. */
#define FOR_ACTIVATION(LOOP)                  \
    switch (activation) {                     \
        case 1: LOOP(v_silu) break;           \
        case 2: LOOP(v_gelu) break;           \
        case 3: LOOP(v_gelu_tanh) break;      \
        default: LOOP(v_same) break;          \
    }

/* Adds the sums of (x - shift) and of its square. */
static void stretch_moments(const float *x, float shift, int64_t count, double *sum, double *square) {
    for (int64_t start = 0; start < count; start += STRETCH) {
        const int64_t stop = start + STRETCH < count ? start + STRETCH : count;
        float s[LANES] = {0}, q[LANES] = {0};
        int64_t j = start;
        for (; j + LANES <= stop; j += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const float d = x[j + lane] - shift;
                s[lane] += d;
                q[lane] += d * d;
            }
        for (; j < stop; j++) {
            const float d = x[j] - shift;
            s[0] += d;
            q[0] += d * d;
        }
        for (int lane = 0; lane < LANES; lane++) {
            *sum += s[lane];
            *square += q[lane];
        }
    }
}

/* Adds the sums of g and of g * (x - mean). */
static void stretch_sums(const float *g, const float *x, float mean, int64_t count, double *sum, double *dot) {
    for (int64_t start = 0; start < count; start += STRETCH) {
        const int64_t stop = start + STRETCH < count ? start + STRETCH : count;
        float s[LANES] = {0}, q[LANES] = {0};
        int64_t j = start;
        for (; j + LANES <= stop; j += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                s[lane] += g[j + lane];
                q[lane] += g[j + lane] * (x[j + lane] - mean);
            }
        for (; j < stop; j++) {
            s[0] += g[j];
            q[0] += g[j] * (x[j] - mean);
        }
        for (int lane = 0; lane < LANES; lane++) {
            *sum += s[lane];
            *dot += q[lane];
        }
    }
}

/* -- planes ------------------------------------------------------------------------------------------- */

/* Mean and (biased) variance of each channel. */
void nb_moments_planes(const float *x, double *mean, double *variance, int64_t outer, int64_t channels,
                       int64_t inner, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
        const float shift = x[c * inner];
        double sum = 0, square = 0;
        for (int64_t n = 0; n < outer; n++)
            stretch_moments(x + (n * channels + c) * inner, shift, inner, &sum, &square);
        const double count = (double)outer * (double)inner, off = sum / count;
        mean[c] = (double)shift + off;
        variance[c] = square / count - off * off;
        if (variance[c] < 0) variance[c] = 0;
    }
}

/* out = f(scale[c] x + shift[c]) over planes [begin, end) of outer * channels; f by its number in
 * FOR_ACTIVATION: 0 nothing, 1 SiLU, 2 GELU, 3 GELU by tanh. */
void nb_affine_planes(const float *restrict x, const float *scale, const float *shift, float *restrict out,
                      int32_t activation, int64_t channels, int64_t inner, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
        const float a = scale[plane % channels], b = shift[plane % channels];
        const float *from = x + plane * inner;
        float *to = out + plane * inner;
#define LOOP(f) INTERLEAVED for (int64_t j = 0; j < inner; j++) to[j] = f(a * from[j] + b);
        FOR_ACTIVATION(LOOP)
#undef LOOP
    }
}

/* For each channel the sums of g' and of g' (x - mean), where g' = grad f'(scale x + shift). With an
 * activation, g' is written to `through`; else `through` is not used. */
void nb_gradient_sums_planes(const float *grad, const float *x, const float *mean, const float *scale,
                             const float *shift, float *through, double *sums, double *dots, int32_t activation,
                             int64_t outer, int64_t channels, int64_t inner, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, dot = 0;
        for (int64_t n = 0; n < outer; n++) {
            const int64_t at = (n * channels + c) * inner;
            const float *from = x + at, *g = grad + at;
            if (activation) {
                const float a = scale[c], b = shift[c];
                float *to = through + at;
#define LOOP(f) INTERLEAVED for (int64_t j = 0; j < inner; j++) to[j] = g[j] * f##_slope(a * from[j] + b);
                FOR_ACTIVATION(LOOP)
#undef LOOP
                g = to;
            }
            stretch_sums(g, from, mean[c], inner, &sum, &dot);
        }
        sums[c] = sum;
        dots[c] = dot;
    }
}

/* out = a[c] g - b[c] - (x - mean[c]) d[c] over planes; `out` may be g. */
void nb_gradient_planes(const float *g, const float *x, const float *mean, const float *a, const float *b,
                        const float *d, float *out, int64_t channels, int64_t inner, int64_t begin,
                        int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % channels;
        const float ga = a[c], gb = b[c], gd = d[c], m = mean[c];
        const float *from = x + plane * inner, *given = g + plane * inner;
        float *to = out + plane * inner;
        for (int64_t j = 0; j < inner; j++) to[j] = ga * given[j] - gb - (from[j] - m) * gd;
    }
}

/* -- rows --------------------------------------------------------------------------------------------- */

/* Rows of a stretch of some 32 KiB, which is read several times while it lies in the cache. */
static int64_t stretch_rows(int64_t channels) {
    const int64_t rows = 2 * STRETCH / channels;
    return rows < 4 ? 4 : rows;
}

/* slots[piece] = the sums of (x - shift[c]), then those of the squares. Rows go in fours, so that four
 * elements are added for each time a channel's sum is read and written. */
void nb_moments_rows(const float *x, const float *shift, double *slots, int64_t channels, int64_t grain,
                     int64_t begin, int64_t end) {
    double *sums = slots + begin / grain * 2 * channels, *squares = sums + channels;
    for (int64_t c = 0; c < 2 * channels; c++) sums[c] = 0;
    const int64_t step = stretch_rows(channels);
    for (int64_t start = begin; start < end; start += step) {
        const int64_t stop = start + step < end ? start + step : end;
        for (int64_t c = 0; c < channels; c += BLOCK) {
            const int64_t width = channels - c < BLOCK ? channels - c : BLOCK;
            float s[BLOCK] = {0}, q[BLOCK] = {0};
            int64_t row = start;
            for (; row + 4 <= stop; row += 4) {
                const float *x0 = x + row * channels + c, *x1 = x0 + channels, *x2 = x1 + channels;
                const float *x3 = x2 + channels, *k = shift + c;
                for (int64_t j = 0; j < width; j++) {
                    const float a = x0[j] - k[j], b = x1[j] - k[j], d = x2[j] - k[j], e = x3[j] - k[j];
                    s[j] += (a + b) + (d + e);
                    q[j] += (a * a + b * b) + (d * d + e * e);
                }
            }
            for (; row < stop; row++)
                for (int64_t j = 0; j < width; j++) {
                    const float a = x[row * channels + c + j] - shift[c + j];
                    s[j] += a;
                    q[j] += a * a;
                }
            for (int64_t j = 0; j < width; j++) {
                sums[c + j] += s[j];
                squares[c + j] += q[j];
            }
        }
    }
}

void nb_affine_rows(const float *restrict x, const float *scale, const float *shift, float *restrict out,
                    int32_t activation, int64_t channels, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *from = x + row * channels;
        float *to = out + row * channels;
#define LOOP(f) INTERLEAVED for (int64_t j = 0; j < channels; j++) to[j] = f(scale[j] * from[j] + shift[j]);
        FOR_ACTIVATION(LOOP)
#undef LOOP
    }
}

/* slots[piece] = the sums of g', then those of g' (x - mean); as nb_gradient_sums_planes. */
void nb_gradient_sums_rows(const float *grad, const float *x, const float *mean, const float *scale,
                           const float *shift, float *through, double *slots, int32_t activation,
                           int64_t channels, int64_t grain, int64_t begin, int64_t end) {
    double *sums = slots + begin / grain * 2 * channels, *dots = sums + channels;
    for (int64_t c = 0; c < 2 * channels; c++) sums[c] = 0;
    const int64_t step = stretch_rows(channels);
    for (int64_t start = begin; start < end; start += step) {
        const int64_t stop = start + step < end ? start + step : end;
        const float *given = grad;
        if (activation) {
            for (int64_t row = start; row < stop; row++) {
                const int64_t at = row * channels;
#define LOOP(f)                                \
    INTERLEAVED for (int64_t j = 0; j < channels; j++)     \
        through[at + j] = grad[at + j] * f##_slope(scale[j] * x[at + j] + shift[j]);
                FOR_ACTIVATION(LOOP)
#undef LOOP
            }
            given = through;
        }
        for (int64_t c = 0; c < channels; c += BLOCK) {
            const int64_t width = channels - c < BLOCK ? channels - c : BLOCK;
            float s[BLOCK] = {0}, q[BLOCK] = {0};
            int64_t row = start;
            for (; row + 2 <= stop; row += 2) {
                const float *x0 = x + row * channels + c, *x1 = x0 + channels, *m = mean + c;
                const float *g0 = given + row * channels + c, *g1 = g0 + channels;
                for (int64_t j = 0; j < width; j++) {
                    s[j] += g0[j] + g1[j];
                    q[j] += g0[j] * (x0[j] - m[j]) + g1[j] * (x1[j] - m[j]);
                }
            }
            for (; row < stop; row++)
                for (int64_t j = 0; j < width; j++) {
                    const int64_t at = row * channels + c + j;
                    s[j] += given[at];
                    q[j] += given[at] * (x[at] - mean[c + j]);
                }
            for (int64_t j = 0; j < width; j++) {
                sums[c + j] += s[j];
                dots[c + j] += q[j];
            }
        }
    }
}

void nb_gradient_rows(const float *g, const float *x, const float *mean, const float *a, const float *b,
                      const float *d, float *out, int64_t channels, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * channels;
        for (int64_t j = 0; j < channels; j++)
            out[at + j] = a[j] * g[at + j] - b[j] - (x[at + j] - mean[j]) * d[j];
    }
}

/* -- layer norm and RMS norm over rows ------------------------------------------------------------------ */

/* out = (x - mean) rstd weight + bias for each row; weight and bias may be NULL. With `centred` 0 the mean
 * is taken as 0: RMS norm. mean and rstd of each row are kept. */
void nb_layer_norm(const float *x, const float *weight, const float *bias, float *out, float *mean, float *rstd,
                   int64_t columns, double eps, int32_t centred, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
        const float *from = x + row * columns;
        float *to = out + row * columns;
        const float shift = centred ? from[0] : 0.0f;
        double sum = 0, square = 0;
        stretch_moments(from, shift, columns, &sum, &square);
        const double off = centred ? sum / (double)columns : 0.0;
        double variance = square / (double)columns - off * off;
        variance = variance < 0 ? 0 : variance;
        const float m = (float)((double)shift + off), r = (float)(1.0 / sqrt(variance + eps));
        mean[row] = m;
        rstd[row] = r;
        if (weight && bias)
            for (int64_t j = 0; j < columns; j++) to[j] = (from[j] - m) * r * weight[j] + bias[j];
        else if (weight)
            for (int64_t j = 0; j < columns; j++) to[j] = (from[j] - m) * r * weight[j];
        else if (bias)
            for (int64_t j = 0; j < columns; j++) to[j] = (from[j] - m) * r + bias[j];
        else
            for (int64_t j = 0; j < columns; j++) to[j] = (from[j] - m) * r;
    }
}

/* dx for each row; slots[piece] = the sums of grad x^ (for the weight), then those of grad (for the bias),
 * where slots are wanted. */
void nb_layer_norm_backward(const float *grad, const float *x, const float *weight, const float *mean,
                            const float *rstd, float *out, float *slots, int64_t columns, int32_t centred,
                            int64_t grain, int64_t begin, int64_t end) {
    float *for_weight = slots ? slots + begin / grain * 2 * columns : 0;
    float *for_bias = slots ? for_weight + columns : 0;
    if (slots) memset(for_weight, 0, (size_t)columns * 2 * sizeof(float));
    for (int64_t row = begin; row < end; row++) {
        const float *g = grad + row * columns, *from = x + row * columns;
        float *to = out + row * columns;
        const float m = mean[row], r = rstd[row];
        float s[LANES] = {0}, q[LANES] = {0};
        int64_t j = 0;
        for (; j + LANES <= columns; j += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const float h = weight ? g[j + lane] * weight[j + lane] : g[j + lane];
                s[lane] += h;
                q[lane] += h * ((from[j + lane] - m) * r);
            }
        for (; j < columns; j++) {
            const float h = weight ? g[j] * weight[j] : g[j];
            s[0] += h;
            q[0] += h * ((from[j] - m) * r);
        }
        double sum = 0, dot = 0;
        for (int lane = 0; lane < LANES; lane++) {
            sum += s[lane];
            dot += q[lane];
        }
        const float mean_g = centred ? (float)(sum / (double)columns) : 0.0f;
        const float mean_dot = (float)(dot / (double)columns);
        if (weight)
            for (j = 0; j < columns; j++)
                to[j] = r * (g[j] * weight[j] - mean_g - (from[j] - m) * r * mean_dot);
        else
            for (j = 0; j < columns; j++) to[j] = r * (g[j] - mean_g - (from[j] - m) * r * mean_dot);
        if (slots)
            for (j = 0; j < columns; j++) {
                for_weight[j] += g[j] * ((from[j] - m) * r);
                for_bias[j] += g[j];
            }
    }
}
