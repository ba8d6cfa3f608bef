// Local Forward scores: the sums over all alignments of a query's columns with those of subjects. Inputs: the odds of
// the subjects (column_odds), and the columns and gap factors of the query. Output: a total for each block of
// kBlockRows rows of the query with each subject, and its exponent; swsearch/query/columns.py adds these up.
//
// simd/context/kernel.hpp has the recurrence and the rule by which a block's values share a power of two. A block of
// threads computes one subject in a strip of kWarpSize blocks of the query's rows. Its first warp computes the
// recurrence, one block of rows a lane: in step t, lane l computes column t - l, so it needs what the lane above passed
// on in the step before. The steps of a long subject follow each other, so each should be short: the other warps, one a
// step, compute the odds of the rows with the columns ahead of it. A launch computes one strip of all subjects; the
// lowest lane stores what the next launch's first lane needs. Values are the same as those of simd/context: each is
// computed by the same operations in the same order, without fused multiply-add.

#include "common/platform.cuh"
#include "search/forward_numbers.cuh"

namespace swsearch {

constexpr int kBlockRows = 16;
constexpr int kColumnWords = 10;             // pairs of amino acids of a column
constexpr int kRowWords = kColumnWords + 4;  // four factors of gaps follow
constexpr int kAhead = 3;                    // steps whose odds are computed together, and warps that compute them
constexpr int kForwardThreads = (1 + kAhead) * kWarpSize;
constexpr int kStripWords = kBlockRows * kRowWords * kWarpSize;
constexpr int kStepOdds = kBlockRows * kWarpSize;
constexpr int kExponentStep = 50;
constexpr float kLarge = 1125899906842624.0F;  // 2^kExponentStep
constexpr float kUnit = 1.0F / 8388608.0F;     // the query's columns are in units of 2^-15, odds in units of 2^-8
constexpr float kSmall = 1.0F / 1125899906842624.0F;

// What a block passes to the block below for one column: the last row's M and X, and start + P + Y of the column
// before, each times 2^-exponent.
struct Passed {
    float m, x, before;
    int exponent;
};

struct ForwardParameters {
    const u32* rows;  // [n_strips][kBlockRows][kRowWords][kWarpSize]; a column has pairs of bytes
                      // (forward_numbers.cuh), the factors of gaps are floats
    u32 strip, n_strips, n_blocks;
    const u32* odds;    // [positions][kColumnWords] pairs of 16 bits
    const u32* starts;  // first position of each subject, the longest subject first
    const u32* lengths;
    u32 n_subjects;
    uint4* boundary;  // [positions] Passed, from strip to strip
    float* totals;    // [n_subjects][n_blocks]
    int* exponents;
};

SWS_DEVICE u32 word_of_row(const u32* rows, int row, int word) { return rows[(row * kRowWords + word) * kWarpSize]; }

// Writes the odds of the rows of a block with a column of a subject, kWarpSize numbers apart.
SWS_DEVICE void write_odds_of_rows(const u32* rows, const u32* column, float* odds) {
    u32 words[kColumnWords];
#pragma unroll
    for (int word = 0; word < kColumnWords; ++word) {
        words[word] = column[word];
    }
#pragma unroll
    for (int i = 0; i < kBlockRows; ++i) {
        ByteProducts products;
#pragma unroll
        for (int word = 0; word < kColumnWords; ++word) {
            products.add(words[word], word_of_row(rows, i, word));
        }
        odds[i * kWarpSize] = __fmul_rn(static_cast<float>(products.sum()), kUnit);
    }
}

// The rows of one block.
class BlockOfRows {
   public:
    SWS_DEVICE explicit BlockOfRows(const u32* rows) : rows_(rows) {
#pragma unroll
        for (int i = 0; i < kBlockRows; ++i) {
            p_[i] = y_[i] = 0.0F;
        }
    }

    // What enters the first block of a query.
    SWS_DEVICE Passed nothing() const { return {0.0F, 0.0F, power_of_two(-exponent_), exponent_}; }

    // Computes the column with these odds (write_odds_of_rows), and returns what the block passes on.
    SWS_DEVICE Passed column(const float* odds, Passed entering) {
        if (exponent_ != entering.exponent) {
            meet(entering);
        }
        const float start = power_of_two(-exponent_);
        float m_above = entering.m, x = entering.x, before = entering.before, sum = 0.0F, size = 0.0F;
#pragma unroll
        for (int i = 0; i < kBlockRows; ++i) {
            const float m = __fmul_rn(odds[i * kWarpSize], before);
            x = __fadd_rn(__fmul_rn(gap_factor(i, kDeletion), m_above), __fmul_rn(gap_factor(i, kFurtherDeletion), x));
            before = __fadd_rn(__fadd_rn(start, p_[i]), y_[i]);
            y_[i] = __fadd_rn(__fmul_rn(gap_factor(i, kInsertion), p_[i]),
                              __fmul_rn(gap_factor(i, kFurtherInsertion), y_[i]));
            p_[i] = __fadd_rn(m, x);
            m_above = m;
            sum = __fadd_rn(sum, m);
            size = __fadd_rn(size, before);
        }
        add_to_total(sum);
        const Passed passed{m_above, x, before, exponent_};
        rescale(__fadd_rn(size, sum));
        return passed;
    }

    SWS_DEVICE float total() const { return total_; }
    SWS_DEVICE int exponent_of_total() const { return of_total_; }

   private:
    enum { kDeletion, kFurtherDeletion, kInsertion, kFurtherInsertion };  // the order of the factors

    SWS_DEVICE float gap_factor(int row, int factor) const {
        return __uint_as_float(word_of_row(rows_, row, kColumnWords + factor));
    }

