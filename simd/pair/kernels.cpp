// The kernels of the pair aligner for one instruction set: Gotoh's recurrence in diamonds, for problems that are local
// or not, with affine or linear gaps, and with letters that are compared or scored by a table.
//
// kernel.hpp defines which lane computes which cell in which step, and docs/design/diamond.md derives it.
//
// Exactness: lanes of 16 and 32 bits wrap, and the caller ensures that every value of a tile is in their range
// (docs/design/diamond.md). Lanes of 8 bits saturate: at the lower limit, which is the score 0 of a local path, and at
// the upper limit, which the caller detects in `best`.

#include "common/transpose.hpp"
#include "common/vectors.hpp"
#include "pair/kernel.hpp"

namespace swsearch::pair {
namespace {

// Rows of a lane: as many as fit the registers, but fewer if a strip would otherwise be long for its few lanes.
constexpr int kRows = Vectors::kBytes > 16 || Vectors::kRegisters >= 32 ? 8 : 4;

template <class T>
struct PairLanes : Lanes<T> {
    using typename Lanes<T>::V;
    static constexpr bool kSaturating = sizeof(T) == 1;

    static V add(V a, V b) {
        if constexpr (kSaturating) {
            return Lanes<T>::add_saturating(a, b);
        } else {
            return Lanes<T>::add(a, b);
        }
    }
    static V subtract(V a, V b) {
        if constexpr (kSaturating) {
            return Lanes<T>::subtract_saturating(a, b);
        } else {
            return Lanes<T>::subtract(a, b);
        }
    }
};

template <class T, bool kLocal, bool kAffine, bool kCompare, Kind kKind>
void compute_steps(Steps& state, ptrdiff_t from, ptrdiff_t to) {
    using Lane = PairLanes<T>;
    using V = typename Lane::V;
    constexpr int kLanes = Lane::kLanes;
    constexpr bool kFindBest = kLocal || kKind == kTracked;

    const V match = Lane::splat(state.match);
    const V mismatch = Lane::splat(state.mismatch);
    V scores = mismatch;  // scores, indexed by the exclusive or of two letters
    if constexpr (Lane::kSaturating) scores = Vectors::first_of_parts(match, mismatch);
    const V first = Lane::splat(state.first);
    const V extend = Lane::splat(state.extend);
    const V zero = Lane::splat(state.zero);
    const T* const query = static_cast<const T*>(state.query);
    const T* const subject[2] = {static_cast<const T*>(state.subject[0]), static_cast<const T*>(state.subject[1])};
    const T* const top_h = static_cast<const T*>(state.top_h);
    const T* const top_f = static_cast<const T*>(state.top_f);
    const T* const allowed = static_cast<const T*>(state.allowed);
    T* const bottom_h = static_cast<T*>(state.bottom_h);
    T* const bottom_f = static_cast<T*>(state.bottom_f);
    T* const h_memory = static_cast<T*>(state.h);
    T* const e_memory = static_cast<T*>(state.e);

    V h[kRows];
    V e[kRows];
#pragma GCC unroll 8
    for (int k = 0; k < kRows; ++k) {
        h[k] = Lane::load(h_memory + k * kLanes);
        e[k] = Lane::load(e_memory + k * kLanes);
    }
    V diagonal_h = Lane::load(static_cast<const T*>(state.diagonal_h));
    V previous_h = Lane::load(static_cast<const T*>(state.previous_h));
    V bottom_next_f = Lane::load(static_cast<const T*>(state.f));
    V previous_f = Lane::load(static_cast<const T*>(state.previous_f));
    V best = zero;
    V position = zero;
    if constexpr (kFindBest) best = Lane::load(static_cast<const T*>(state.best));
    if constexpr (kKind == kTracked) position = Lane::load(static_cast<const T*>(state.position));

    for (ptrdiff_t t = from; t < to; ++t) {
        const V above = Lane::shift_in(previous_h, top_h[t - from]);
        V f = Lane::shift_in(previous_f, top_f[t - from]);
        previous_h = h[kRows - 1];
        previous_f = bottom_next_f;
        V diagonal = diagonal_h;
        diagonal_h = above;
        V letters = zero;
        if constexpr (kCompare) letters = Lane::load(subject[(state.from + t) & 1] - ((state.from + t) >> 1));
        typename Lane::Mask active{};
        if constexpr (kKind != kPlain) {
            const ptrdiff_t past = t - state.columns;
            active = Lane::between(past < 0 ? -1 : past / kSkew, t / kSkew);
        }
#pragma GCC unroll 8
        for (int k = 0; k < kRows; ++k) {
            V score;
            if constexpr (!kCompare) {
                score = Lane::load_bytes(state.scores + ((t - from) * kRows + k) * kLanes);
            } else if constexpr (Lane::kSaturating) {
                score = Vectors::shuffle(scores, Vectors::exclusive_or(letters, Lane::load(query + k * kLanes)));
            } else {
                score = Lane::select(Lane::equal(letters, Lane::load(query + k * kLanes)), match, mismatch);
            }
            V e_next;
            if constexpr (Lane::kSaturating) {
                // Gaps open only from an H that is not E: the other order of two adjacent gaps costs the same.
                const V e_extended = Lane::subtract(e[k], extend);
                const V f_extended = Lane::subtract(f, extend);
                const V without_e = Lane::max(Lane::add(diagonal, score), f);
                diagonal = h[k];
                V now = Lane::max(without_e, e[k]);
                const V opened = Lane::subtract(without_e, first);
                e_next = Lane::max(e_extended, opened);
                f = Lane::max(f_extended, opened);
                if constexpr (kKind != kPlain) now = Lane::select(active, now, h[k]);
                best = Lane::max(best, now);
                h[k] = now;
            } else {
                V without_f = Lane::max(Lane::add(diagonal, score), e[k]);
                if constexpr (kLocal) without_f = Lane::max(without_f, zero);
                diagonal = h[k];
                V now = Lane::max(without_f, f);
                if constexpr (kKind != kPlain) now = Lane::select(active, now, h[k]);
                if constexpr (kKind == kTracked) {
                    const V permitted = Lane::load(allowed + k * kLanes);
                    const auto better = Lane::both(Lane::both(Lane::greater(now, best), active),
                                                   Lane::greater(Lane::splat(0), permitted));
                    best = Lane::select(better, now, best);
                    const V here = Lane::splat(static_cast<int32_t>((t - state.first_step) * kRows + k));
                    position = Lane::select(better, here, position);
                } else if constexpr (kFindBest) {
                    best = Lane::max(best, now);
                }
                h[k] = now;
                const V opened = Lane::subtract(now, first);
                if constexpr (kAffine) {
                    e_next = Lane::max(Lane::subtract(e[k], extend), opened);
                    // The result is the same as with `opened`, because F - first <= F - extend, but the dependency
                    // chain from row to row is shorter.
                    f = Lane::max(Lane::subtract(f, extend), Lane::subtract(without_f, first));
                } else {
                    e_next = opened;
                    f = opened;
                }
            }
            if constexpr (kKind != kPlain) e_next = Lane::select(active, e_next, e[k]);
            e[k] = e_next;
        }
        bottom_h[t - from] = Lane::last(h[kRows - 1]);
        bottom_f[t - from] = Lane::last(f);
        bottom_next_f = f;
    }

#pragma GCC unroll 8
    for (int k = 0; k < kRows; ++k) {
        Lane::store(h_memory + k * kLanes, h[k]);
        Lane::store(e_memory + k * kLanes, e[k]);
    }
    Lane::store(static_cast<T*>(state.diagonal_h), diagonal_h);
    Lane::store(static_cast<T*>(state.previous_h), previous_h);
    Lane::store(static_cast<T*>(state.f), bottom_next_f);
    Lane::store(static_cast<T*>(state.previous_f), previous_f);
    if constexpr (kFindBest) Lane::store(static_cast<T*>(state.best), best);
    if constexpr (kKind == kTracked) Lane::store(static_cast<T*>(state.position), position);
}

void transpose_scores(const int8_t* const* rows, int8_t* out, size_t stride) {
    transpose_blocks(rows, 0, out, static_cast<ptrdiff_t>(stride));
}

template <class T, bool kLocal, bool kAffine, bool kCompare>
constexpr void add_kinds(Width& width) {
    StepsFunction* const kinds = width.steps[kLocal][kAffine][kCompare];
    kinds[kPlain] = compute_steps<T, kLocal, kAffine, kCompare, kPlain>;
    kinds[kMasked] = compute_steps<T, kLocal, kAffine, kCompare, kMasked>;
    if constexpr (sizeof(T) > 1) kinds[kTracked] = compute_steps<T, kLocal, kAffine, kCompare, kTracked>;
}

template <class T, bool kLocal>
constexpr void add_problems(Width& width) {
    add_kinds<T, kLocal, false, false>(width);
    add_kinds<T, kLocal, false, true>(width);
    add_kinds<T, kLocal, true, false>(width);
    add_kinds<T, kLocal, true, true>(width);
}

template <class T>
constexpr Width width_of() {
    Width width{Lanes<T>::kLanes, kRows, Vectors::kBytes, transpose_scores, {}};
    if constexpr (sizeof(T) > 1) add_problems<T, false>(width);
    add_problems<T, true>(width);
    return width;
}

}  // namespace

extern const Kernels SWSEARCH_KERNELS;
const Kernels SWSEARCH_KERNELS = {width_of<int8_t>(), width_of<int16_t>(), width_of<int32_t>()};

}  // namespace swsearch::pair
