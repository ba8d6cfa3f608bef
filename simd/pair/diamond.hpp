// The recurrence, once: local or not, affine or linear gaps, letters compared or scored by a table. Included by one file
// an instruction set; everything is in an anonymous namespace, so that no function compiled for a newer machine replaces
// another.
//
// Wrapping arithmetic is exact because the caller keeps every value of a tile within the lanes (docs/design/diamond.md).
// Lanes of 8 bits saturate: below at the 0 of a local path, above where the caller sees it in `best`.

#pragma once

#include <cstddef>
#include <cstdint>

#include "pair/kernel.hpp"

namespace swsearch::pair {
namespace {

template <class Lanes, bool local, bool affine, bool compare, Kind kind>
void do_steps(Steps& state, std::ptrdiff_t from, std::ptrdiff_t to) {
    using Vector = typename Lanes::Vector;
    using Lane = typename Lanes::Lane;
    constexpr int rows = Lanes::rows;
    constexpr int lanes = Lanes::count;
    constexpr bool best_kept = local || kind == tracked;

    const Vector match = Lanes::set(state.match);
    const Vector mismatch = Lanes::set(state.mismatch);
    Vector scores = mismatch;  // by the difference of two letters
    if constexpr (Lanes::saturating) scores = Lanes::first_of_each_16(match, mismatch);
    const Vector first = Lanes::set(state.first);
    const Vector extend = Lanes::set(state.extend);
    const Vector zero = Lanes::set(state.zero);
    const Lane* const query = static_cast<const Lane*>(state.query);
    const Lane* const subject[2] = {static_cast<const Lane*>(state.subject[0]), static_cast<const Lane*>(state.subject[1])};
    const Lane* const top_h = static_cast<const Lane*>(state.top_h);
    const Lane* const top_f = static_cast<const Lane*>(state.top_f);
    const Lane* const allowed = static_cast<const Lane*>(state.allowed);
    Lane* const bottom_h = static_cast<Lane*>(state.bottom_h);
    Lane* const bottom_f = static_cast<Lane*>(state.bottom_f);
    Lane* const h_memory = static_cast<Lane*>(state.h);
    Lane* const e_memory = static_cast<Lane*>(state.e);

    Vector h[rows];
    Vector e[rows];
#pragma GCC unroll 8
    for (int k = 0; k < rows; ++k) {
        h[k] = Lanes::load(h_memory + k * lanes);
        e[k] = Lanes::load(e_memory + k * lanes);
    }
    Vector before = Lanes::load(static_cast<const Lane*>(state.before));
    Vector older = Lanes::load(static_cast<const Lane*>(state.older));
    Vector newer_f = Lanes::load(static_cast<const Lane*>(state.f));
    Vector older_f = Lanes::load(static_cast<const Lane*>(state.older_f));
    Vector best = zero;
    Vector place = zero;
    if constexpr (best_kept) best = Lanes::load(static_cast<const Lane*>(state.best));
    if constexpr (kind == tracked) place = Lanes::load(static_cast<const Lane*>(state.place));

    for (std::ptrdiff_t t = from; t < to; ++t) {
        const Vector above = Lanes::shift_in(older, top_h[t - from]);
        Vector f = Lanes::shift_in(older_f, top_f[t - from]);
        older = h[rows - 1];
        older_f = newer_f;
        Vector diagonal = before;
        before = above;
        Vector letters = zero;
        if constexpr (compare) letters = Lanes::load(subject[(state.from + t) & 1] - ((state.from + t) >> 1));
        typename Lanes::Mask active{};
        if constexpr (kind != plain) {
            const std::ptrdiff_t past = t - state.columns;
            active = Lanes::between(past < 0 ? -1 : past / skew, t / skew);
        }
#pragma GCC unroll 8
        for (int k = 0; k < rows; ++k) {
            Vector score;
            if constexpr (compare) {
                const Vector asked = Lanes::load(query + k * lanes);
                if constexpr (Lanes::saturating) {
                    score = Lanes::look_up(scores, Lanes::difference(letters, asked));
                } else {
                    score = Lanes::select(Lanes::equal(letters, asked), match, mismatch);
                }
            } else {
                score = Lanes::load_scores(state.scores + ((t - from) * rows + k) * lanes);
            }
            if constexpr (Lanes::saturating) {
                // A gap is opened only where H is not E's: the other order of two adjacent gaps costs the same.
                const Vector e_longer = Lanes::sub(e[k], extend);
                const Vector f_longer = Lanes::sub(f, extend);
                const Vector without_e = Lanes::max(Lanes::add(diagonal, score), f);
                diagonal = h[k];
                Vector now = Lanes::max(without_e, e[k]);
                const Vector opened = Lanes::sub(without_e, first);
                Vector e_next = Lanes::max(e_longer, opened);
                f = Lanes::max(f_longer, opened);
                if constexpr (kind != plain) {
                    now = Lanes::select(active, now, h[k]);
                    e_next = Lanes::select(active, e_next, e[k]);
                }
                best = Lanes::max(best, now);
                h[k] = now;
                e[k] = e_next;
                continue;
            }
            Vector without_f = Lanes::max(Lanes::add(diagonal, score), e[k]);
            if constexpr (local && !Lanes::saturating) without_f = Lanes::max(without_f, zero);
            diagonal = h[k];
            Vector now = Lanes::max(without_f, f);
            if constexpr (kind != plain) now = Lanes::select(active, now, h[k]);
            if constexpr (kind == tracked) {
                const Vector permitted = Lanes::load(allowed + k * lanes);
                const auto better = static_cast<typename Lanes::Mask>(Lanes::greater(now, best) & active &
                                                                      Lanes::greater(Lanes::set(0), permitted));
                best = Lanes::select(better, now, best);
                place = Lanes::select(better, Lanes::set(std::int32_t((t - state.first_step) * rows + k)), place);
            } else if constexpr (best_kept) {
                best = Lanes::max(best, now);
            }
            h[k] = now;
            const Vector opened = Lanes::sub(now, first);
            Vector e_next = opened;
            if constexpr (affine) {
                e_next = Lanes::max(Lanes::sub(e[k], extend), opened);
                // As from `opened`, since F - first <= F - extend; a shorter chain from row to row.
                f = Lanes::max(Lanes::sub(f, extend), Lanes::sub(without_f, first));
            } else {
                f = opened;
            }
            if constexpr (kind != plain) e_next = Lanes::select(active, e_next, e[k]);
            e[k] = e_next;
        }
        bottom_h[t - from] = Lanes::last(h[rows - 1]);
        bottom_f[t - from] = Lanes::last(f);
        newer_f = f;
    }

#pragma GCC unroll 8
    for (int k = 0; k < rows; ++k) {
        Lanes::store(h_memory + k * lanes, h[k]);
        Lanes::store(e_memory + k * lanes, e[k]);
    }
    Lanes::store(static_cast<Lane*>(state.before), before);
    Lanes::store(static_cast<Lane*>(state.older), older);
    Lanes::store(static_cast<Lane*>(state.f), newer_f);
    Lanes::store(static_cast<Lane*>(state.older_f), older_f);
    if constexpr (best_kept) Lanes::store(static_cast<Lane*>(state.best), best);
    if constexpr (kind == tracked) Lanes::store(static_cast<Lane*>(state.place), place);
}

// Sixteen lines by sixteen steps in each block of a vector. Four rounds, each pairing row i with row i + 8, leave the
// columns in order.
template <class Lines>
void transpose(const std::int8_t* const* lines, std::int8_t* out, std::size_t stride) {
    using Vector = typename Lines::Vector;
    Vector a[16];
    Vector b[16];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) a[i] = Lines::load(lines + i);
    const auto round = [](const Vector* in, Vector* to) {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8; ++i) {
            to[2 * i] = Lines::low(in[i], in[i + 8]);
            to[2 * i + 1] = Lines::high(in[i], in[i + 8]);
        }
    };
    round(a, b);
    round(b, a);
    round(a, b);
    round(b, a);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) Lines::store(out + i * stride, a[i]);
}

