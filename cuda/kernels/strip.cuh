// One strip of the query against the subjects of a warp: the recurrence, and how threads map to cells.
//
// Smith-Waterman with affine gaps after Gotoh (1982), a gap of k residues at open + k * extend:
//
//     t = H(i-1, j-1) + s(i, j)
//     H = max(t, E, F, 0)
//     E(i, j+1) = max(E - extend, H - open - extend, 0)      a gap that consumes the subject
//     F(i+1, j) = max(F - extend, H - open - extend, 0)      a gap that consumes the query
//
// E and F may be floored at zero because H is. The maxima run on the integer units and the sums on the multiply-add units
// (arithmetic.cuh). A group of lanes walks down the subject, each lane behind the one above it by kLag columns, so that what
// it needs from its neighbour was made in the neighbour's previous step and comes by one shuffle of H and one of F.
//
// Row blocks: the two halves of a word are one column apart, so the word of scores of column j serves the low half now
// and the high half a step later. Instead of permuting score words, the diagonal that a word keeps for its next step takes
// its high half's score already now (`add_high`) and its low half's score then (`add_low`).
//
// Lanes that are before the subject's first column or past its last read padding, which scores -128: before, everything
// stays zero; past, H can only fall, so neither the best score nor a boundary column is touched.
//
// Deferred maximum (kDeferred): the best H is not kept. After every four columns the largest E is, and E is at least
// h - open - 4 * extend for every h of these columns. So a result below T - open - 4 * extend says that no score reaches
// T, and nothing else is said: the subject is scored again by an exact kernel if it does not pass.

#pragma once

#include "swsearch/arithmetic.cuh"
#include "swsearch/boundary.cuh"
#include "swsearch/column_range.cuh"
#include "swsearch/strip_sync.cuh"
#include "swsearch/platform.cuh"
#include "swsearch/subject.cuh"
#include "swsearch/tile.cuh"

namespace swsearch {

// Looks on while a strip is aligned, for kernels that want more of it than its best score: `row` at each word of H as it
// is made, `round` at all that a lane keeps after each round of columns, before the next one's scores are added; it says how
// far the strip goes. This one does not look.
struct NoObserver {
    static constexpr bool kRows = false;
    static constexpr bool kRounds = false;
};

// Best score of the columns of a subject that `course` leads through against the staged strip, in every lane of the group
// that has the subject. residues: the first of these columns. All lanes of a warp call this together; groups whose subject
// has ended run on in padding until the last one has.
//
// Of pairs, the result has a score in each half: for row blocks the larger is the strip's, for two queries each is one's.
// edges: where the strip above left its columns and this one leaves its own; reads and writes: whether there are strips
// above and below; order: how this strip waits for the one above. All four matter only to kernels with boundaries.
template <class Arithmetic, class Shape, int kOpen, int kExtend, bool kDeferred, Edges kEdges, class Order,
          class Course, class Observer = NoObserver>
SWS_DEVICE typename Arithmetic::Word align_strip(const uint4* strip, const u32* residues, const Course& course,
                                                 const EdgePlace& edges, bool reads, bool writes, Order order,
                                                 Observer observer = Observer()) {
    using Word = typename Arithmetic::Word;
    constexpr int kWords = Shape::kWords;
    constexpr bool kBoundary = kEdges != Edges::kNone;
    constexpr bool kRowBlocks = Shape::kPairing == Pairing::kRowBlocks;
    constexpr Word kFirstGap = Arithmetic::addend(-(kOpen + kExtend));

    const int lane = static_cast<int>(threadIdx.x) % Shape::kGroup;
    const bool top = lane == 0;
    // Row blocks: the bottom row's H and F are handed on in one word, and a lane's upper neighbours are the lane above for
    // its low half, its own low half for the high one. The first lane of a first strip has zeros above: the sign of numbers
    // that are never negative.
    const u32 take_h = top && !kBoundary ? 0x5499u : 0x5410u;
    const u32 take_f = top && !kBoundary ? 0x54BBu : 0x5432u;
    // Columns that this lane writes to the boundary; 0 for lanes that do not.
    const u32 writes_to = kBoundary && lane == Shape::kGroup - 1 && writes ? course.n_below() : 0;

    // What a row keeps for its next step. Row blocks: H above it, the high half's score added already. Else the row's own H,
    // diagonal to the row below: that row's t is made just before this H is replaced, so that both may share a register.
    Word kept[kWords];
    Word e[kWords];
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        kept[k] = 0;
        e[k] = 0;
    }
    Word corner = 0;  // H above the first row, a step ago
    Word best = 0;
    Word last_h = 0;
    Word last_f = 0;

    const StagedScores<Shape> staged(strip, static_cast<int>(threadIdx.x) % Shape::kSlots);
    ResidueStream stream = course.residues(residues, lane);
    if (kBoundary && reads) {
        order.wait_for(kColumnsPerRound);
    }
    BoundaryAbove<Shape, kEdges, Course::kFirstLeft> above(edges, kBoundary && reads && top ? course.n_above() : 0);

