/* Elementary functions of float32 in plain arithmetic, so that loops over them become vector code.
 *
 * No branches, no tables, no errno. Each is within 1e-6 (relative) of the true value wherever that is a
 * normal float32, and passes NaN on; tests/kernels/test_activation.py holds them to float64.
 * Polynomials: Cephes (Moshier, expf.c, logf.c, tanhf.c); `v_tail` was fitted here.
 */
#ifndef NB_VECTOR_MATH_H
#define NB_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Several vectors at a time: the polynomials are chains, and a processor needs more than one to keep busy. */
#define INTERLEAVED _Pragma("clang loop interleave_count(4)")

#if defined(__FMA__) || defined(__aarch64__)
#define NB_HAS_FMA 1
#else
#define NB_HAS_FMA 0
#endif

static inline float v_from_bits(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^n for n in [-126, 127]; unsigned, as n is any number where x is NaN. */
static inline float v_power_of_two(int32_t n) {
    return v_from_bits((int32_t)(((uint32_t)n + 127u) << 23));
}

/* x = n ln 2 + r with |r| <= ln 2 / 2; gives exp(r) - 1 and n. */
static inline float v_reduced(float x, int32_t *n) {
    const float whole = __builtin_rintf(x * 1.44269504088896341f);
    float r = x - whole * 0.693359375f;
    r -= whole * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    *n = (int32_t)whole;
    return p * r * r + r;
}

static inline float v_exp(float x) {
    /* Beyond these bounds the result is 0 or inf anyway; NaN passes both comparisons. */
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    int32_t n;
    const float p = v_reduced(x, &n) + 1.0f;
    /* Two factors, so that subnormal results and 2^128 come out right. */
    const int32_t half = n >> 1;
    return p * v_power_of_two(half) * v_power_of_two(n - half);
}

/* exp(x) - 1 for x <= 0; relative accuracy near 0 as well. */
static inline float v_expm1_negative(float x) {
    x = x < -50.0f ? -50.0f : x;
    int32_t n;
    const float q = v_reduced(x, &n), scale = v_power_of_two(n);
    return scale * q + (scale - 1.0f);
}

static inline float v_sigmoid(float x) { return 1.0f / (1.0f + v_exp(-x)); }

static inline float v_tanh(float x) {
    const float a = fabsf(x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float near = p * z * x + x;
    const float far = copysignf(1.0f - 2.0f / (v_exp(2.0f * a) + 1.0f), x);
    return a < 0.625f ? near : far;
}

/* log(1 + y) for 0 <= y <= 1, or for y = exp(-a). */
static inline float v_log1p_unit(float y) {
    const int upper = y > 0.41421356f;
    const float f = upper ? (y - 1.0f) * 0.5f : y, e = upper ? 1.0f : 0.0f, z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float r = p * f * z + e * -2.12194440e-4f;
    r -= 0.5f * z;
    return f + r + e * 0.693359375f;
}

/* The standard normal's density times sqrt(2 pi): exp(-a^2 / 2), with the rounding of a^2 made good. */
static inline float v_bell(float a) {
    const float square = a * a;
#if NB_HAS_FMA
    const float lost = __builtin_fmaf(a, a, -square);
#else
    /* Dekker's product: the upper half of the bits squares exactly. */
    int32_t bits;
    memcpy(&bits, &a, sizeof bits);
    const float high = v_from_bits(bits & ~0xfff), low = a - high;
    const float lost = ((high * high - square) + 2.0f * high * low) + low * low;
#endif
    return v_exp(-0.5f * square) * (1.0f - 0.5f * lost);
}

/* The standard normal's upper tail beyond |x|, and its bell at x. tail = bell * t * P(t) with
 * t = 1 / (1 + 0.35 |x|): a rational Chebyshev fit, relative error 3.2e-8 up to 14.5. */
static inline float v_tail(float x, float *bell) {
    float a = fabsf(x);
    a = a < 16.0f ? a : 16.0f;
    const float t = 1.0f / (1.0f + 0.35f * a);
    float p = -2.915796887e-02f;
    p = p * t + 1.440313178e-01f;
    p = p * t - 2.558398113e-01f;
    p = p * t + 1.593205969e-01f;
    p = p * t - 2.321295727e-02f;
    p = p * t + 1.055527496e-01f;
    p = p * t + 1.198212274e-01f;
    p = p * t + 1.398635234e-01f;
    p = p * t + 1.396213064e-01f;
    *bell = v_bell(a);
    return *bell * t * p;
}

static inline float v_gelu(float v) {
    float bell;
    const float tail = v_tail(v, &bell);
    return v * (v < 0 ? tail : 1.0f - tail);
}

static inline float v_gelu_slope(float v) {
    float bell;
    const float tail = v_tail(v, &bell);
    return (v < 0 ? tail : 1.0f - tail) + v * (bell * 0.398942280401432678f);
}

#define ROOT_2_OVER_PI 0.797884560802865356f

/* 0.5 (1 + tanh u) is the logistic function of 2u, which keeps its accuracy where tanh nears -1. */
static inline float v_gelu_tanh(float v) {
    return v * v_sigmoid(2.0f * ROOT_2_OVER_PI * (v + 0.044715f * v * v * v));
}

static inline float v_gelu_tanh_slope(float v) {
    const float s = v_sigmoid(2.0f * ROOT_2_OVER_PI * (v + 0.044715f * v * v * v));
    return s + v * s * (1.0f - s) * (2.0f * ROOT_2_OVER_PI * (1.0f + 3.0f * 0.044715f * v * v));
}

static inline float v_silu(float v) { return v * v_sigmoid(v); }

static inline float v_silu_slope(float v) {
    const float s = v_sigmoid(v);
    return s * (1.0f + v * (1.0f - s));
}

static inline float v_same(float v) { return v; }

static inline float v_same_slope(float v) {
    (void)v;
    return 1.0f;
}

#endif
