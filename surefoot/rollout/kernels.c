// The memory-bound parts of a decode step, between the matrix products: norms, rotary embedding, attention over the
// cache, SwiGLU, sampling. One pass over memory each, bfloat16 (or float32, with -DSINGLE) in and out, float32 inside.
//
// Plain C with GCC/Clang vector types, so that any CPU can run it; AVX512-BF16 shortens the dot products where it is.
// Every row is worked on by one thread in one fixed order: results do not depend on the number of threads.
//
// A word is what a dot product takes at once: PAIR = 2 bfloat16 values or 1 float32 value.
// Packed layouts of one head's cache (D values a token, room a multiple of 16):
//   keys   [room / 16][D / PAIR][16][PAIR]  sixteen keys side by side: a score needs no sum across lanes
//   values [room / PAIR][D][PAIR]           as many tokens side by side as a word of weights has

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

typedef float f32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t u32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t u16 __attribute__((vector_size(32), aligned(2), may_alias));

INLINE f32 splat(float x) { return x - (f32){0}; }

#if defined(SINGLE)

#define PAIR 1
typedef float elem;
typedef float word;
typedef f32 words;
#define LOWEST -INFINITY

INLINE float wide(elem x) { return x; }
INLINE elem rounded(float x) { return x; }
INLINE f32 widen(const elem *from) { return *(const f32 *)from; }
INLINE void narrow(elem *to, f32 x) { *(f32 *)to = x; }
INLINE f32 dot(f32 sum, words a, words b) { return sum + a * b; }

#else

#define PAIR 2
typedef uint16_t elem;
typedef uint32_t word;
typedef u32 words;
#define LOWEST 0xff80  // minus infinity

INLINE float wide(elem x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

INLINE elem rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (elem)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

INLINE f32 widen(const elem *from) { return (f32)(__builtin_convertvector(*(const u16 *)from, u32) << 16); }

INLINE void narrow(elem *to, f32 x) {
#if defined(__AVX512BF16__)
    *(u16 *)to = (u16)_mm512_cvtneps_pbh((__m512)x);
#else
    u32 bits = (u32)x, even = bits + 0x7fff + ((bits >> 16) & 1);
    u32 nan = (u32)(x != x);
    *(u16 *)to = __builtin_convertvector(((even & ~nan) | ((bits | 0x400000) & nan)) >> 16, u16);
#endif
}

// sum + a.low * b.low + a.high * b.high in every lane
INLINE f32 dot(f32 sum, words a, words b) {
#if defined(__AVX512BF16__)
    return (f32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    sum += (f32)(a << 16) * (f32)(b << 16);
    return sum + (f32)(a & 0xffff0000u) * (f32)(b & 0xffff0000u);
#endif
}

#endif

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
void add_norm(elem *x, const elem *delta, const elem *weight, elem *out, int64_t n, int64_t width, float eps) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < n; row++) {
        elem *line = x + row * width;
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
void swiglu(const elem *gate_up, elem *out, int64_t n, int64_t width) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < n; row++) {
        const elem *gate = gate_up + row * 2 * width, *up = gate + width;
        for (int64_t i = 0; i < width; i += LANES) {
            f32 g = widen(gate + i);
            f32 small = exponential(choose(g < 0, g, -g));  // sigmoid without overflow on either side
            f32 sigmoid = choose(g < 0, small, splat(1)) / (1.0f + small);
            narrow(out + row * width + i, g * sigmoid * widen(up + i));
        }
    }
}

