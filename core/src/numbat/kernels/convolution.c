/* Convolutions of float32 over channels-last arrays, by tiles that stay in registers.
 *
 * One kernel computes the forward product and the gradient for the input: each cell ("pixel") of the
 * result is a sum over taps, and a tap is an offset into the input and a matrix of weights. A tile of up
 * to PIXELS pixels times LANES channels is summed in registers. Pixels are told by pointers, so that a
 * tile may run over the ends of rows, and a tap that lies outside reads a row of zeros.
 *
 * The order in which a pixel's products are added depends on the plan alone, never on the range.
 * Reference: kernels/convolution.py, `forward_reference` and the two others.
 */
#include <stdint.h>
#include <string.h>

#if defined(NB_WIDE) || defined(__AVX512F__)
#define V 16
#define NV 2
#define PIXELS 14
#elif defined(__AVX2__)
#define V 8
#define NV 2
#define PIXELS 6
#elif defined(__aarch64__)
#define V 4
#define NV 4
#define PIXELS 6
#else
#define V 4
#define NV 2
#define PIXELS 6
#endif
#define LANES (V * NV)
#define STRIP 384 /* pixels whose coordinates are kept at a time */
#define DEPTH 256 /* rows of weights that stay in the first cache */
#define NARROW 128 /* pixels of a weight's gradient at a time: panel and lines of x share the first cache */

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(V * 4)));

INLINE vec load(const float *at) { vec found; memcpy(&found, at, sizeof found); return found; }
INLINE void store(float *at, vec value) { memcpy(at, &value, sizeof value); }
INLINE vec splat(float value) { return value - (vec){0}; } /* exact for -0 too: one broadcast */

/* A plan: what Python says once for each geometry (kernels/convolution.py, `_plan`). */
typedef struct {
    int64_t batch, in[3];        /* the input's extents */
    int64_t out[3], step[3];     /* the result's extents in this plan, and steps in the input */
    int64_t taps, ins, outs, groups; /* ins, outs: channels of one group */
    int64_t x_channels, y_channels;  /* of a whole pixel */
    int64_t y_stride[4], y_first;    /* strides of the result: batch, depth, row, column */
    int64_t low[3], high[3];     /* the least and greatest offset of the taps */
} plan;

/* For each pixel of a strip: where its first tap lies, and whether all its taps lie inside. */
typedef struct {
    int64_t x[STRIP], y[STRIP];
    int32_t at[STRIP][3];
    uint8_t inner[STRIP];
} strip;

static void lay_strip(const plan *p, int64_t first, int64_t count, strip *s) {
    int64_t rest = first, w = rest % p->out[2];
    rest /= p->out[2];
    int64_t h = rest % p->out[1];
    rest /= p->out[1];
    int64_t d = rest % p->out[0], n = rest / p->out[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t id = d * p->step[0], ih = h * p->step[1], iw = w * p->step[2];
        s->at[i][0] = (int32_t)id;
        s->at[i][1] = (int32_t)ih;
        s->at[i][2] = (int32_t)iw;
        s->x[i] = (((n * p->in[0] + id) * p->in[1] + ih) * p->in[2] + iw) * p->x_channels;
        s->y[i] = p->y_first + n * p->y_stride[0] + d * p->y_stride[1] + h * p->y_stride[2] + w * p->y_stride[3];
        s->inner[i] = id + p->low[0] >= 0 && id + p->high[0] < p->in[0] && ih + p->low[1] >= 0
            && ih + p->high[1] < p->in[1] && iw + p->low[2] >= 0 && iw + p->high[2] < p->in[2];
        if (++w == p->out[2]) {
            w = 0;
            if (++h == p->out[1]) {
                h = 0;
                if (++d == p->out[0]) { d = 0; n++; }
            }
        }
    }
}

INLINE int64_t offset_of(const plan *p, const int64_t *tap) {
    return ((tap[0] * p->in[1] + tap[1]) * p->in[2] + tap[2]) * p->x_channels;
}

