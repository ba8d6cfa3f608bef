// The upper bound of bound.cuh in 8-bit lanes, four row blocks of one query to a word: for architectures that add and
// compare four bytes in one instruction, and floors of at most 254. inter_task.cu calls it. Inputs: the staged profile
// strip, which has all rows of the query, and packed residues. Output: the largest E.
//
// The recurrence, its proof, its raised values (E, F and Y have c added) and the padding are those of bound.cuh. What
// differs:
//
// Saturation. Numbers are 0 to 255 (ByteQuad). A number below 0 becomes 0, which only raises it, and E, F and Y are
// raised by c, so that for them this is -c. A sum t beyond 255 becomes 255. Then E, raised, is at least 255 - 3 *
// extend at the next look, and the result at least 255 - open - 4 * extend, which is no proof for any floor T <= 254: a
// subject is proved to score less than T only by a result below T - open - 4 * extend. If no t exceeds 255, nothing
// was lowered. Costs are subtracted in steps of at most 127 (c <= 127; what F loses across a block may be more, and F
// then remains too large). docs/design/bound.md contains the proof.
//
// Row blocks. The blocks of a lane follow one another in the bytes of a word, so F of a block's last band enters the next
// block's first band in the same column. F first passes through the bands of all blocks at once, with F of the lane
// above in the first block and nothing above the others. Then F below each block is the largest of what leaves it and of
// what leaves the blocks above, less what F loses across the blocks between: two steps of a prefix maximum. Last, this F
// passes through the bands of the blocks below, two instructions per band, and kept is computed.
//
// A query has one strip: with 16 lanes of 45 words this has 2,880 rows, and longer queries have the bound of bound.cuh.
// So no boundary is stored, and what lanes exchange fits one word.

#pragma once

#include "search/arithmetic.cuh"
#include "search/bound.cuh"
#include "search/boundary.cuh"
#include "search/column_range.cuh"
#include "search/gap_costs.cuh"
#include "common/platform.cuh"
#include "search/subject.cuh"
#include "search/tile.cuh"

namespace swsearch {

// Bytes of the first argument of permute_bytes, moved up by one or two blocks; the second argument fills the lowest.
constexpr u32 kOneBlockDown = 0x2104u;
constexpr u32 kTwoBlocksDown = 0x1044u;

// Returns the largest E of a subject against the staged strip, in every lane of the group that has the subject. All
// lanes of a warp call this function together; groups whose subject has ended compute padding until the longest subject
// of the warp has ended.
//
// strip: the staged profile strip. residues: the subject's first word. length: its residues. gap: the gap costs.
template <class Rows, int kBand>
SWS_DEVICE u32 byte_bound_strip(const uint4* strip, const u32* residues, int length, const GapCosts& gap) {
    using Byte = ByteQuad;
    using Shape = InOneColumn<Rows>;
    using Columns = WholeSubject<Shape>;
    constexpr int kWords = Shape::kWords;
    constexpr int kBands = kWords / kBand;
    static_assert(kWords % kBand == 0, "a band lies within a block");
    const int band_gap = kBand * gap.extend < gap.first() ? kBand * gap.extend : gap.first();
    const u32 extend = Byte::decrement(gap.extend);
    const u32 first_gap = Byte::decrement(gap.first());
    const u32 pass_band = Byte::decrement(band_gap);
    const u32 pass_block = Byte::decrement(kBands * band_gap);
    const u32 pass_two_blocks = Byte::decrement(2 * kBands * band_gap);

    const Columns columns(length);
    const int lane = static_cast<int>(threadIdx.x) % Shape::kGroup;
    const bool top = lane == 0;

    u32 kept[kWords];
    u32 e[kBands];  // raised, as all values of E, F and Y
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        kept[k] = Byte::kZero;
    }
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
        e[band] = Byte::kZero;
    }
    u32 above_kept = Byte::kZero;  // kept above the first row, of the previous step, in the lowest byte
    u32 last_f = Byte::kZero;      // F below each block
    u32 best = Byte::kZero;

    const StagedScores<Shape> staged(strip, static_cast<int>(threadIdx.x) % Shape::kSlots);
    ResidueStream stream = columns.residues(residues, lane);

    // A vote, for the reason that align_strip gives.
    const int n_steps = columns.n_steps(false);
    for (int step = 0; __any_sync(kWholeWarp, step < n_steps); step += kColumnsPerRound) {
        const u32 codes = stream.next();
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            const uint4* const scores = staged.column(codes, column);
            u32 score[Shape::kChunks * 4];

            // Lanes exchange kept and F of their last block's last row, the two highest bytes, in one word.
            const u32 outgoing = permute_bytes(kept[kWords - 1], last_f, 0x0073u);
            const u32 from_above = __shfl_up_sync(kWholeWarp, outgoing, 1, Shape::kGroup);
            const u32 incoming = top ? Byte::kZero : from_above;
            const u32 corner = permute_bytes(kept[kWords - 1], above_kept, kOneBlockDown);
            u32 f = permute_bytes(incoming, Byte::kZero, 0x4441u);
            above_kept = incoming;

#pragma unroll
            for (int chunk = 0; chunk < Shape::kChunks; ++chunk) {
                StagedScores<Shape>::load(scores, chunk, score + 4 * chunk);
            }
            u32 t[kWords];
            u32 y[kBands];
            t[0] = Byte::add(corner, score[0]);
#pragma unroll
            for (int band = 0; band < kBands; ++band) {
#pragma unroll
                for (int k = band * kBand + 1; k <= (band + 1) * kBand && k < kWords; ++k) {
                    t[k] = Byte::add(kept[k - 1], score[k]);
                }
                u32 largest = t[band * kBand];
#pragma unroll
                for (int k = band * kBand + 1; k < (band + 1) * kBand; ++k) {
                    largest = Byte::max2(largest, t[k]);
                }
                y[band] = Byte::max2(Byte::max2(e[band], largest), f);
                e[band] = Byte::decay_or(e[band], extend, largest);
                f = Byte::decay_or(y[band], pass_band, largest);
            }
            f = Byte::decay_or(permute_bytes(f, Byte::kZero, kOneBlockDown), pass_block, f);
            f = Byte::decay_or(permute_bytes(f, Byte::kZero, kTwoBlocksDown), pass_two_blocks, f);
            last_f = f;
            f = permute_bytes(f, Byte::kZero, kOneBlockDown);  // F above the first row of each block but the first
#pragma unroll
            for (int band = 0; band < kBands; ++band) {
                const u32 least = Byte::add(Byte::max2(y[band], f), first_gap);
                f = Byte::add(f, pass_band);
#pragma unroll
                for (int k = band * kBand; k < (band + 1) * kBand; ++k) {
                    kept[k] = Byte::max2(t[k], least);
                }
            }
        }
#pragma unroll
        for (int band = 0; band < kBands; ++band) {
            best = Byte::max2(best, e[band]);
        }
    }

#pragma unroll
    for (int distance = Shape::kGroup / 2; distance > 0; distance /= 2) {
        best = Byte::max2(best, __shfl_xor_sync(kWholeWarp, best, distance));
    }
    return Byte::largest(Byte::add(best, first_gap));
}

}  // namespace swsearch