// One head of one token: optional norm, then rotation (halves layout).
INLINE void norm_rotate(const elem *x, const elem *weight, float eps, const float *cosine, const float *sine,
                        elem *out, int64_t D) {
    float scale = 1.0f;
    if (weight) {
        f32 squares = {0};
        for (int64_t i = 0; i < D; i += LANES) squares += widen(x + i) * widen(x + i);
        scale = 1.0f / sqrtf(total(squares) / D + eps);
    }
    int64_t half = D / 2;
    for (int64_t i = 0; i < half; i++) {
        float left = wide(x[i]), right = wide(x[i + half]);
        if (weight) {
            left *= scale * wide(weight[i]);
            right *= scale * wide(weight[i + half]);
        }
        out[i] = rounded(left * cosine[i] - right * sine[i]);
        out[i + half] = rounded(right * cosine[i + half] + left * sine[i + half]);
    }
}

// Scores of `heads` (1 to 4, known when compiled) queries of `count` words against `tokens` keys in packed blocks.
INLINE void score(const int heads, const word *queries, const elem *keys, int64_t tokens, int64_t count, float scale,
                  float *scores, int64_t stride) {
    for (int64_t block = 0; block * LANES < tokens; block++) {
        const word *side = (const word *)keys + block * count * LANES;
        f32 even[4] = {{0}}, odd[4] = {{0}};  // two chains each, to hide the latency of the dot product
        for (int64_t j = 0; j < count; j += 2) {
            words first = *(const words *)(side + j * LANES), second = *(const words *)(side + (j + 1) * LANES);
            for (int h = 0; h < heads; h++) {
                even[h] = dot(even[h], queries[h * count + j] - (words){0}, first);
                odd[h] = dot(odd[h], queries[h * count + j + 1] - (words){0}, second);
            }
        }
        for (int h = 0; h < heads; h++) *(f32 *)(scores + h * stride + block * LANES) = (even[h] + odd[h]) * scale;
    }
    for (int h = 0; h < heads; h++)
        for (int64_t t = tokens; t % LANES; t++) scores[h * stride + t] = -INFINITY;
}

// sum [heads][64 or 16 lanes] += weights (words of tokens) x values, for lanes [from, from + lanes) of D
INLINE void mix(const int heads, const int vectors, const word *weights, int64_t stride, const elem *values,
                int64_t tokens, int64_t D, int64_t from, f32 sum[4][4]) {
    for (int64_t at = 0; at * PAIR < tokens; at++) {
        const word *line = (const word *)values + at * D + from;
        for (int i = 0; i < vectors; i++) {
            words value = *(const words *)(line + i * LANES);
            for (int h = 0; h < heads; h++) sum[h][i] = dot(sum[h][i], weights[h * stride + at] - (words){0}, value);
        }
    }
}

typedef struct {
    const elem *keys, *values;
    int64_t count, padded;  // padded: count, rounded up to a whole block
} Span;

INLINE void mix_spans(const int heads, const int vectors, const word *weights, int64_t stride, const Span spans[2],
                      const float *sums, int64_t D, elem *out) {
    for (int64_t from = 0; from < D; from += vectors * LANES) {
        f32 sum[4][4] = {{{0}}};
        mix(heads, vectors, weights, stride, spans[0].values, spans[0].count, D, from, sum);
        mix(heads, vectors, weights + spans[0].padded / PAIR, stride, spans[1].values, spans[1].count, D, from, sum);
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < vectors; i++) narrow(out + h * D + from + i * LANES, sum[h][i] / sums[h]);
    }
}

// Softmax attention of `heads` queries of one token over two spans; `scores` is scratch of heads * stride floats.
INLINE void attend_heads(const int heads, const word *queries, const Span spans[2], int64_t D, float *scores,
                         elem *weights, int64_t stride, elem *out) {
    const float scale = 1.0f / sqrtf((float)D);
    float sums[4];
    score(heads, queries, spans[0].keys, spans[0].count, D / PAIR, scale, scores, stride);
    score(heads, queries, spans[1].keys, spans[1].count, D / PAIR, scale, scores + spans[0].padded, stride);
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
        mix_spans(heads, 1, (const word *)weights, stride / PAIR, spans, sums, D, out);
    else
        mix_spans(heads, 4, (const word *)weights, stride / PAIR, spans, sums, D, out);
}