INLINE int inside(const plan *p, const int32_t *at, const int64_t *tap) {
    return (uint64_t)(at[0] + tap[0]) < (uint64_t)p->in[0] && (uint64_t)(at[1] + tap[1]) < (uint64_t)p->in[1]
        && (uint64_t)(at[2] + tap[2]) < (uint64_t)p->in[2];
}

/* One tile: `pixels` pixels of the strip from `i`, LANES channels, over some taps and channels. */
INLINE void tile(const int pixels, const plan *p, const strip *s, int64_t i, const float *x,
                 const float *weight, const int64_t *taps, int64_t tap_begin, int64_t tap_end,
                 int64_t c_begin, int64_t c_end, const float *bias, int first, float *y, int64_t lanes,
                 const float *zeros) {
    vec sum[PIXELS][NV];
    if (first) {
        UNROLL for (int v = 0; v < NV; v++) {
            vec start = load(bias + v * V);
            UNROLL for (int j = 0; j < pixels; j++) sum[j][v] = start;
        }
    } else if (lanes == LANES) {
        UNROLL for (int j = 0; j < pixels; j++)
            UNROLL for (int v = 0; v < NV; v++) sum[j][v] = load(y + s->y[i + j] + v * V);
    } else {
        UNROLL for (int j = 0; j < pixels; j++) {
            float part[LANES] = {0};
            for (int64_t c = 0; c < lanes; c++) part[c] = y[s->y[i + j] + c];
            UNROLL for (int v = 0; v < NV; v++) sum[j][v] = load(part + v * V);
        }
    }
    int inner = 1;
    UNROLL for (int j = 0; j < pixels; j++) inner &= s->inner[i + j];
    for (int64_t t = tap_begin; t < tap_end; t++) {
        const int64_t *tap = taps + 3 * t;
        int64_t offset = offset_of(p, tap);
        const float *from[PIXELS];
        if (inner) {
            UNROLL for (int j = 0; j < pixels; j++) from[j] = x + s->x[i + j] + offset;
        } else {
            int any = 0;
            UNROLL for (int j = 0; j < pixels; j++) {
                int held = inside(p, s->at[i + j], tap);
                any |= held;
                from[j] = held ? x + s->x[i + j] + offset : zeros;
            }
            if (!any) continue;
        }
        const float *w = weight + (t * p->ins + c_begin) * LANES;
        for (int64_t c = c_begin; c < c_end; c++, w += LANES) {
            vec row[NV];
            UNROLL for (int v = 0; v < NV; v++) row[v] = load(w + v * V);
            UNROLL for (int j = 0; j < pixels; j++) {
                vec value = splat(from[j][c]);
                UNROLL for (int v = 0; v < NV; v++) sum[j][v] += value * row[v];
            }
        }
    }
    UNROLL for (int j = 0; j < pixels; j++) {
        float *to = y + s->y[i + j];
        if (lanes == LANES) {
            UNROLL for (int v = 0; v < NV; v++) store(to + v * V, sum[j][v]);
        } else {
            float part[LANES];
            UNROLL for (int v = 0; v < NV; v++) store(part + v * V, sum[j][v]);
            for (int64_t c = 0; c < lanes; c++) to[c] = part[c];
        }
    }
}

#define EACH_COUNT(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#if PIXELS > 6
#define EACH_MORE(DO) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14)
#else
#define EACH_MORE(DO)
#endif

static void tiles(int pixels, const plan *p, const strip *s, int64_t i, const float *x, const float *weight,
                  const int64_t *taps, int64_t tap_begin, int64_t tap_end, int64_t c_begin, int64_t c_end,
                  const float *bias, int first, float *y, int64_t lanes, const float *zeros) {
#define CASE(K) case K: tile(K, p, s, i, x, weight, taps, tap_begin, tap_end, c_begin, c_end, bias, first, y, lanes, zeros); break;
    switch (pixels) { EACH_COUNT(CASE) EACH_MORE(CASE) }
#undef CASE
}

