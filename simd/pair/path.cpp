// The path of a pair: rows kept by a sweep, then band after band from the end, each swept again with more rows kept, and in
// the end with the states of its strips, from which the blocks that the path goes through are reached.

#include <algorithm>
#include <limits>

#include "pair/pair.hpp"
#include "pair/strip.hpp"
#include "pair/walk.hpp"

namespace swsearch::pair {
namespace {

constexpr std::size_t block_columns = 96;  // of a strip, whose decisions are held at a time; of 256, half as many again are filled in vain

// What a sweep of strips first … last - 1 keeps in `memory_bytes`: the rows between all strips and the states of each, where
// there is room, so that nothing of them need be swept again; else some rows, evenly spread, but at least one.
Keeping keep_within(std::size_t memory_bytes, const Pair& pair, const Cut& cut, std::size_t first, std::size_t last,
                    std::size_t columns) {
    const std::size_t n_strips = last - first;
    const std::size_t row_bytes = 2 * sizeof(std::int32_t) * columns;
    const std::size_t whole_bytes = (n_strips - 1) * row_bytes + n_strips * Checkpoints::strip_bytes(cut, columns);
    Keeping kept;
    std::size_t parts = n_strips;
    if (n_strips == 1 || whole_bytes <= memory_bytes) {
        kept.states = Checkpoints(cut, first, last, columns);
    } else {
        parts = std::min(n_strips, std::max<std::size_t>(memory_bytes / row_bytes, 1) + 1);
    }
    for (std::size_t part = 1; part < parts; ++part) kept.rows.push_back({first + n_strips * part / parts - 1, {}});
    return kept;
}

class Tracer {
public:
    Tracer(const Pair& pair, const Cut& cut, Walk& walk, std::size_t memory_bytes, int n_threads, Watch& watch)
        : pair_(pair), cut_(cut), walk_(walk), memory_bytes_(memory_bytes), n_threads_(n_threads), watch_(watch) {}

    // Strips first … last - 1, `top` being the row above them; the path is in one of them, or above. `kept` is what is known
    // already.
    void band(std::size_t first, std::size_t last, const Row& top, Keeping kept) {
        last = std::min(last, (walk_.row() + cut_.width.strip() - 1) / cut_.width.strip());
        if (walk_.done() || last <= first) return;
        if (kept.rows.empty() && kept.states.empty()) {
            const std::size_t columns = walk_.column();
            kept = keep_within(memory_bytes_, pair_, cut_, first, last, columns);
            Row row{{top.h.begin(), top.h.begin() + std::ptrdiff_t(columns)},
                    {top.f.begin(), top.f.begin() + std::ptrdiff_t(columns)}};
            const std::size_t swept = kept.states.empty() ? kept.rows.back().strip + 1 : last;
            sweep(pair_, cut_, first, swept, columns, row, kept, nullptr, n_threads_, watch_);
        }
        if (!kept.states.empty()) {
            for (std::size_t number = last; number-- > first && !walk_.done();) {
                strip(number, number == first ? top : kept.rows[number - first - 1].row, kept.states);
            }
            return;
        }
        while (!kept.rows.empty()) {
            const Kept lowest = std::move(kept.rows.back());
            kept.rows.pop_back();
            band(lowest.strip + 1, last, lowest.row, {});
            last = std::min(last, lowest.strip + 1);
        }
        band(first, last, top, {});
    }

private:
    void strip(std::size_t number, const Row& top, const Checkpoints& states) {
        if (cut_.lane_bytes == 2) {
            strip_of<std::int16_t>(number, top, states);
        } else {
            strip_of<std::int32_t>(number, top, states);
        }
    }

    // One strip, tile after tile from where the path is until it leaves.
    template <class Lane>
    void strip_of(std::size_t number, const Row& top, const Checkpoints& states) {
        StripRunner<Lane> runner(pair_, cut_.width);
        StripState<Lane> state;
        while (!walk_.done() && walk_.row() > number * cut_.width.strip()) {
            const std::size_t tile = (walk_.column() - 1) / cut_.steps;
            runner.restore(state, states.at(number, tile));
            tile_of(number, tile * cut_.steps, top, runner, state);
        }
    }

