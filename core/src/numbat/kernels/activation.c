/* Activation functions of float32, forward and backward, element by element.
 *
 * nb_NAME(x, out, a, b, c, begin, end)                 out = f(x)
 * nb_NAME_backward(grad, x, out, a, b, c, begin, end)  out = grad * f'(x)
 *
 * a, b and c are the function's parameters, in the order of its Python signature; what it does not have is
 * 0. The references stand beside each function in ops/activations.py and ops/rectifiers.py.
 * Every comparison is written as PyTorch writes it, so that NaN goes the same way.
 */
#include "vector_math.h"

#define ACTIVATION(name, VALUE, GRADIENT)                                                              \
    void nb_##name(const float *restrict x, float *restrict out, float a, float b, float c,            \
                   int64_t begin, int64_t end) {                                                       \
        (void)a, (void)b, (void)c;                                                                     \
        INTERLEAVED for (int64_t i = begin; i < end; i++) {                                            \
            const float v = x[i];                                                                      \
            out[i] = VALUE;                                                                            \
        }                                                                                              \
    }                                                                                                  \
    void nb_##name##_backward(const float *restrict grad, const float *restrict x, float *restrict out, \
                              float a, float b, float c, int64_t begin, int64_t end) {                 \
        (void)a, (void)b, (void)c;                                                                     \
        INTERLEAVED for (int64_t i = begin; i < end; i++) {                                            \
            const float v = x[i], g = grad[i];                                                         \
            out[i] = GRADIENT;                                                                         \
        }                                                                                              \
    }

/* tanh(log(1 + e^v)) = n / (n + 2) with n = e^2 + 2e, e = e^v; beyond 20 it is 1 in float32. */
static inline float mish_part(float v) {
    const float e = v_exp(v < 20.0f ? v : 20.0f);
    return e * (e + 2.0f);
}

static inline float mish(float v) {
    const float n = mish_part(v);
    return v * (n / (n + 2.0f));
}

/* 1 - gate^2 = (1 - gate) (1 + gate), and 1 - gate = 2 / (n + 2), so nothing cancels; beyond 40 it is 0,
 * whatever it is multiplied with. */
static inline float mish_slope(float v) {
    const float n = mish_part(v), rest = v < 40.0f ? 2.0f / (n + 2.0f) : 0.0f, gate = n / (n + 2.0f);
    return gate + v * v_sigmoid(v) * rest * (1.0f + gate);
}

static inline float softplus(float v, float beta, float threshold) {
    const float u = v * beta;
    const float soft = ((u > 0 ? u : 0.0f) + v_log1p_unit(v_exp(-fabsf(u)))) / beta;
    return u > threshold ? v : soft;
}

static inline float logsigmoid(float v) {
    return (v < 0 ? v : 0.0f) - v_log1p_unit(v_exp(-fabsf(v)));
}

static inline float elu(float v, float alpha, float scale, float input_scale) {
    return v <= 0 ? v_expm1_negative(v * input_scale) * (alpha * scale) : v * scale;
}

static inline float elu_slope(float v, float alpha, float scale, float input_scale) {
    return v <= 0 ? input_scale * alpha * scale * v_exp(v * input_scale) : scale;
}

static inline float clamped(float v, float low, float high) {
    v = v < low ? low : v;
    return v > high ? high : v;
}

ACTIVATION(gelu, v_gelu(v), g * v_gelu_slope(v))
ACTIVATION(gelu_tanh, v_gelu_tanh(v), g * v_gelu_tanh_slope(v))
ACTIVATION(silu, v_silu(v), g * v_silu_slope(v))
ACTIVATION(mish, mish(v), g * mish_slope(v))
ACTIVATION(softplus, softplus(v, a, b), v * a > b ? g : g * v_sigmoid(v * a))
ACTIVATION(logsigmoid, logsigmoid(v), g * v_sigmoid(-v))
ACTIVATION(elu, elu(v, a, b, c), g * elu_slope(v, a, b, c))
ACTIVATION(sigmoid, v_sigmoid(v), g * v * (1.0f - v)) /* the backward takes the result for x */
ACTIVATION(tanh, v_tanh(v), g * (1.0f - v * v))       /* likewise */
ACTIVATION(exp, v_exp(v), g * v)                      /* likewise */
ACTIVATION(relu, v <= 0 ? 0.0f : v, v <= 0 ? 0.0f : g)
ACTIVATION(leaky_relu, v > 0 ? v : v * a, v > 0 ? g : g * a)
ACTIVATION(hardtanh, clamped(v, a, b), v <= a || v >= b ? 0.0f : g)
ACTIVATION(hardsigmoid, clamped(v + 3.0f, 0.0f, 6.0f) / 6.0f, v > -3.0f && v < 3.0f ? g / 6.0f : 0.0f)
ACTIVATION(hardswish, v * clamped(v + 3.0f, 0.0f, 6.0f) / 6.0f,
           v <= -3.0f ? 0.0f : v < 3.0f ? g * (v / 3.0f + 0.5f) : g)
ACTIVATION(hardshrink, v >= -a && v <= a ? 0.0f : v, v >= -a && v <= a ? 0.0f : g)
ACTIVATION(softshrink, v > a ? v - a : v < -a ? v + a : v * 0.0f, v >= -a && v <= a ? 0.0f : g)
ACTIVATION(threshold, v <= a ? b : v, v <= a ? 0.0f : g)

/* out = x * factor + other: dropout and the residual after it. */
void nb_multiply_add(const float *restrict x, const float *restrict factor, const float *restrict other,
                     float *restrict out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out[i] = x[i] * factor[i] + other[i];
}

/* The standard normal's upper tail in float64, for references and for the path of float64. */
void nb_normal_tail_f64(const double *restrict x, double *restrict out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out[i] = 0.5 * erfc(x[i] * 0.70710678118654752440);
}