/* How many channels of the result the packed weights hold side by side. */
int64_t nb_conv_lanes(void) { return LANES; }
int64_t nb_conv_pixels(void) { return PIXELS; }

/* y = the sum over taps of x at the tap times its weights, plus bias; for the pixels [begin, end).
 * weight: [groups][blocks of LANES outputs][taps][ins][LANES]; bias: [groups][blocks][LANES];
 * taps: [taps][3] offsets; zeros: at least `ins` zeros. */
void nb_conv_forward(const float *x, const float *weight, const float *bias, float *y, const float *zeros,
                     const plan *p, const int64_t *taps, int64_t begin, int64_t end) {
    strip s;
    int64_t blocks = (p->outs + LANES - 1) / LANES;
    int64_t parts = (p->ins + DEPTH + DEPTH / 4 - 1) / (DEPTH + DEPTH / 4);
    int64_t part = parts ? (p->ins + parts - 1) / parts : 1;
    int64_t together = parts > 1 || p->ins < 1 ? 1 : DEPTH / p->ins < 1 ? 1 : DEPTH / p->ins;
    for (int64_t start = begin; start < end; start += STRIP) {
        int64_t count = end - start < STRIP ? end - start : STRIP;
        lay_strip(p, start, count, &s);
        for (int64_t g = 0; g < p->groups; g++) {
            const float *xg = x + g * p->ins;
            for (int64_t b = 0; b < blocks; b++) {
                int64_t lanes = p->outs - b * LANES < LANES ? p->outs - b * LANES : LANES;
                const float *w = weight + (g * blocks + b) * p->taps * p->ins * LANES;
                const float *start_at = bias + (g * blocks + b) * LANES;
                float *yg = y + g * p->outs + b * LANES;
                int first = 1;
                int64_t t = 0;
                do {
                    int64_t t_end = t + together < p->taps ? t + together : p->taps;
                    int64_t c = 0;
                    do {
                        int64_t c_end = c + part < p->ins ? c + part : p->ins;
                        /* Spread the pixels evenly: no tile is much shorter than the others. */
                        int64_t number = (count + PIXELS - 1) / PIXELS;
                        for (int64_t k = 0; k < number; k++) {
                            int64_t i = k * count / number, j = (k + 1) * count / number;
                            tiles((int)(j - i), p, &s, i, xg, w, taps, t, t_end, c, c_end, start_at, first, yg,
                                  lanes, zeros);
                        }
                        first = 0;
                        c = c_end;
                    } while (c < p->ins);
                    t = t_end;
                } while (t < p->taps);
            }
        }
    }
}

/* Weights (groups x outs x ins x cells, by the strides given) into the order of the kernel, for the units
 * [begin, end) of groups x blocks. cells: for each tap, the weight's cell. */
void nb_conv_pack(const float *weight, float *packed, const int64_t *cells, int64_t taps, int64_t ins,
                  int64_t outs, int64_t group_step, int64_t out_step, int64_t in_step, int64_t begin, int64_t end) {
    int64_t blocks = (outs + LANES - 1) / LANES;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t g = unit / blocks, b = unit % blocks;
        int64_t lanes = outs - b * LANES < LANES ? outs - b * LANES : LANES;
        const float *from = weight + g * group_step + b * LANES * out_step;
        float *to = packed + unit * taps * ins * LANES;
        for (int64_t c = 0; c < ins; c++)
            for (int64_t t = 0; t < taps; t++) {
                const float *w = from + c * in_step + cells[t];
                float *row = to + (t * ins + c) * LANES;
                if (lanes == LANES) {
                    for (int k = 0; k < LANES; k++) row[k] = w[k * out_step];
                } else {
                    for (int64_t k = 0; k < lanes; k++) row[k] = w[k * out_step];
                    for (int64_t k = lanes; k < LANES; k++) row[k] = 0;
                }
            }
    }
}

