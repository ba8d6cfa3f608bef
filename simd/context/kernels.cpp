// The kernels of context columns and of the local Forward score for one instruction set.
//
// A column needs one row of a table for each place of the window, which the first layer adds up, and two small matrix
// products, whose lanes are units. Forward computes one subject in each lane; a column of the subjects stays in
// registers while the rows of the query pass. The lanes do not affect each other.

#include "common/vectors.hpp"
#include "context/kernel.hpp"

namespace swsearch::context {
namespace {

using Words = Lanes<int16_t>;
using Ints = Lanes<int32_t>;
constexpr size_t kLanes = Vectors::kBytes / sizeof(float);
constexpr float kLarge = 1125899906842624.0F;  // 2^kStep
typedef float Floats __attribute__((vector_size(Vectors::kBytes)));
typedef int32_t IntVector __attribute__((vector_size(Vectors::kBytes)));
typedef float UnalignedFloats __attribute__((vector_size(Vectors::kBytes), aligned(4), may_alias));

inline Floats load(const float* from) { return *reinterpret_cast<const UnalignedFloats*>(from); }
inline void store(float* to, Floats a) { *reinterpret_cast<UnalignedFloats*>(to) = a; }

// Two words in every lane of 32 bits.
inline Ints::V splat_pair(const int16_t* from) {
    int32_t pair;
    __builtin_memcpy(&pair, from, sizeof pair);
    return Ints::splat(pair);
}

inline Floats to_floats(Ints::V a) { return __builtin_convertvector((IntVector)a, Floats); }

constexpr size_t kTogether = 4;  // residues that are computed side by side

// A block's activations of kResiduesHere residues, which are `stride` apart.
template <size_t kResiduesHere>
inline void first_block(const Network& network, const int16_t* rows, const int16_t* bias, const uint8_t* letters,
                        int16_t* activations, size_t stride) {
    constexpr size_t kVectors = kRowMultiple / Words::kLanes;
    const Words::V zero = Words::splat(0), most = Words::splat(kClip);
    Words::V sums[kResiduesHere][kVectors];
    for (size_t i = 0; i < kResiduesHere; ++i) {
        for (size_t k = 0; k < kVectors; ++k) sums[i][k] = Words::load(bias + k * Words::kLanes);
    }
    for (size_t place = 0; place < network.width; ++place, rows += kLetters * kRowMultiple) {
        for (size_t i = 0; i < kResiduesHere; ++i) {
            const int16_t* const row = rows + letters[i + place] * kRowMultiple;
            for (size_t k = 0; k < kVectors; ++k)
                sums[i][k] = Words::add(sums[i][k], Words::load(row + k * Words::kLanes));
        }
    }
    for (size_t i = 0; i < kResiduesHere; ++i) {
        for (size_t k = 0; k < kVectors; ++k) {
            const Words::V positive = Words::max(sums[i][k], zero);
            Words::store(activations + i * stride + k * Words::kLanes,
                         Words::select(Words::greater(positive, most), most, positive));
        }
    }
}

// The first layer's activations of n residues for the windows that begin at `letters`, [n][n_first].
void first_layer(const Network& network, const uint8_t* letters, size_t n, int16_t* activations) {
    const size_t stride = network.n_first;
    for (size_t unit = 0; unit < stride; unit += kRowMultiple) {
        const int16_t* const rows = network.first + unit * network.width * kLetters;
        const int16_t* const bias = network.first_bias + unit;
        int16_t* const to = activations + unit;
        size_t i = 0;
        for (; i + kTogether <= n; i += kTogether)
            first_block<kTogether>(network, rows, bias, letters + i, to + i * stride, stride);
        for (; i < n; ++i) first_block<1>(network, rows, bias, letters + i, to + i * stride, stride);
    }
}

// The sums of a block of 32 units, for each of kTogether residues; their absolute values are below 2^31 for the weights
// that the driver accepts.
void block_sums(const int16_t* weights, const int32_t* bias, const int16_t* const* activations, size_t n_activations,
                int32_t (*sums)[kRowMultiple]) {
    constexpr size_t kVectors = 2;  // with four residues, eight sums for the two instructions of a cycle
    for (size_t unit = 0; unit < kRowMultiple; unit += kVectors * Ints::kLanes) {
        Ints::V found[kTogether][kVectors];
        for (size_t i = 0; i < kTogether; ++i) {
            for (size_t k = 0; k < kVectors; ++k) found[i][k] = Ints::load(bias + unit + k * Ints::kLanes);
        }
        const int16_t* row = weights + 2 * unit;
        for (size_t pair = 0; pair < n_activations; pair += 2, row += 2 * kRowMultiple) {
            Ints::V weight[kVectors];
            for (size_t k = 0; k < kVectors; ++k) weight[k] = Words::load(row + 2 * k * Ints::kLanes);
            for (size_t i = 0; i < kTogether; ++i) {
                const Ints::V both = splat_pair(activations[i] + pair);
                for (size_t k = 0; k < kVectors; ++k) found[i][k] = Vectors::add_products(found[i][k], weight[k], both);
            }
        }
        for (size_t i = 0; i < kTogether; ++i) {
            for (size_t k = 0; k < kVectors; ++k) Ints::store(sums[i] + unit + k * Ints::kLanes, found[i][k]);
        }
    }
}

inline float power_of_two(int32_t exponent) {
    const uint32_t bits = exponent < -126 ? 0u : static_cast<uint32_t>(127 + exponent) << 23;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// The column of the third layer's sums, which are logarithms to base 2; those past kAminoAcids do not count.
void write_column(const float* powers, const int32_t* sums, float* column) {
    int32_t largest = sums[0];
    for (size_t a = 1; a < kAminoAcids; ++a) largest = sums[a] > largest ? sums[a] : largest;
    float odds[kAminoAcids];
    for (size_t a = 0; a < kAminoAcids; ++a) {
        const int32_t below = sums[a] - largest;  // at most 0
        const uint32_t fraction = static_cast<uint32_t>(below) & ((1u << kLogShift) - 1);
        odds[a] = powers[fraction >> (kLogShift - kPowerBits)] * power_of_two(below >> kLogShift);
    }
    float total = 0.0F;
    for (size_t a = 0; a < kAminoAcids; ++a) total += odds[a];
    for (size_t a = 0; a < kAminoAcids; ++a) column[a] = odds[a] / total;
}

void columns(const Network& network, const uint8_t* letters, size_t n, int16_t* work, float* found) {
    int16_t* const hidden = work;
    int16_t* const next = work + kResidues * network.n_first;
    first_layer(network, letters - network.width / 2, n, hidden);
    int32_t sums[kTogether][kRowMultiple];
    const int16_t* activations[kTogether];
    for (size_t first = 0; first < n; first += kTogether) {
        const size_t n_here = n - first < kTogether ? n - first : kTogether;
        for (size_t i = 0; i < kTogether; ++i)
            activations[i] = hidden + (first + (i < n_here ? i : 0)) * network.n_first;
        for (size_t unit = 0; unit < network.n_second; unit += kRowMultiple) {
            block_sums(network.second + unit * network.n_first, network.second_bias + unit, activations,
                       network.n_first, sums);
            for (size_t i = 0; i < n_here; ++i) {
                int16_t* const to = next + (first + i) * network.n_second + unit;
                for (size_t k = 0; k < kRowMultiple; ++k) {
                    const int32_t sum = sums[i][k] >> kSecondShift;
                    to[k] = static_cast<int16_t>(sum < 0 ? 0 : sum > kClip ? kClip : sum);
                }
            }
        }
        for (size_t i = 0; i < kTogether; ++i)
            activations[i] = next + (first + (i < n_here ? i : 0)) * network.n_second;
        block_sums(network.third, network.third_bias, activations, network.n_second, sums);
        for (size_t i = 0; i < n_here; ++i) write_column(network.powers, sums[i], found + (first + i) * kAminoAcids);
    }
}

// Keeps the values of each lane in range after a column of this sum, and adds it to the totals.
void __attribute__((noinline)) rescale(ForwardState& state, const float* sums) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
        int32_t& exponent = state.exponent[lane];
        int32_t& of_total = state.of_total[lane];
        float& total = state.total[lane];
        if (exponent > of_total) {
            total *= power_of_two(of_total - exponent);
            of_total = exponent;
        }
        total += sums[lane] * power_of_two(exponent - of_total);
        float factor = 1.0F;
        if (sums[lane] > kLarge) {
            factor = 1.0F / kLarge;
            exponent += kStep;
        } else if (exponent > 0 && sums[lane] > 0.0F && sums[lane] < 1.0F / kLarge) {  // 0 only past the end
            factor = kLarge;
            exponent -= kStep;
        } else {
            continue;
        }
        for (size_t i = 0; i < state.length; ++i) {
            state.p[i * kLanes + lane] *= factor;
            state.y[i * kLanes + lane] *= factor;
        }
    }
}

void forward(ForwardState& state, const int16_t* subjects, size_t n) {
    constexpr size_t kPairs = kAminoAcids / 2;
    const Floats zero = {};
    const Floats open = zero + state.open, extend = zero + state.extend;
    const Floats unit = zero + 1.0F / (1 << (kQueryBits + kOddsBits));
    for (size_t j = 0; j < n; ++j, subjects += kAminoAcids * kLanes) {
        float starts[kLanes];
        bool is_plain = true;
        for (size_t lane = 0; lane < kLanes; ++lane) {
            starts[lane] = power_of_two(-state.exponent[lane]);
            is_plain = is_plain && state.of_total[lane] == 0 && state.exponent[lane] == 0;
        }
        const Floats start = load(starts);
        Ints::V subject[kPairs];
        for (size_t k = 0; k < kPairs; ++k) subject[k] = Words::load(subjects + 2 * k * kLanes);
        Floats before = start;  // start + P + Y of the row above in the last column
        Floats m_above = zero, x = zero, sum = zero;
        const int16_t* query = state.query;
        for (size_t i = 0; i < state.length; ++i, query += kAminoAcids) {
            Ints::V even = Ints::splat(0), odd = even;
            for (size_t k = 0; k < kPairs; k += 2) {
                even = Vectors::add_products(even, subject[k], splat_pair(query + 2 * k));
                odd = Vectors::add_products(odd, subject[k + 1], splat_pair(query + 2 * k + 2));
            }
            const Floats p_left = load(state.p + i * kLanes), y_left = load(state.y + i * kLanes);
            const Floats m = (to_floats(Ints::add(even, odd)) * unit) * before;
            x = open * m_above + extend * x;
            before = (start + p_left) + y_left;
            store(state.p + i * kLanes, m + x);
            store(state.y + i * kLanes, open * p_left + extend * y_left);
            m_above = m;
            sum = sum + m;
        }
        float sums[kLanes];
        store(sums, sum);
        bool is_small = true;
        for (size_t lane = 0; lane < kLanes; ++lane) is_small = is_small && sums[lane] <= kLarge;
        if (is_plain && is_small) {
            store(state.total, load(state.total) + sum);
        } else {
            rescale(state, sums);
        }
    }
}

}  // namespace

extern const Kernels SWSEARCH_KERNELS;
const Kernels SWSEARCH_KERNELS = {columns, forward, kLanes};

}  // namespace swsearch::context
