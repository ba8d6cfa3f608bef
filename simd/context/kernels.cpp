// The kernels of contexts, of context columns and of the local Forward score for one instruction set.
//
// The lanes of a window are contexts, whose costs are added up; only those near the lowest have a weight.
//
// A column needs one row of a table for each place of the window, which the first layer adds up, and two small matrix
// products, whose lanes are units. Forward computes one subject in each lane; a column of the subjects stays in
// registers while the rows of the query pass, in blocks. The lanes do not affect each other.

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
typedef double Doubles __attribute__((vector_size(4 * sizeof(double)), aligned(8), may_alias));
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

// kLanes 16-bit numbers as 32-bit numbers.
inline IntVector widened(const int16_t* from) {
    typedef int16_t HalfVector __attribute__((vector_size(Vectors::kBytes / 2), aligned(2), may_alias));
    return __builtin_convertvector(*reinterpret_cast<const HalfVector*>(from), IntVector);
}

inline IntVector load_ints(const int32_t* from) { return (IntVector)Ints::load(from); }
inline void store_ints(int32_t* to, IntVector a) { Ints::store(to, (Ints::V)a); }

void context_sums(const Library& library, const Observation* observations, size_t n_observations, int32_t* work,
                  NearContext* near, double* sums) {
    constexpr size_t kVectors = kRowMultiple / kLanes;
    constexpr int32_t kBelowHalf = (1 << (kCountBits - 1)) - 1;
    IntVector lowest = load_ints(library.priors) + INT32_MAX / 2;
    for (size_t first = 0; first < library.n; first += kRowMultiple) {
        IntVector observed[kVectors] = {};
        for (size_t i = 0; i < n_observations; ++i) {
            const int16_t* const costs = observations[i].costs + first;
            for (size_t k = 0; k < kVectors; ++k) observed[k] += widened(costs + k * kLanes) * observations[i].count;
        }
        for (size_t k = 0; k < kVectors; ++k) {
            const IntVector is_odd = (observed[k] >> kCountBits) & 1;
            const IntVector rounded = (observed[k] + kBelowHalf + is_odd) >> kCountBits;
            const IntVector cost = load_ints(library.priors + first + k * kLanes) + rounded;
            store_ints(work + first + k * kLanes, cost);
            lowest = cost < lowest ? cost : lowest;
        }
    }
    int32_t least = lowest[0];
    for (size_t k = 1; k < kLanes; ++k) least = lowest[k] < least ? lowest[k] : least;
    // Which contexts have a weight cannot be predicted, so they are listed without a branch.
    size_t n_near = 0;
    for (size_t k = 0; k < library.n; ++k) {
        const uint32_t above = static_cast<uint32_t>(work[k]) - static_cast<uint32_t>(least);
        near[n_near] = {static_cast<uint32_t>(k), above};
        n_near += above < library.n_weights;
    }
    constexpr size_t kParts = kAminoAcids / 4;
    Doubles found[kParts] = {};
    for (size_t k = 0; k < n_near; ++k) {
        const double weight = library.weights[near[k].above];
        const Doubles* const central =
            reinterpret_cast<const Doubles*>(library.central + near[k].context * kAminoAcids);
        for (size_t part = 0; part < kParts; ++part) found[part] += weight * central[part];
    }
    for (size_t part = 0; part < kParts; ++part) reinterpret_cast<Doubles*>(sums)[part] = found[part];
}

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

// The sums of a block of 32 units, for each of kTogether residues; their absolute values are below 2^30
// (Network).
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

// What a block of rows passes to the block below: the last row's M and X of this column, and start + P + Y of the
// column before, each times 2^-exponent.
struct Passed {
    Floats m, x, before;
    IntVector exponent;
};

inline bool any_greater(IntVector a, IntVector b) { return Ints::any_greater((Ints::V)a, (Ints::V)b); }
inline bool all_equal(IntVector a, IntVector b) { return !any_greater(a, b) && !any_greater(b, a); }

// 2^exponent of exponents up to 0; 0 below the normal numbers.
inline Floats powers_of_two(IntVector exponents) {
    const IntVector biased = exponents + 127;
    return (Floats)((biased > 0) & (biased << 23));
}

inline void scale_rows(float* p, float* y, Floats factor) {
    for (size_t i = 0; i < kBlockRows * kLanes; i += kLanes) {
        store(p + i, load(p + i) * factor);
        store(y + i, load(y + i) * factor);
    }
}