/* One tile of the weight's gradient: `rows` channels of x times LANES of the gradient, over pixels. */
INLINE void weight_tile(const int rows, int64_t count, const float *const *x, const float *const *grad,
                        int64_t c, float *to, int first) {
    vec sum[PIXELS][NV];
    UNROLL for (int j = 0; j < rows; j++)
        UNROLL for (int v = 0; v < NV; v++) sum[j][v] = first ? splat(0) : load(to + j * LANES + v * V);
    for (int64_t k = 0; k < count; k++) {
        const float *values = x[k] + c, *given = grad[k];
        vec row[NV];
        UNROLL for (int v = 0; v < NV; v++) row[v] = load(given + v * V);
        UNROLL for (int j = 0; j < rows; j++) {
            vec value = splat(values[j]);
            UNROLL for (int v = 0; v < NV; v++) sum[j][v] += value * row[v];
        }
    }
    UNROLL for (int j = 0; j < rows; j++)
        UNROLL for (int v = 0; v < NV; v++) store(to + j * LANES + v * V, sum[j][v]);
}

static void weight_tiles(int rows, int64_t count, const float *const *x, const float *const *grad, int64_t c,
                         float *to, int first) {
#define CASE(K) case K: weight_tile(K, count, x, grad, c, to, first); break;
    switch (rows) { EACH_COUNT(CASE) EACH_MORE(CASE) }
#undef CASE
}

/* Parts of the weight's gradient: for the units [begin, end) of chunks x groups x blocks, the sum over the
 * chunk's pixels, laid out [unit][taps][ins][LANES]. grad: as y in the plan, without gaps. */
void nb_conv_weight(const float *x, const float *grad, float *part, const plan *p, const int64_t *taps,
                    int64_t chunk, int64_t begin, int64_t end) {
    strip s;
    float panel[NARROW * LANES];
    const float *from[NARROW], *given[NARROW];
    int64_t blocks = (p->outs + LANES - 1) / LANES;
    int64_t total = p->batch * p->out[0] * p->out[1] * p->out[2];
    int64_t rows = (p->ins + PIXELS - 1) / PIXELS;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t b = unit % blocks, g = unit / blocks % p->groups, first_pixel = unit / (blocks * p->groups) * chunk;
        int64_t last_pixel = first_pixel + chunk < total ? first_pixel + chunk : total;
        int64_t lanes = p->outs - b * LANES < LANES ? p->outs - b * LANES : LANES;
        const float *xg = x + g * p->ins, *yg = grad + g * p->outs + b * LANES;
        float *to = part + unit * p->taps * p->ins * LANES;
        for (int64_t start = first_pixel; start < last_pixel; start += NARROW) {
            int64_t count = last_pixel - start < NARROW ? last_pixel - start : NARROW;
            lay_strip(p, start, count, &s);
            for (int64_t i = 0; i < count; i++) {
                const float *row = yg + s.y[i];
                if (lanes == LANES) {
                    memcpy(panel + i * LANES, row, LANES * sizeof(float));
                } else {
                    for (int64_t k = 0; k < lanes; k++) panel[i * LANES + k] = row[k];
                    for (int64_t k = lanes; k < LANES; k++) panel[i * LANES + k] = 0;
                }
            }
            for (int64_t t = 0; t < p->taps; t++) {
                const int64_t *tap = taps + 3 * t;
                int64_t offset = offset_of(p, tap), held = 0;
                for (int64_t i = 0; i < count; i++) {
                    from[held] = xg + s.x[i] + offset;
                    given[held] = panel + i * LANES;
                    held += s.inner[i] || inside(p, s.at[i], tap);
                }
                for (int64_t k = 0; k < rows; k++) {
                    int64_t c = k * p->ins / rows, c_end = (k + 1) * p->ins / rows;
                    weight_tiles((int)(c_end - c), held, from, given, c, to + (t * p->ins + c) * LANES,
                                 start == first_pixel);
                }
            }
        }
    }
}

/* The weight's gradient (groups x outs x ins x taps) from the parts of all chunks, for the units
 * [begin, end) of groups x blocks; chunks are added in their order. */