#define SWSEARCH_PAIR_KINDS(local, affine, compare)                                                       \
    {                                                                                                     \
        do_steps<Lanes, local, affine, compare, plain>, do_steps<Lanes, local, affine, compare, masked>, \
            do_steps<Lanes, local, affine, compare, tracked>                                              \
    }

template <class Lanes, class Lines>
constexpr Width width_of() {
    return {Lanes::count,
            Lanes::rows,
            16 * Lines::blocks,
            transpose<Lines>,
            {{{SWSEARCH_PAIR_KINDS(false, false, false), SWSEARCH_PAIR_KINDS(false, false, true)},
              {SWSEARCH_PAIR_KINDS(false, true, false), SWSEARCH_PAIR_KINDS(false, true, true)}},
             {{SWSEARCH_PAIR_KINDS(true, false, false), SWSEARCH_PAIR_KINDS(true, false, true)},
              {SWSEARCH_PAIR_KINDS(true, true, false), SWSEARCH_PAIR_KINDS(true, true, true)}}}};
}

#undef SWSEARCH_PAIR_KINDS

template <class Lanes, class Lines>
constexpr Width width_of_bytes() {
    static_assert(Lanes::saturating);
    Width width{Lanes::count, Lanes::rows, 16 * Lines::blocks, transpose<Lines>, {}};
    width.steps[1][0][0][plain] = do_steps<Lanes, true, false, false, plain>;
    width.steps[1][0][0][masked] = do_steps<Lanes, true, false, false, masked>;
    width.steps[1][0][1][plain] = do_steps<Lanes, true, false, true, plain>;
    width.steps[1][0][1][masked] = do_steps<Lanes, true, false, true, masked>;
    width.steps[1][1][0][plain] = do_steps<Lanes, true, true, false, plain>;
    width.steps[1][1][0][masked] = do_steps<Lanes, true, true, false, masked>;
    width.steps[1][1][1][plain] = do_steps<Lanes, true, true, true, plain>;
    width.steps[1][1][1][masked] = do_steps<Lanes, true, true, true, masked>;
    return width;
}

}  // namespace
}  // namespace swsearch::pair