INLINE void store(elem *keys, elem *values, int64_t at, const elem *key, const elem *value, int64_t D) {
    word *side = (word *)keys + at / LANES * D / PAIR * LANES + at % LANES;
    for (int64_t j = 0; j < D / PAIR; j++) memcpy(side + j * LANES, key + PAIR * j, sizeof(word));
    elem *line = values + at / PAIR * PAIR * D + at % PAIR;
    for (int64_t d = 0; d < D; d++) {
        line[PAIR * d] = value[d];
        // Its partner will have weight 0 until written: it must be finite.
        if (PAIR == 2 && at % PAIR == 0) line[PAIR * d + 1] = 0;
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
int attend(const elem *qkv, const elem *q_norm, const elem *k_norm, const float *cosine, const float *sine, elem *keys,
           elem *values, const int64_t *written, const elem *const *prefixes, const int64_t *prefix_lengths, elem *out,
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
        float *scores = malloc(4 * longest * (sizeof(float) + sizeof(elem)) + (group + 1) * D * sizeof(elem));
        elem *weights = (elem *)(scores + 4 * longest), *queries = weights + 4 * longest, *key = queries + group * D;
        if (!scores) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t task = 0; task < shape->n * KV; task++) {
            if (!scores) continue;
            const int64_t r = task / KV, kv = task % KV, length = prefix_lengths[r];
            const int64_t padded = (length + LANES - 1) / LANES * LANES;
            const elem *line = qkv + r * (H + 2 * KV) * D;
            const float *c = cosine + r * D, *s = sine + r * D;
            for (int64_t h = 0; h < group; h++)
                norm_rotate(line + (kv * group + h) * D, q_norm, shape->eps, c, s, queries + h * D, D);
            norm_rotate(line + (H + kv) * D, k_norm, shape->eps, c, s, key, D);
            const int64_t own = r * shape->slot_stride + kv * shape->head_stride;
            store(keys + own, values + own, written[r], key, line + (H + KV + kv) * D, D);
            const elem *prefix = prefixes[r] + (shape->layer * 2 * KV + kv) * padded * D;
            const Span spans[2] = {
                {prefix, prefix + KV * padded * D, length, padded},
                {keys + own, values + own, written[r] + 1, (written[r] + LANES) / LANES * LANES},
            };
            const int64_t stride = spans[0].padded + spans[1].padded;
            elem *to = out + (r * H + kv * group) * D;
            for (int64_t h = 0; h < group; h += 4) {
                const word *q = (const word *)(queries + h * D);
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

INLINE f32 some(const elem *from, int64_t left) {
    if (left >= LANES) return widen(from);
    elem padded[LANES];
    for (int i = 0; i < LANES; i++) padded[i] = i < left ? from[i] : LOWEST;
    return widen(padded);
}

// Draws one token a row from softmax(logits / temperature): uniform[r] of the total is found in the cumulative sum.
// A row whose logits are not finite gets token -1.
void sample(const elem *logits, const float *uniform, int64_t *tokens, float *logprobs, int64_t n, int64_t vocab,
            float temperature) {
    const float cold = 1.0f / temperature;
    const int64_t blocks = (vocab + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t r = 0; r < n; r++) {
        const elem *line = logits + r * vocab;
        f32 most = splat(-INFINITY);
        for (int64_t i = 0; i < vocab; i += LANES) most = larger(most, some(line + i, vocab - i));
        const float peak = largest(most);
        float sums[blocks];
        double whole = 0;
        for (int64_t b = 0; b < blocks; b++) {
            f32 sum = {0};
            int64_t end = (b + 1) * BLOCK < vocab ? (b + 1) * BLOCK : vocab;
            for (int64_t i = b * BLOCK; i < end; i += LANES)
                sum += exponential((some(line + i, vocab - i) - peak) * cold);
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
