// The memory-bound parts of a decode step, between the matrix products: norms, rotary embedding, attention over the
// cache, SwiGLU, sampling. One pass over memory each, bfloat16 in and out, float32 inside.
//
// Plain C with GCC/Clang vector types, so that any CPU can run it; AVX512-BF16 shortens the dot products where it is.
// Every row is worked on by one thread in one fixed order: results do not depend on the number of threads.
//
// Packed layouts of one head's cache (D values a token, room a multiple of 16):
//   keys   [room / 16][D / 2][16][2]  sixteen keys side by side: a score needs no sum across lanes
//   values [room / 2][D][2]           pairs of tokens side by side: a pair of weights meets a pair of values

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#define LANES 16
#define BLOCK 1024  // logits summed together before the search
#define INLINE static inline __attribute__((always_inline))

typedef uint16_t bf16;
typedef float f32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t u32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t u16 __attribute__((vector_size(32), aligned(2), may_alias));

INLINE f32 splat(float x) { return x - (f32){0}; }

INLINE f32 widen(const bf16 *from) { return (f32)(__builtin_convertvector(*(const u16 *)from, u32) << 16); }

INLINE void narrow(bf16 *to, f32 x) {
#if defined(__AVX512BF16__)
    *(u16 *)to = (u16)_mm512_cvtneps_pbh((__m512)x);
#else
    u32 bits = (u32)x, even = bits + 0x7fff + ((bits >> 16) & 1);
    u32 nan = (u32)(x != x);
    *(u16 *)to = __builtin_convertvector(((even & ~nan) | ((bits | 0x400000) & nan)) >> 16, u16);
#endif
}

// sum + a.low * b.low + a.high * b.high in every lane of bfloat16 pairs
INLINE f32 dot_pairs(f32 sum, u32 a, u32 b) {
#if defined(__AVX512BF16__)
    return (f32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    sum += (f32)(a << 16) * (f32)(b << 16);
    return sum + (f32)(a & 0xffff0000u) * (f32)(b & 0xffff0000u);
#endif
}

INLINE float total(f32 x) {
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += x[i] + x[i + 8];
    return sum;
}

INLINE f32 choose(i32 mask, f32 yes, f32 no) { return (f32)(((i32)yes & mask) | ((i32)no & ~mask)); }

INLINE f32 larger(f32 a, f32 b) { return choose(a > b, a, b); }

INLINE float largest(f32 x) {
    float most = x[0];
    for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
    return most;
}

// e^x for x <= 0 to float32 accuracy (Cephes' polynomial); 0 below -87
INLINE f32 exponential(f32 x) {
    const float round = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    f32 shifted = x * 1.44269504f + round, n = shifted - round;
    f32 r = x - n * 0.693359375f + n * 2.12194440e-4f;
    f32 p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    i32 scale = (i32)(u32)shifted << 23;
    return choose(x < -87.0f, splat(0), (f32)((i32)p + scale));  // a NaN stays one
}

// x [n, width] += delta (unless null), out = x / rms(x) * weight
void add_norm(bf16 *x, const bf16 *delta, const bf16 *weight, bf16 *out, int64_t n, int64_t width, float eps) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < n; row++) {
        bf16 *line = x + row * width;
        f32 squares = {0};
        for (int64_t i = 0; i < width; i += LANES) {
            f32 value = widen(line + i);
            if (delta) {
                narrow(line + i, value + widen(delta + row * width + i));
                value = widen(line + i);
            }
            squares += value * value;
        }
        float scale = 1.0f / sqrtf(total(squares) / width + eps);
        for (int64_t i = 0; i < width; i += LANES)
            narrow(out + row * width + i, widen(line + i) * scale * widen(weight + i));
    }
}

// gate_up [n, 2 * width] -> out [n, width] = silu(gate) * up
void swiglu(const bf16 *gate_up, bf16 *out, int64_t n, int64_t width) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < n; row++) {
        const bf16 *gate = gate_up + row * 2 * width, *up = gate + width;
        for (int64_t i = 0; i < width; i += LANES) {
            f32 g = widen(gate + i);
            f32 small = exponential(choose(g < 0, g, -g));  // sigmoid without overflow on either side
            f32 sigmoid = choose(g < 0, small, splat(1)) / (1.0f + small);
            narrow(out + row * width + i, g * sigmoid * widen(up + i));
        }
    }
}

