// The kernels of context columns and of the local Forward score for one instruction set.
//
// A column needs one row of a table for each place of the window, which the first layer adds up, and two small matrix
// products. Forward computes one subject in each lane; a column of the subjects stays in registers (with 32 of them)
// while the rows of the query pass. The lanes do not affect each other.

#include "common/vectors.hpp"
#include "context/kernel.hpp"

namespace swsearch::context {
namespace {

using Words = Lanes<int16_t>;
constexpr size_t kLanes = Vectors::kBytes / sizeof(float);
constexpr float kLarge = 1125899906842624.0F;  // 2^kStep
typedef float Floats __attribute__((vector_size(Vectors::kBytes)));
typedef float UnalignedFloats __attribute__((vector_size(Vectors::kBytes), aligned(4), may_alias));

inline Floats load(const float* from) { return *reinterpret_cast<const UnalignedFloats*>(from); }
inline void store(float* to, Floats a) { *reinterpret_cast<UnalignedFloats*>(to) = a; }

// The first layer's activations for the window that begins at `letters`.
void first_layer(const Network& network, const uint8_t* letters, int16_t* activations) {
    constexpr size_t kTogether = 4;
    const Words::V zero = Words::splat(0), most = Words::splat(kClip);
    for (size_t unit = 0; unit < network.n_first;) {
        const size_t left = (network.n_first - unit) / Words::kLanes;
        const size_t n = left < kTogether ? left : kTogether;
        Words::V sums[kTogether];
        for (size_t k = 0; k < n; ++k) sums[k] = Words::load(network.first_bias + unit + k * Words::kLanes);
        const int16_t* rows = network.first + unit;
        if (n == kTogether) {
            for (size_t place = 0; place < network.width; ++place, rows += kLetters * network.n_first) {
                const int16_t* const row = rows + letters[place] * network.n_first;
                for (size_t k = 0; k < kTogether; ++k)
                    sums[k] = Words::add(sums[k], Words::load(row + k * Words::kLanes));
            }
        } else {
            for (size_t place = 0; place < network.width; ++place, rows += kLetters * network.n_first) {
                const int16_t* const row = rows + letters[place] * network.n_first;
                for (size_t k = 0; k < n; ++k) sums[k] = Words::add(sums[k], Words::load(row + k * Words::kLanes));
            }
        }
        for (size_t k = 0; k < n; ++k) {
            const Words::V positive = Words::max(sums[k], zero);
            Words::store(activations + unit + k * Words::kLanes,
                         Words::select(Words::greater(positive, most), most, positive));
        }
        unit += n * Words::kLanes;
    }
}

// The sum of products; its absolute value is below 2^31 for the weights that the driver accepts.
inline int32_t product(const int16_t* a, const int16_t* b, size_t n) {
    int32_t sum = 0;
    for (size_t k = 0; k < n; ++k) sum += static_cast<int32_t>(a[k]) * b[k];
    return sum;
}

float power_of_two(int32_t exponent) {
    if (exponent < -126) return 0.0F;
    const uint32_t bits = static_cast<uint32_t>(127 + exponent) << 23;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

void columns(const Network& network, const uint8_t* letters, size_t n, float* found) {
    int16_t hidden[kMostUnits], next[kMostUnits];
    for (size_t i = 0; i < n; ++i, found += kAminoAcids) {
        first_layer(network, letters + i - network.width / 2, hidden);
        for (size_t unit = 0; unit < network.n_second; ++unit) {
            const int32_t sum = (product(hidden, network.second + unit * network.n_first, network.n_first) +
                                 network.second_bias[unit]) >>
                                kSecondShift;
            next[unit] = static_cast<int16_t>(sum < 0 ? 0 : sum > kClip ? kClip : sum);
        }
        int32_t sums[kAminoAcids], largest = INT32_MIN;
        for (size_t a = 0; a < kAminoAcids; ++a) {
            sums[a] = product(next, network.third + a * network.n_second, network.n_second) + network.third_bias[a];
            largest = sums[a] > largest ? sums[a] : largest;
        }
        float total = 0.0F;
        for (size_t a = 0; a < kAminoAcids; ++a) {
            const int32_t below = sums[a] - largest;  // a logarithm to base 2, at most 0
            const uint32_t fraction = static_cast<uint32_t>(below) & ((1u << kLogShift) - 1);
            found[a] = network.powers[fraction >> (kLogShift - kPowerBits)] * power_of_two(below >> kLogShift);
            total += found[a];
        }
        for (size_t a = 0; a < kAminoAcids; ++a) found[a] /= total;
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

void forward(ForwardState& state, const float* subjects, size_t n) {
    const Floats zero = {};
    const Floats open = zero + state.open, extend = zero + state.extend;
    for (size_t j = 0; j < n; ++j, subjects += kAminoAcids * kLanes) {
        float starts[kLanes];
        bool is_plain = true;
        for (size_t lane = 0; lane < kLanes; ++lane) {
            starts[lane] = power_of_two(-state.exponent[lane]);
            is_plain = is_plain && state.of_total[lane] == 0 && state.exponent[lane] == 0;
        }
        const Floats start = load(starts);
        Floats subject[kAminoAcids];
        for (size_t a = 0; a < kAminoAcids; ++a) subject[a] = load(subjects + a * kLanes);
        Floats before = start;  // start + P + Y of the row above in the last column
        Floats m_above = zero, x = zero, sum = zero;
        const float* query = state.query;
        for (size_t i = 0; i < state.length; ++i, query += kAminoAcids) {
            Floats odds[4];
            for (size_t k = 0; k < 4; ++k) odds[k] = subject[k] * query[k];
            for (size_t a = 4; a < kAminoAcids; ++a) odds[a % 4] = odds[a % 4] + subject[a] * query[a];
            const Floats p_left = load(state.p + i * kLanes), y_left = load(state.y + i * kLanes);
            const Floats m = ((odds[0] + odds[1]) + (odds[2] + odds[3])) * before;
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