    // Brings what enters, and the block's values, to the larger of their exponents.
    SWS_DEVICE void meet(Passed& entering) {
        if (entering.exponent > exponent_) {
            scale(power_of_two(exponent_ - entering.exponent));
            exponent_ = entering.exponent;
        } else {
            const float factor = power_of_two(entering.exponent - exponent_);
            entering.m = __fmul_rn(entering.m, factor);
            entering.x = __fmul_rn(entering.x, factor);
            entering.before = __fmul_rn(entering.before, factor);
        }
    }

    SWS_DEVICE void add_to_total(float sum) {
        if (exponent_ == of_total_) {
            total_ = __fadd_rn(total_, sum);
        } else if (sum > 0.0F) {
            const int larger = exponent_ > of_total_ ? exponent_ : of_total_;
            const float of_known = __fmul_rn(total_, power_of_two(of_total_ - larger));
            total_ = __fadd_rn(of_known, __fmul_rn(sum, power_of_two(exponent_ - larger)));
            of_total_ = larger;
        }
    }

    // Changes the exponent if the values have become large or small; they are never small with the exponent 0.
    SWS_DEVICE void rescale(float size) {
        if (size > kLarge) {
            scale(kSmall);
            exponent_ += kExponentStep;
        } else if (size < kSmall) {
            scale(kLarge);
            exponent_ -= kExponentStep;
        }
    }

    SWS_DEVICE void scale(float factor) {
#pragma unroll
        for (int i = 0; i < kBlockRows; ++i) {
            p_[i] = __fmul_rn(p_[i], factor);
            y_[i] = __fmul_rn(y_[i], factor);
        }
    }

    const u32* rows_;  // [kBlockRows][kRowWords] words, kWarpSize apart
    float p_[kBlockRows], y_[kBlockRows];
    float total_ = 0.0F;
    int exponent_ = 0, of_total_ = 0;
};

SWS_DEVICE Passed from_lane_above(const Passed& passed) {
    const auto above = [](u32 value) { return __shfl_up_sync(kWholeWarp, value, 1, kWarpSize); };
    return {__uint_as_float(above(__float_as_uint(passed.m))), __uint_as_float(above(__float_as_uint(passed.x))),
            __uint_as_float(above(__float_as_uint(passed.before))),
            static_cast<int>(above(static_cast<u32>(passed.exponent)))};
}

SWS_DEVICE Passed loaded(const uint4& words) {
    return {__uint_as_float(words.x), __uint_as_float(words.y), __uint_as_float(words.z), static_cast<int>(words.w)};
}

SWS_DEVICE uint4 stored(const Passed& passed) {
    return {__float_as_uint(passed.m), __float_as_uint(passed.x), __float_as_uint(passed.before),
            static_cast<u32>(passed.exponent)};
}

// memory: kStripWords words for the rows, then the odds of twice kAhead steps.
SWS_DEVICE void forward_totals(u32* memory, const ForwardParameters& parameters) {
    const u32* const of_strip = parameters.rows + parameters.strip * kStripWords;
    for (u32 word = threadIdx.x; word < kStripWords; word += kForwardThreads) {
        memory[word] = of_strip[word];
    }
    __syncthreads();
    const u32 subject = blockIdx.x;
    const int warp = static_cast<int>(threadIdx.x / kWarpSize), lane = static_cast<int>(threadIdx.x % kWarpSize);
    const int n_lanes_left = static_cast<int>(parameters.n_blocks - parameters.strip * kWarpSize);
    const int n_lanes = n_lanes_left < kWarpSize ? n_lanes_left : kWarpSize;
    const int length = static_cast<int>(parameters.lengths[subject]);
    const u64 start = parameters.starts[subject];
    uint4* const boundary = parameters.boundary + start;
    float* const odds = reinterpret_cast<float*>(memory + kStripWords) + lane;
    BlockOfRows block(memory + lane);
    Passed passed{};
    const auto compute = [&](int step) {
        Passed entering = from_lane_above(passed);
        const int column = step - lane;
        if (lane < n_lanes && column >= 0 && column < length) {
            if (lane == 0) {
                entering = parameters.strip == 0 ? block.nothing() : loaded(boundary[column]);
            }
            passed = block.column(odds + step % (2 * kAhead) * kStepOdds, entering);
            if (lane == kWarpSize - 1 && parameters.strip + 1 < parameters.n_strips) {
                boundary[column] = stored(passed);
            }
        }
    };
    const int n_steps = length + n_lanes - 1;
    for (int first = -kAhead; first < n_steps; first += kAhead) {
        if (warp == 0) {
            for (int step = first; first >= 0 && step < first + kAhead; ++step) {
                compute(step);
            }
        } else {
            const int step = first + kAhead + warp - 1, column = step - lane;
            if (lane < n_lanes && column >= 0 && column < length) {
                const u32* const of_column = parameters.odds + (start + static_cast<u64>(column)) * kColumnWords;
                write_odds_of_rows(memory + lane, of_column, odds + step % (2 * kAhead) * kStepOdds);
            }
        }
        __syncthreads();
    }
    if (warp == 0 && lane < n_lanes) {
        const u64 index =
            static_cast<u64>(subject) * parameters.n_blocks + parameters.strip * kWarpSize + static_cast<u32>(lane);
        parameters.totals[index] = block.total();
        parameters.exponents[index] = block.exponent_of_total();
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(128, 4)
forward_totals(SWS_PARAMETERS swsearch::ForwardParameters parameters) {
    SWS_DYNAMIC_SHARED(swsearch::u32, memory);
    swsearch::forward_totals(memory, parameters);
}