    // The columns from + 1 … of a strip, `state` being that of the tile that begins there: columns that decisions need at the
    // left of each block, by the kernels, then block after block from the right until the path leaves.
    template <class Lane>
    void tile_of(std::size_t number, std::size_t from, const Row& top, StripRunner<Lane>& runner, StripState<Lane>& state) {
        const std::size_t strip_rows = cut_.width.strip();
        const std::size_t above = number * strip_rows;
        const std::size_t n_blocks = (walk_.column() - from + block_columns - 1) / block_columns;
        lefts_.resize(n_blocks * 2 * strip_rows);  // H and next E before each block
        const auto corner = [&](std::size_t column) { return column == 0 ? pair_.left_border(above) : top.h[column - 1]; };
        if (from > 0) {  // the lower lanes are behind: on to the column where the first one is
            runner.run(state, number, {0, from, from, from + cut_.width.behind()}, top.h.data(), top.f.data(), nullptr, nullptr);
        }
        for (std::size_t block = 0;; ++block) {
            std::int32_t* const left = lefts_.data() + block * 2 * strip_rows;
            runner.column(state, left, left + strip_rows);
            if (block + 1 == n_blocks) break;
            const std::size_t begin = from + block * block_columns;
            runner.begin(state, corner(begin), left, left + strip_rows);
            const Part part{begin, block_columns, 0, block_columns + cut_.width.behind()};
            runner.run(state, number, part, top.h.data() + begin, top.f.data() + begin, nullptr, nullptr);
        }
        watch_.done((walk_.column() - from) * strip_rows);
        for (std::size_t block = n_blocks; block-- > 0 && !walk_.done() && walk_.row() > above;) {
            const std::size_t begin = from + block * block_columns;
            if (walk_.column() <= begin) continue;
            const std::int32_t* const left = lefts_.data() + block * 2 * strip_rows;
            const std::int32_t at_corner = corner(begin);
            walk_.through(above, top.h.data() + begin, top.f.data() + begin,
                          {begin, strip_rows, left, left + strip_rows, &at_corner, nullptr});
        }
    }

    const Pair& pair_;
    const Cut& cut_;
    Walk& walk_;
    const std::size_t memory_bytes_;
    const int n_threads_;
    Watch& watch_;
    std::vector<std::int32_t> lefts_;
};

// Ends on the border of the matrix, which need no cell.
Best border_ends(const Pair& pair) {
    Best best;
    if (pair.ends.local) return best;
    best.score = std::numeric_limits<std::int32_t>::min();
    const auto offer = [&](std::size_t row, std::size_t column, std::int32_t score) {
        Best end;
        end.score = score;
        end.row = row;
        end.column = column;
        if (best.loses_to(end)) best = end;
    };
    if (pair.columns == 0 || pair.ends.subject_free) offer(pair.rows, 0, pair.left_border(pair.rows));
    if (pair.rows == 0 || pair.ends.query_free) offer(0, pair.columns, pair.top_border(pair.columns));
    if (pair.rows == 0 && pair.ends.subject_free) offer(0, 0, 0);
    if (pair.columns == 0 && pair.ends.query_free) offer(0, 0, 0);
    return best;
}

Best find_best_keeping(const Pair& pair, const Cut& cut, Keeping& kept, int n_threads, Watch& watch) {
    Best best = border_ends(pair);
    if (pair.rows == 0 || pair.columns == 0) return best;
    Row row = top_row(pair);
    sweep(pair, cut, 0, cut.strips(pair), pair.columns, row, kept, &best, n_threads, watch);
    return best;
}

PairPath trace(const Pair& pair, const Cut& cut, const Best& end, Keeping kept, std::size_t memory_bytes, int n_threads,
               Watch& watch) {
    Walk walk(pair, end.row, end.column);
    if (pair.rows > 0 && pair.columns > 0) {
        Tracer(pair, cut, walk, memory_bytes, n_threads, watch).band(0, cut.strips(pair), top_row(pair), std::move(kept));
    }
    walk.finish();
    return {end, walk.row(), walk.column(), walk.runs()};
}

}  // namespace

Best find_best(const Pair& pair, const Kernels& kernels, int n_threads, Watch& watch) {
    Keeping nothing;
    if (Cut::bytes_fit(pair, kernels)) {
        const std::uint64_t before = watch.cells.load();
        const Best best = find_best_keeping(pair, Cut::of_bytes(kernels), nothing, n_threads, watch);
        if (best.score < byte_limit) return best;
        watch.cells = before;  // what was done is done again
    }
    const Cut cut(pair, kernels);
    return find_best_keeping(pair, cut, nothing, n_threads, watch);
}

PairPath find_path(const Pair& pair, const Kernels& kernels, std::size_t memory_bytes, int n_threads, Watch& watch) {
    const Cut cut(pair, kernels);
    Keeping kept;
    if (pair.rows > 0 && pair.columns > 0) kept = keep_within(memory_bytes, pair, cut, 0, cut.strips(pair), pair.columns);
    const Best end = find_best_keeping(pair, cut, kept, n_threads, watch);
    return trace(pair, cut, end, std::move(kept), memory_bytes, n_threads, watch);
}

}  // namespace swsearch::pair
