// Predicts the columns of residues by the small network of swsearch/query/columns.py, and writes their odds. Inputs:
// the codes of the residues of all subjects, one subject after the other with at least width / 2 padding codes around
// each, and the network. Output: 20 odds s(a) / p(a) for each code, those of padding included, in units of 2^-8.
//
// A block computes kPositions neighbouring positions. Its threads share the units of a layer and these positions, and
// the activations of a layer pass through shared memory as bytes (search/forward_numbers.cuh). All values are the same
// as those of simd/context: the layers are sums of integers, and floating-point numbers are added in the same order,
// without fused multiply-add.

#include "common/platform.cuh"
#include "search/forward_numbers.cuh"

namespace swsearch {

constexpr int kPositions = 64;
constexpr int kOddsThreads = 256;
constexpr int kTogether = 8;  // positions of which a thread computes eight units of the first layer, or one of another
constexpr int kAminoAcids = 20;
constexpr int kLetters = 21;  // the amino acids, and one code for all else
constexpr int kClip = 1023;   // largest activation
constexpr int kSecondShift = 10;
constexpr int kLogShift = 18;
constexpr int kPowerBits = 10;
constexpr float kOddsUnits = 256.0F;

// Pairs of weights are two 16-bit numbers in a word; the layers are [n_inputs / 8][n_units], four pairs of inputs.
struct ColumnNetwork {
    const uint4* first;       // [width][kLetters][n_first / 8], four pairs of units
    const uint4* first_bias;  // [n_first / 8]
    const uint4* second;
    const int* second_bias;
    const uint4* third;
    const int* third_bias;
    const float* powers;  // 2^(k / 2^kPowerBits)
    int width, n_first, n_second;
};

struct ColumnOddsParameters {
    ColumnNetwork network;
    const float* inverse_background;  // [kAminoAcids]
    float admixture, rest;            // shares of the predicted column and of the residue
    const unsigned char* codes;       // n_positions codes, and width / 2 on either side of them
    u32 n_positions;
    u32* odds;  // [n_positions][kAminoAcids / 2], pairs of 16 bits
};

// The shared memory of a block: the letters of its windows, the activations of both layers as pairs of bytes, and the
// last sums.
struct ColumnsWork {
    u32* first;   // [kPositions][n_first / 2]
    u32* second;  // [kPositions][n_second / 2]
    int* sums;    // [kPositions][kAminoAcids]
    unsigned char* letters;

    SWS_DEVICE ColumnsWork(u32* memory, const ColumnNetwork& network)
        : first(memory),
          second(first + kPositions * network.n_first / 2),
          sums(reinterpret_cast<int*>(second + kPositions * network.n_second / 2)),
          letters(reinterpret_cast<unsigned char*>(sums + kPositions * kAminoAcids)) {}
};

SWS_DEVICE u32 clipped(int sum) { return static_cast<u32>(sum < 0 ? 0 : sum > kClip ? kClip : sum); }

// Two sums of the first layer as activations.
SWS_DEVICE u32 activations_of(u32 sums) {
    const int low = static_cast<short>(sums & 0xFFFFu), high = static_cast<short>(sums >> 16);
    return byte_pair(clipped(low), clipped(high));
}

// Neighbouring positions take rows of a place one after the other, while these are in the L1 cache. Places unrolled
// would take too many registers, and so would inputs below.
SWS_DEVICE void first_layer(const ColumnNetwork& network, const ColumnsWork& work) {
    const int n_parts = network.n_first / 8, row_bytes = network.n_first * 2;
    for (int index = static_cast<int>(threadIdx.x); index < kPositions / kTogether * n_parts; index += kOddsThreads) {
        const int part = index % n_parts, first = index / n_parts * kTogether;
        uint4 sums[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            sums[i] = network.first_bias[part];
        }
#pragma unroll 1
        for (int place = 0; place < network.width; ++place) {
            const char* const rows = reinterpret_cast<const char*>(network.first + place * kLetters * n_parts + part);
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const u64 offset = static_cast<u64>(work.letters[first + i + place]) * static_cast<u32>(row_bytes);
                const uint4 weights = *reinterpret_cast<const uint4*>(rows + offset);
                sums[i].x = __vadd2(sums[i].x, weights.x);
                sums[i].y = __vadd2(sums[i].y, weights.y);
                sums[i].z = __vadd2(sums[i].z, weights.z);
                sums[i].w = __vadd2(sums[i].w, weights.w);
            }
        }
        uint4* const to = reinterpret_cast<uint4*>(work.first) + first * n_parts + part;
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            to[i * n_parts] = {activations_of(sums[i].x), activations_of(sums[i].y), activations_of(sums[i].z),
                               activations_of(sums[i].w)};
        }
    }
}