// One head of one token: optional norm, then rotation (halves layout).
INLINE void norm_rotate(const bf16 *x, const bf16 *weight, float eps, const float *cosine, const float *sine,
                        bf16 *out, int64_t D) {
    float scale = 1.0f;
    if (weight) {
        f32 squares = {0};
        for (int64_t i = 0; i < D; i += LANES) squares += widen(x + i) * widen(x + i);
        scale = 1.0f / sqrtf(total(squares) / D + eps);
    }
    int64_t half = D / 2;
    for (int64_t i = 0; i < half; i++) {
        float left, right;
        uint32_t l = (uint32_t)x[i] << 16, r = (uint32_t)x[i + half] << 16;
        memcpy(&left, &l, 4);
        memcpy(&right, &r, 4);
        if (weight) {
            float a, b;
            uint32_t wl = (uint32_t)weight[i] << 16, wr = (uint32_t)weight[i + half] << 16;
            memcpy(&a, &wl, 4);
            memcpy(&b, &wr, 4);
            left *= scale * a;
            right *= scale * b;
        }
        float turned_left = left * cosine[i] - right * sine[i];
        float turned_right = right * cosine[i + half] + left * sine[i + half];
        uint32_t bits;
        memcpy(&bits, &turned_left, 4);
        out[i] = (bf16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
        memcpy(&bits, &turned_right, 4);
        out[i + half] = (bf16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
}

// Scores of `heads` (1 to 4, known when compiled) queries against `count` keys in packed blocks.
INLINE void score(const int heads, const uint32_t *queries, const bf16 *keys, int64_t count, int64_t pairs,
                  float scale, float *scores, int64_t stride) {
    for (int64_t block = 0; block * LANES < count; block++) {
        const uint32_t *side = (const uint32_t *)keys + block * pairs * LANES;
        f32 even[4] = {{0}}, odd[4] = {{0}};  // two chains each, to hide the latency of the dot product
        for (int64_t j = 0; j < pairs; j += 2) {
            u32 first = *(const u32 *)(side + j * LANES), second = *(const u32 *)(side + (j + 1) * LANES);
            for (int h = 0; h < heads; h++) {
                even[h] = dot_pairs(even[h], queries[h * pairs + j] - (u32){0}, first);
                odd[h] = dot_pairs(odd[h], queries[h * pairs + j + 1] - (u32){0}, second);
            }
        }
        for (int h = 0; h < heads; h++) *(f32 *)(scores + h * stride + block * LANES) = (even[h] + odd[h]) * scale;
    }
    for (int h = 0; h < heads; h++)
        for (int64_t t = count; t % LANES; t++) scores[h * stride + t] = -INFINITY;
}

// sum [heads][64 or 16 lanes] += weights (bfloat16 pairs) x values, for lanes [from, from + lanes) of D
INLINE void mix(const int heads, const int vectors, const uint32_t *weights, int64_t stride, const bf16 *values,
                int64_t count, int64_t D, int64_t from, f32 sum[4][4]) {
    for (int64_t pair = 0; pair * 2 < count; pair++) {
        const uint32_t *line = (const uint32_t *)values + pair * D + from;
        for (int i = 0; i < vectors; i++) {
            u32 value = *(const u32 *)(line + i * LANES);
            for (int h = 0; h < heads; h++) sum[h][i] = dot_pairs(sum[h][i], weights[h * stride + pair] - (u32){0}, value);
        }
    }
}

typedef struct {
    const bf16 *keys, *values;
    int64_t count, padded;  // padded: count, rounded up to a whole block
} Span;

INLINE void mix_spans(const int heads, const int vectors, const uint32_t *weights, int64_t stride, const Span spans[2],
                      const float *sums, int64_t D, bf16 *out) {
    for (int64_t from = 0; from < D; from += vectors * LANES) {
        f32 sum[4][4] = {{{0}}};
        mix(heads, vectors, weights, stride, spans[0].values, spans[0].count, D, from, sum);
        mix(heads, vectors, weights + spans[0].padded / 2, stride, spans[1].values, spans[1].count, D, from, sum);
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < vectors; i++) narrow(out + h * D + from + i * LANES, sum[h][i] / sums[h]);
    }
}

// Softmax attention of `heads` queries of one token over two spans; `scores` is scratch of heads * stride floats.
INLINE void attend_heads(const int heads, const uint32_t *queries, const Span spans[2], int64_t D, float *scores,
                         bf16 *weights, int64_t stride, bf16 *out) {
    const float scale = 1.0f / sqrtf((float)D);
    float sums[4];
    score(heads, queries, spans[0].keys, spans[0].count, D / 2, scale, scores, stride);
    score(heads, queries, spans[1].keys, spans[1].count, D / 2, scale, scores + spans[0].padded, stride);
    for (int h = 0; h < heads; h++) {
        float *line = scores + h * stride;
        f32 most = splat(-INFINITY), sum = {0};
        for (int64_t t = 0; t < stride; t += LANES) most = larger(most, *(f32 *)(line + t));
        float peak = largest(most);
        for (int64_t t = 0; t < stride; t += LANES) {
            f32 weight = exponential(*(f32 *)(line + t) - peak);
            sum += weight;
            narrow(weights + h * stride + t, weight);
        }
        sums[h] = total(sum);
    }
    if (D % 64)
        mix_spans(heads, 1, (const uint32_t *)weights, stride / 2, spans, sums, D, out);
    else
        mix_spans(heads, 4, (const uint32_t *)weights, stride / 2, spans, sums, D, out);
}

INLINE void store(bf16 *keys, bf16 *values, int64_t at, const bf16 *key, const bf16 *value, int64_t D) {
    uint32_t *side = (uint32_t *)keys + at / LANES * D / 2 * LANES + at % LANES;
    for (int64_t j = 0; j < D / 2; j++) memcpy(side + j * LANES, key + 2 * j, 4);
    bf16 *line = values + at / 2 * 2 * D + at % 2;
    for (int64_t d = 0; d < D; d++) {
        line[2 * d] = value[d];
        if (at % 2 == 0) line[2 * d + 1] = 0;  // its partner will have weight 0 until written: it must be finite
    }
}

typedef struct {
    int64_t n, heads, kv_heads, D, layer, slot_stride, head_stride;
    float eps;
} Shape;

// qkv [n, (heads + 2 * kv_heads) * D] -> out [n, heads * D]. Rotates, appends to the slots, attends to prefix and slot.
//   keys, values   this layer's packed slots; row r owns slot r, of which written[r] tokens are filled
//   prefixes       per row: packed [layers, 2, kv_heads, padded length, D]
// Returns 0, or -1 if memory for scratch ran out.
int attend(const bf16 *qkv, const bf16 *q_norm, const bf16 *k_norm, const float *cosine, const float *sine, bf16 *keys,
           bf16 *values, const int64_t *written, const bf16 *const *prefixes, const int64_t *prefix_lengths, bf16 *out,
           const Shape *shape) {
    const int64_t H = shape->heads, KV = shape->kv_heads, D = shape->D, group = H / KV;
    int64_t longest = 0;
    for (int64_t r = 0; r < shape->n; r++) {
        int64_t length = prefix_lengths[r] + written[r] + 1 + 2 * LANES;
        longest = length > longest ? length : longest;
    }
    int failed = 0;
#pragma omp parallel
    {
        float *scores = malloc(4 * longest * (sizeof(float) + sizeof(bf16)) + (group + 1) * D * sizeof(bf16));
        bf16 *weights = (bf16 *)(scores + 4 * longest), *queries = weights + 4 * longest, *key = queries + group * D;
        if (!scores) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t task = 0; task < shape->n * KV; task++) {
            if (!scores) continue;
            const int64_t r = task / KV, kv = task % KV, length = prefix_lengths[r];
            const int64_t padded = (length + LANES - 1) / LANES * LANES;
            const bf16 *line = qkv + r * (H + 2 * KV) * D;
            const float *c = cosine + r * D, *s = sine + r * D;
            for (int64_t h = 0; h < group; h++)
                norm_rotate(line + (kv * group + h) * D, q_norm, shape->eps, c, s, queries + h * D, D);
            norm_rotate(line + (H + kv) * D, k_norm, shape->eps, c, s, key, D);
            const int64_t own = r * shape->slot_stride + kv * shape->head_stride;
            store(keys + own, values + own, written[r], key, line + (H + KV + kv) * D, D);
            const bf16 *prefix = prefixes[r] + (shape->layer * 2 * KV + kv) * padded * D;
            const Span spans[2] = {
                {prefix, prefix + KV * padded * D, length, padded},
                {keys + own, values + own, written[r] + 1, (written[r] + LANES) / LANES * LANES},
            };
            const int64_t stride = spans[0].padded + spans[1].padded;
            bf16 *to = out + (r * H + kv * group) * D;
            for (int64_t h = 0; h < group; h += 4) {
                const uint32_t *q = (const uint32_t *)(queries + h * D);
                switch (group - h) {
                    case 1: attend_heads(1, q, spans, D, scores, weights, stride, to + h * D); break;
                    case 2: attend_heads(2, q, spans, D, scores, weights, stride, to + h * D); break;
                    case 3: attend_heads(3, q, spans, D, scores, weights, stride, to + h * D); break;
                    default: attend_heads(4, q, spans, D, scores, weights, stride, to + h * D);
                }
            }
        }
        free(scores);
    }
    return failed ? -1 : 0;
}

INLINE f32 some(const bf16 *from, int64_t left) {
    if (left >= LANES) return widen(from);
    bf16 padded[LANES];
    for (int i = 0; i < LANES; i++) padded[i] = i < left ? from[i] : 0xff80;  // minus infinity
    return widen(padded);
}

// Draws one token a row from softmax(logits / temperature): uniform[r] of the total is found in the cumulative sum.
// A row whose logits are not finite gets token -1.
void sample(const bf16 *logits, const float *uniform, int64_t *tokens, float *logprobs, int64_t n, int64_t vocab,
            float temperature) {
    const float cold = 1.0f / temperature;
    const int64_t blocks = (vocab + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t r = 0; r < n; r++) {
        const bf16 *line = logits + r * vocab;
        f32 most = splat(-INFINITY);
        for (int64_t i = 0; i < vocab; i += LANES) most = larger(most, some(line + i, vocab - i));
        const float peak = largest(most);
        float sums[blocks];
        double whole = 0;
        for (int64_t b = 0; b < blocks; b++) {
            f32 sum = {0};
            int64_t end = (b + 1) * BLOCK < vocab ? (b + 1) * BLOCK : vocab;
            for (int64_t i = b * BLOCK; i < end; i += LANES) sum += exponential((some(line + i, vocab - i) - peak) * cold);
            sums[b] = total(sum);
            whole += sums[b];
        }
        tokens[r] = -1;
        if (!(peak < INFINITY && whole > 0 && whole < INFINITY)) continue;
        double left = uniform[r] * whole;
        int64_t b = 0;
        while (b < blocks - 1 && left >= sums[b]) left -= sums[b++];
        int64_t end = (b + 1) * BLOCK < vocab ? (b + 1) * BLOCK : vocab;
        for (int64_t i = b * BLOCK; i < end && left >= 0; i += LANES) {
            f32 weight = exponential((some(line + i, vocab - i) - peak) * cold);
            for (int j = 0; j < LANES && left >= 0; j++) {
                if (weight[j] <= 0) continue;
                tokens[r] = i + j;  // if rounding lets the search run out, the last possible token stays
                logprobs[r] = logf(weight[j]) - (float)log(whole);
                left -= weight[j];
                if (left < 0) break;
            }
        }
    }
}