void nb_conv_weight_gather(const float *part, float *weight, int64_t chunks, int64_t units, int64_t taps,
                           int64_t ins, int64_t outs, int64_t begin, int64_t end) {
    int64_t blocks = (outs + LANES - 1) / LANES, size = taps * ins * LANES;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t g = unit / blocks, b = unit % blocks;
        int64_t lanes = outs - b * LANES < LANES ? outs - b * LANES : LANES;
        float *to = weight + (g * outs + b * LANES) * ins * taps;
        for (int64_t c = 0; c < ins; c++)
            for (int64_t t = 0; t < taps; t++) {
                const float *from = part + unit * size + (t * ins + c) * LANES;
                float sum[LANES];
                for (int k = 0; k < LANES; k++) sum[k] = from[k];
                for (int64_t q = 1; q < chunks; q++)
                    for (int k = 0; k < LANES; k++) sum[k] += from[q * units * size + k];
                float *cell = to + c * taps + t;
                for (int64_t k = 0; k < lanes; k++) cell[k * ins * taps] = sum[k];
            }
    }
}

/* Depthwise: one weight a channel and tap, [taps][channels]; for the pixels [begin, end). */
void nb_conv_depthwise(const float *x, const float *weight, const float *bias, float *y, const plan *p,
                       const int64_t *taps, int64_t begin, int64_t end) {
    strip s;
    int64_t channels = p->x_channels;
    for (int64_t start = begin; start < end; start += STRIP) {
        int64_t count = end - start < STRIP ? end - start : STRIP;
        lay_strip(p, start, count, &s);
        for (int64_t i = 0; i < count; i++) {
            float *to = y + s.y[i];
            for (int64_t c = 0; c < channels; c += 4 * V) {
                int64_t width = channels - c < 4 * V ? channels - c : 4 * V;
                float sum[4 * V];
                for (int64_t k = 0; k < width; k++) sum[k] = bias[c + k];
                for (int64_t t = 0; t < p->taps; t++) {
                    const int64_t *tap = taps + 3 * t;
                    if (!s.inner[i] && !inside(p, s.at[i], tap)) continue;
                    const float *from = x + s.x[i] + offset_of(p, tap) + c, *w = weight + t * channels + c;
                    if (width == 4 * V)
                        for (int k = 0; k < 4 * V; k++) sum[k] += from[k] * w[k];
                    else
                        for (int64_t k = 0; k < width; k++) sum[k] += from[k] * w[k];
                }
                for (int64_t k = 0; k < width; k++) to[c + k] = sum[k];
            }
        }
    }
}

/* Parts of the depthwise weight's gradient, [chunk][taps][channels], for the chunks [begin, end). */
void nb_conv_depthwise_weight(const float *x, const float *grad, float *part, const plan *p, const int64_t *taps,
                              int64_t chunk, int64_t begin, int64_t end) {
    strip s;
    int64_t channels = p->x_channels, total = p->batch * p->out[0] * p->out[1] * p->out[2];
    for (int64_t unit = begin; unit < end; unit++) {
        float *whole = part + unit * p->taps * channels;
        memset(whole, 0, (size_t)(p->taps * channels) * sizeof(float));
        int64_t last = (unit + 1) * chunk < total ? (unit + 1) * chunk : total;
        for (int64_t start = unit * chunk; start < last; start += STRIP) {
            int64_t count = last - start < STRIP ? last - start : STRIP;
            lay_strip(p, start, count, &s);
            for (int64_t i = 0; i < count; i++) {
                const float *given = grad + s.y[i];
                for (int64_t t = 0; t < p->taps; t++) {
                    const int64_t *tap = taps + 3 * t;
                    if (!s.inner[i] && !inside(p, s.at[i], tap)) continue;
                    const float *from = x + s.x[i] + offset_of(p, tap);
                    float *to = whole + t * channels;
                    for (int64_t c = 0; c < channels; c++) to[c] += from[c] * given[c];
                }
            }
        }
    }
}