// Calls take(position, unit, sum) for every unit of the second or third layer at every position.
template <class Take>
SWS_DEVICE void layer_sums(const uint4* weights, const u32* activations, int n_inputs, int n_units, Take take) {
    const int n_steps = n_inputs / 8;
    for (int index = static_cast<int>(threadIdx.x); index < kPositions / kTogether * n_units; index += kOddsThreads) {
        const int unit = index % n_units, first = index / n_units * kTogether;
        const uint4* const inputs = reinterpret_cast<const uint4*>(activations) + first * n_steps;
        ByteProducts products[kTogether];
#pragma unroll 1
        for (int step = 0; step < n_steps; ++step) {
            const uint4 weight = weights[step * n_units + unit];
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const uint4 input = inputs[i * n_steps + step];
                products[i].add(weight.x, input.x);
                products[i].add(weight.y, input.y);
                products[i].add(weight.z, input.z);
                products[i].add(weight.w, input.w);
            }
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            take(first + i, unit, products[i].sum());
        }
    }
}

SWS_DEVICE void second_layer(const ColumnNetwork& network, const ColumnsWork& work) {
    unsigned char* const bytes = reinterpret_cast<unsigned char*>(work.second);
    const auto take = [&](int position, int unit, int sum) {
        const u32 activation = clipped((network.second_bias[unit] + sum) >> kSecondShift);
        unsigned char* const to = bytes + (position * network.n_second + unit) / 2 * 4 + unit % 2;  // as in byte_pair
        to[0] = static_cast<unsigned char>(activation & 255u);
        to[2] = static_cast<unsigned char>(activation >> 8);
    };
    layer_sums(network.second, work.first, network.n_first, network.n_second, take);
}

SWS_DEVICE void third_layer(const ColumnNetwork& network, const ColumnsWork& work) {
    const auto take = [&](int position, int a, int sum) {
        work.sums[position * kAminoAcids + a] = network.third_bias[a] + sum;
    };
    layer_sums(network.third, work.second, network.n_second, kAminoAcids, take);
}

// The odds of one position. The sums are logarithms of a column's shares to base 2, in units of 2^-kLogShift.
SWS_DEVICE void write_odds(const ColumnOddsParameters& parameters, const int* sums, u32 letter, u32* odds) {
    int largest = sums[0];
    for (int a = 1; a < kAminoAcids; ++a) {
        largest = sums[a] > largest ? sums[a] : largest;
    }
    float shares[kAminoAcids];
    float total = 0.0F;
#pragma unroll
    for (int a = 0; a < kAminoAcids; ++a) {
        const int below = sums[a] - largest;  // at most 0
        const u32 fraction = static_cast<u32>(below) & ((1u << kLogShift) - 1);
        const float power = parameters.network.powers[fraction >> (kLogShift - kPowerBits)];
        shares[a] = __fmul_rn(power, power_of_two(below >> kLogShift));
        total = __fadd_rn(total, shares[a]);
    }
    const bool is_known = letter < kAminoAcids;
    const float admixture = is_known ? parameters.admixture : 1.0F;
    u32 units[kAminoAcids];
#pragma unroll
    for (int a = 0; a < kAminoAcids; ++a) {
        const float inverse = parameters.inverse_background[a];
        float found = __fmul_rn(__fmul_rn(admixture, __fdiv_rn(shares[a], total)), inverse);
        if (static_cast<u32>(a) == letter) {
            found = __fadd_rn(found, __fmul_rn(parameters.rest, inverse));
        }
        units[a] = static_cast<u32>(static_cast<int>(__fadd_rn(__fmul_rn(found, kOddsUnits), 0.5F)));
    }
#pragma unroll
    for (int pair = 0; pair < kAminoAcids / 2; ++pair) {
        odds[pair] = units[2 * pair] | units[2 * pair + 1] << 16;
    }
}

SWS_DEVICE void column_odds(u32* memory, const ColumnOddsParameters& parameters) {
    const ColumnNetwork& network = parameters.network;
    const ColumnsWork work(memory, network);
    const int first = static_cast<int>(blockIdx.x) * kPositions, reach = network.width / 2;
    const int left = static_cast<int>(parameters.n_positions) - first;
    const int n_letters = (left < kPositions ? left : kPositions) + 2 * reach;
    const int thread = static_cast<int>(threadIdx.x);
    for (int index = thread; index < kPositions + 2 * reach; index += kOddsThreads) {
        const u32 code = index < n_letters ? parameters.codes[first + index] & 31u : kAminoAcids;
        work.letters[index] = static_cast<unsigned char>(code < kAminoAcids ? code : kAminoAcids);
    }
    __syncthreads();
    first_layer(network, work);
    __syncthreads();
    second_layer(network, work);
    __syncthreads();
    third_layer(network, work);
    __syncthreads();
    if (thread < kPositions && thread < left) {
        const u32 letter = work.letters[thread + reach];
        u32* const odds = parameters.odds + static_cast<u64>(first + thread) * (kAminoAcids / 2);
        write_odds(parameters, work.sums + thread * kAminoAcids, letter, odds);
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(256, 3)
column_odds(SWS_PARAMETERS swsearch::ColumnOddsParameters parameters) {
    SWS_DYNAMIC_SHARED(swsearch::u32, memory);
    swsearch::column_odds(memory, parameters);
}