    // A vote, since its outcome is known to be the same in all lanes: the compiler then keeps no second copy of the loop
    // for warps that have come apart.
    int n_steps = course.n_steps(kBoundary && writes);
    for (int step = 0; __any_sync(kWholeWarp, step < n_steps); step += kColumnsPerRound) {
        const u32 codes = stream.next();
        if (kBoundary && reads) {
            order.wait_for(step + 2 * kColumnsPerRound);
        }
        // Where the bottom row's columns of this round go; before the boundary's first column, not to be written to.
        u32* const below = words_from(
            edges.below, (static_cast<long long>(edges.first_round + static_cast<u32>(step) / kColumnsPerRound) *
                              kColumnsPerRound + Course::kFirstLeft) * Shape::kBoundaryWords);
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            const uint4* const scores = staged.column(codes, column);
            Word score[Shape::kChunks * 4];
            StagedScores<Shape>::load(scores, 0, score);

            u32 edge[2] = {0, 0};
            if constexpr (kBoundary) {
                above.take(edges, step, column, edge);
            }
            Word h, f;
            if constexpr (kRowBlocks) {
                const u32 handed_on = permute_bytes(last_h, last_f, kHighHalves);
                u32 incoming = __shfl_up_sync(kWholeWarp, handed_on, 1, Shape::kGroup);
                if constexpr (kBoundary) {
                    incoming = top ? edge[0] : incoming;
                }
                h = permute_bytes(incoming, last_h, take_h);
                f = permute_bytes(incoming, last_f, take_f);
            } else {
                const u32 incoming_h = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_h), 1, Shape::kGroup);
                const u32 incoming_f = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_f), 1, Shape::kGroup);
                h = static_cast<Word>(top ? edge[0] : incoming_h);
                f = static_cast<Word>(top ? edge[1] : incoming_f);
            }

            Word t = Arithmetic::add(corner, score[0]);  // of the row at hand; row blocks keep none of the row above
            corner = h;
            Word pending = 0;  // H of an even row, which waits for its neighbour to be compared together
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                if (k % 4 == 3 && k + 1 < kWords) {
                    StagedScores<Shape>::load(scores, k / 4 + 1, score + k + 1);
                }
                if constexpr (kRowBlocks) {
                    t = Arithmetic::add_low(kept[k], score[k]);
                    kept[k] = Arithmetic::add_high(h, score[k]);
                    h = Arithmetic::max3_floor(t, e[k], f);
                } else {
                    const Word below_t = k + 1 < kWords ? Arithmetic::add(kept[k], score[k + 1]) : 0;
                    h = Arithmetic::max3_floor(t, e[k], f);
                    kept[k] = h;
                    t = below_t;
                }
                if constexpr (Observer::kRows) {
                    observer.row(k, step + column, h);
                }
                const Word opened = Arithmetic::add(h, kFirstGap);
                e[k] = Arithmetic::template decay_or<kExtend>(e[k], opened);
                f = Arithmetic::template decay_or<kExtend>(f, opened);
                if constexpr (!kDeferred) {
                    if (k % 2 == 1) {
                        best = Arithmetic::max3(best, pending, h);
                    } else if (k == kWords - 1) {
                        best = Arithmetic::max3(best, h, h);
                    } else {
                        pending = h;
                    }
                }
            }
            last_h = h;
            last_f = f;
            if constexpr (kBoundary) {
                // The first column left is one past whole rounds: three columns are of one round, the fourth is of the next.
                static_assert((Course::kFirstLeft - 1) % kColumnsPerRound == 0, "lanes lie whole rounds deep");
                const int first = column < kColumnsPerRound - 1 ? 0 : kColumnsPerRound - 1;
                const bool wanted = static_cast<u32>(step + Course::kFirstLeft + first) < writes_to;
                if constexpr (kRowBlocks) {
                    store_if(wanted, words_from(below, column), permute_bytes(last_h, last_f, kHighHalves));
                } else {
                    store_pair_if(wanted, words_from(below, 2 * column), static_cast<u32>(last_h), static_cast<u32>(last_f));
                }
            }
        }
        if (kBoundary && writes && lane == Shape::kGroup - 1) {
            order.have_left(step + Course::kFirstLeft + kColumnsPerRound - 1);  // whole rounds
        }
        if constexpr (kDeferred) {
#pragma unroll
            for (int k = 0; k < kWords; k += 2) {
                best = Arithmetic::max3(best, e[k], e[k + 1 < kWords ? k + 1 : k]);
            }
        }
        if constexpr (Observer::kRounds) {
            n_steps = observer.round(step + kColumnsPerRound, n_steps, kept, e, corner, last_h, last_f);
        }
    }

#pragma unroll
    for (int distance = Shape::kGroup / 2; distance > 0; distance /= 2) {
        const Word other = static_cast<Word>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(best), distance));
        best = Arithmetic::max3(best, other, other);
    }
    return best;
}

SWS_DEVICE int low_half(u32 word) { return static_cast<int>(word & 0xFFFFu); }
SWS_DEVICE int high_half(u32 word) { return static_cast<int>(word >> 16); }

// The larger half of a word of two scores, or the one score.
template <class Arithmetic>
SWS_DEVICE int single_score(typename Arithmetic::Word word) {
    if constexpr (Arithmetic::kPair) {
        const int low = low_half(word);
        const int high = high_half(word);
        return low > high ? low : high;
    } else {
        return word;
    }
}

}  // namespace swsearch
