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
#include "swsearch/platform.cuh"
#include "swsearch/subject.cuh"
#include "swsearch/tile.cuh"

namespace swsearch {

// Best score of `length` columns of a subject against the staged strip, in every lane of the group that has the subject.
// All lanes of a warp call this together; groups whose subject has ended run on in padding until the last one has.
//
// Of pairs, the result has a score in each half: for row blocks the larger is the strip's, for two queries each is one's.
// boundary: the subject's columns as the strip above left them, or null where the query is a single strip; the columns that
// this strip leaves lie `below_words` words from there. `reads` and `writes` say whether a strip lies above and below.
template <class Arithmetic, class Shape, int kOpen, int kExtend, bool kDeferred, bool kBoundary>
SWS_DEVICE typename Arithmetic::Word align_strip(const uint4* strip, const u32* residues, int length, u32* boundary, long long below_words,
                                                 bool reads, bool writes) {
    using Word = typename Arithmetic::Word;
    constexpr int kWords = Shape::kWords;
    constexpr int kChunks = (kWords + 3) / 4;
    constexpr bool kRowBlocks = Shape::kPairing == Pairing::kRowBlocks;
    constexpr Word kFirstGap = Arithmetic::addend(-(kOpen + kExtend));

    const int lane = static_cast<int>(threadIdx.x) % Shape::kGroup;
    const int slot = static_cast<int>(threadIdx.x) % Shape::kSlots;
    const bool top = lane == 0;
    // Row blocks: the bottom row's H and F are handed on in one word, and a lane's upper neighbours are the lane above for
    // its low half, its own low half for the high one. The first lane of a first strip has zeros above: the sign of numbers
    // that are never negative.
    constexpr u32 kHandOn = 0x7632u;
    const u32 take_h = top && !kBoundary ? 0x5499u : 0x5410u;
    const u32 take_f = top && !kBoundary ? 0x54BBu : 0x5432u;
    // Columns that this lane writes to the boundary; 0 for lanes that do not.
    const u32 writes_to = kBoundary && lane == Shape::kGroup - 1 && writes ? static_cast<u32>(length) : 0;

    Word diagonal[kWords];
    Word e[kWords];
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        diagonal[k] = 0;
        e[k] = 0;
    }
    Word best = 0;
    Word last_h = 0;
    Word last_f = 0;

    ResidueStream stream(residues, length, Shape::kLag * lane);
    BoundaryAbove<Shape> above(boundary, kBoundary && reads ? length : 0, lane);

    // A vote, since its outcome is known to be the same in all lanes: the compiler then keeps no second copy of the loop
    // for warps that have come apart.
    const int n_steps = length + Shape::kDepth;
    for (int step = 0; __any_sync(kWholeWarp, step < n_steps); step += kColumnsPerRound) {
        const u32 codes = stream.next();
        if constexpr (kBoundary) {
            above.advance();
        }
        // Where the bottom row's columns of this round go; before the subject's first column, not to be written to.
        u32* const below = words_from(
            boundary, below_words + static_cast<long long>(step - Shape::kDepth) * Shape::kBoundaryWords);
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            const ScoreColumn<Shape> scores(strip, slot, permute_bytes(codes, 0, 0x4440u + static_cast<u32>(column)));

            Word h, f;
            if constexpr (kRowBlocks) {
                const u32 handed_on = permute_bytes(last_h, last_f, kHandOn);
                u32 incoming = __shfl_up_sync(kWholeWarp, handed_on, 1, Shape::kGroup);
                if constexpr (kBoundary) {
                    const u32 edge = above.word(column, 0);
                    incoming = top ? edge : incoming;
                }
                h = permute_bytes(incoming, last_h, take_h);
                f = permute_bytes(incoming, last_f, take_f);
            } else {
                const u32 incoming_h = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_h), 1, Shape::kGroup);
                const u32 incoming_f = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_f), 1, Shape::kGroup);
                u32 edge_h = 0;
                u32 edge_f = 0;
                if constexpr (kBoundary) {
                    edge_h = above.word(column, 0);
                    edge_f = above.word(column, 1);
                }
                h = static_cast<Word>(top ? edge_h : incoming_h);
                f = static_cast<Word>(top ? edge_f : incoming_f);
            }

            Word pending = 0;  // H of an even row, which waits for its neighbour to be compared together
#pragma unroll
            for (int chunk = 0; chunk < kChunks; ++chunk) {
                Word score[4];
                scores.load(chunk, score);
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int k = chunk * 4 + part;
                    if (k < kWords) {
                        Word t;
                        if constexpr (kRowBlocks) {
                            t = Arithmetic::add_low(diagonal[k], score[part]);
                            diagonal[k] = Arithmetic::add_high(h, score[part]);
                        } else {
                            t = Arithmetic::add(diagonal[k], score[part]);
                            diagonal[k] = h;
                        }
                        h = Arithmetic::max3_floor(t, e[k], f);
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
                }
            }
            last_h = h;
            last_f = f;
            if constexpr (kBoundary) {
                const bool wanted = static_cast<u32>(step - Shape::kDepth + column) < writes_to;
                if constexpr (kRowBlocks) {
                    store_if(wanted, words_from(below, column), permute_bytes(last_h, last_f, kHandOn));
                } else {
                    store_pair_if(wanted, words_from(below, 2 * column), static_cast<u32>(last_h), static_cast<u32>(last_f));
                }
            }
        }
        if constexpr (kDeferred) {
#pragma unroll
            for (int k = 0; k < kWords; k += 2) {
                best = Arithmetic::max3(best, e[k], e[k + 1 < kWords ? k + 1 : k]);
            }
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