// Brings what enters a block, and the block's values, to the larger of their exponents.
void __attribute__((noinline)) meet(float* p, float* y, IntVector& exponent, Passed& entering) {
    const IntVector larger = exponent > entering.exponent ? exponent : entering.exponent;
    const Floats of_entering = powers_of_two(entering.exponent - larger);
    if (any_greater(larger, exponent)) scale_rows(p, y, powers_of_two(exponent - larger));
    entering.m *= of_entering;
    entering.x *= of_entering;
    entering.before *= of_entering;
    exponent = larger;
}

// Adds the sum of a column to a total that has another exponent in some lanes.
void __attribute__((noinline)) add_to_total(float* total, int32_t* of_total, Floats sum, IntVector exponent) {
    const IntVector known = load_ints(of_total);
    const IntVector larger = ((sum > 0.0F) & (exponent > known)) ? exponent : known;  // a sum of 0 changes nothing
    const IntVector below = exponent > larger ? larger - larger : exponent - larger;
    store(total, load(total) * powers_of_two(known - larger) + sum * powers_of_two(below));
    store_ints(of_total, larger);
}

// Changes the exponents of a block's lanes whose values have become large or small; with the exponent 0 they are never
// small, since their size includes `start`.
void __attribute__((noinline)) rescale(float* p, float* y, int32_t* exponents, IntVector exponent, Floats size) {
    const IntVector is_large = size > kLarge, is_small = size < 1.0F / kLarge;
    const Floats one = Floats{} + 1.0F;
    scale_rows(p, y, is_large ? one / kLarge : is_small ? one * kLarge : one);
    store_ints(exponents, exponent + (is_large & kStep) - (is_small & kStep));
}

void forward(ForwardState& state, const int16_t* subjects, size_t n) {
    constexpr size_t kPairs = kAminoAcids / 2;
    const Floats zero = {};
    const Floats unit = zero + 1.0F / (1 << (kQueryBits + kOddsBits));
    // Floats that are not negative have the order of their bits.
    const IntVector large = (IntVector)(zero + kLarge), small = (IntVector)(zero + 1.0F / kLarge);
    for (size_t j = 0; j < n; ++j, subjects += kAminoAcids * kLanes) {
        Ints::V subject[kPairs];
        for (size_t k = 0; k < kPairs; ++k) subject[k] = Words::load(subjects + 2 * k * kLanes);
        const int16_t* query = state.query;
        const GapFactors* gaps = state.gaps;
        IntVector exponent = load_ints(state.exponent);
        Passed entering = {zero, zero, powers_of_two(-exponent), exponent};
        for (size_t block = 0; block < state.n_blocks; ++block) {
            float* const p = state.p + block * kBlockRows * kLanes;
            float* const y = state.y + block * kBlockRows * kLanes;
            float* const total = state.total + block * kLanes;
            int32_t* const of_total = state.of_total + block * kLanes;
            exponent = load_ints(state.exponent + block * kLanes);
            if (!all_equal(exponent, entering.exponent)) {
                meet(p, y, exponent, entering);
                store_ints(state.exponent + block * kLanes, exponent);
            }
            const Floats start = powers_of_two(-exponent);
            Floats m_above = entering.m, x = entering.x, before = entering.before, sum = zero, size = zero;
            for (size_t i = 0; i < kBlockRows; ++i, ++gaps, query += kAminoAcids) {
                Ints::V even = Ints::splat(0), odd = even;
                for (size_t k = 0; k < kPairs; k += 2) {
                    even = Vectors::add_products(even, subject[k], splat_pair(query + 2 * k));
                    odd = Vectors::add_products(odd, subject[k + 1], splat_pair(query + 2 * k + 2));
                }
                const Floats p_left = load(p + i * kLanes), y_left = load(y + i * kLanes);
                const Floats m = (to_floats(Ints::add(even, odd)) * unit) * before;
                x = gaps->deletion * m_above + gaps->further_deletion * x;
                before = (start + p_left) + y_left;
                store(p + i * kLanes, m + x);
                store(y + i * kLanes, gaps->insertion * p_left + gaps->further_insertion * y_left);
                m_above = m;
                sum = sum + m;
                size = size + before;
            }
            if (all_equal(exponent, load_ints(of_total))) {
                store(total, load(total) + sum);
            } else {
                add_to_total(total, of_total, sum, exponent);
            }
            size = size + sum;
            if (any_greater((IntVector)size, large) || any_greater(small, (IntVector)size)) {
                rescale(p, y, state.exponent + block * kLanes, exponent, size);
            }
            entering = {m_above, x, before, exponent};
        }
    }
}

}  // namespace

extern const Kernels SWSEARCH_KERNELS;
const Kernels SWSEARCH_KERNELS = {context_sums, columns, forward, kLanes};

}  // namespace swsearch::context
