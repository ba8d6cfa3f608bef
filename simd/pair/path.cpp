// Checkpointed traceback of a pair. A first sweep saves rows, which divide the matrix into bands. Beginning with the
// band of the path's end, each band is swept again from the saved row above it; this sweep saves more rows, which
// divide the band further, or finally the states of its strips. From a state, the blocks that the path crosses are
// computed, and the path is traced through them (walk.hpp). Input: a Pair. Output: a PairPath.

#include <algorithm>
#include <limits>

#include "pair/pair.hpp"
#include "pair/strip.hpp"
#include "pair/walk.hpp"

namespace swsearch::pair {
namespace {

// Number of columns of a strip whose decisions are computed at a time. With 256, half as many more are computed without
// use.
constexpr std::size_t kBlockColumns = 96;

// The data that a sweep of strips first to last - 1 saves in `memory_bytes`: if they fit, the rows between all strips
// and the states of each strip, so that no strip needs another sweep; otherwise some evenly spaced rows, at least one.
Saved plan_saved(std::size_t memory_bytes, const Tiling& tiling, std::size_t first, std::size_t last,
                 std::size_t columns) {
    const std::size_t n_strips = last - first;
    const std::size_t row_bytes = 2 * sizeof(std::int32_t) * columns;
    const std::size_t whole_bytes = (n_strips - 1) * row_bytes + n_strips * Checkpoints::strip_bytes(tiling, columns);
    Saved saved;
    std::size_t parts = n_strips;
    if (n_strips == 1 || whole_bytes <= memory_bytes) {
        saved.states = Checkpoints(tiling, first, last, columns);
    } else {
        parts = std::min(n_strips, std::max<std::size_t>(memory_bytes / row_bytes, 1) + 1);
    }
    for (std::size_t part = 1; part < parts; ++part) saved.rows.push_back({first + n_strips * part / parts - 1, {}});
    return saved;
}

class PathFinder {
   public:
    PathFinder(const Pair& pair, const Tiling& tiling, Walk& walk, std::size_t memory_bytes, const Threads& threads)
        : pair_(pair), tiling_(tiling), walk_(walk), memory_bytes_(memory_bytes), threads_(threads) {}

    // Follows the path through strips first to last - 1; its current node is in one of them, or above. `top` is the row
    // above them, and `saved` contains the data that an earlier sweep has saved of them.
    void band(std::size_t first, std::size_t last, const Row& top, Saved saved) {
        last = std::min(last, (walk_.row() + tiling_.width.strip() - 1) / tiling_.width.strip());
        if (walk_.done() || last <= first) return;
        if (saved.rows.empty() && saved.states.empty()) {
            const std::size_t columns = walk_.column();
            saved = plan_saved(memory_bytes_, tiling_, first, last, columns);
            Row row{{top.h.begin(), top.h.begin() + std::ptrdiff_t(columns)},
                    {top.f.begin(), top.f.begin() + std::ptrdiff_t(columns)}};
            const std::size_t swept = saved.states.empty() ? saved.rows.back().strip + 1 : last;
            sweep(pair_, tiling_, first, swept, columns, row, saved, nullptr, threads_);
        }
        if (!saved.states.empty()) {
            for (std::size_t number = last; number-- > first && !walk_.done();) {
                strip(number, number == first ? top : saved.rows[number - first - 1].row, saved.states);
            }
            return;
        }
        while (!saved.rows.empty()) {
            const SavedRow lowest = std::move(saved.rows.back());
            saved.rows.pop_back();
            band(lowest.strip + 1, last, lowest.row, {});
            last = std::min(last, lowest.strip + 1);
        }
        band(first, last, top, {});
    }

   private:
    void strip(std::size_t number, const Row& top, const Checkpoints& states) {
        if (tiling_.lane_bytes == 2) {
            strip_of<std::int16_t>(number, top, states);
        } else {
            strip_of<std::int32_t>(number, top, states);
        }
    }

    // Follows the path through one strip, one tile after another.
    template <class Lane>
    void strip_of(std::size_t number, const Row& top, const Checkpoints& states) {
        StripRunner<Lane> runner(pair_, tiling_.width);
        StripState<Lane> state;
        while (!walk_.done() && walk_.row() > number * tiling_.width.strip()) {
            const std::size_t tile = (walk_.column() - 1) / tiling_.steps;
            runner.restore(state, states.at(number, tile));
            tile_of(number, tile * tiling_.steps, top, runner, state);
        }
    }

    // Follows the path through a strip from column from + 1 on; `state` is that of the tile that begins there. The
    // kernels compute the column at the left of each block. Then the decisions of the blocks are computed, one block
    // after another from the right, until the path leaves the strip or the tile.
    template <class Lane>
    void tile_of(std::size_t number, std::size_t from, const Row& top, StripRunner<Lane>& runner,
                 StripState<Lane>& state) {
        const std::size_t strip_rows = tiling_.width.strip();
        const std::size_t above = number * strip_rows;
        const std::size_t n_blocks = (walk_.column() - from + kBlockColumns - 1) / kBlockColumns;
        lefts_.resize(n_blocks * 2 * strip_rows);  // H and next E before each block
        const auto corner = [&](std::size_t column) {
            return column == 0 ? pair_.left_border(above) : top.h[column - 1];
        };
        if (from > 0) {  // the lower lanes lag behind: they advance to the column of the first one
            runner.advance(state, number, {0, from, from, from + tiling_.width.lag()}, top.h.data(), top.f.data());
        }
        for (std::size_t block = 0;; ++block) {
            std::int32_t* const left = lefts_.data() + block * 2 * strip_rows;
            runner.column(state, left, left + strip_rows);
            if (block + 1 == n_blocks) break;
            const std::size_t begin = from + block * kBlockColumns;
            runner.begin(state, corner(begin), left, left + strip_rows);
            const Part part{begin, kBlockColumns, 0, kBlockColumns + tiling_.width.lag()};
            runner.advance(state, number, part, top.h.data() + begin, top.f.data() + begin);
        }
        threads_.observer.done((walk_.column() - from) * strip_rows);
        for (std::size_t block = n_blocks; block-- > 0 && !walk_.done() && walk_.row() > above;) {
            const std::size_t begin = from + block * kBlockColumns;
            if (walk_.column() <= begin) continue;
            const std::int32_t* const left = lefts_.data() + block * 2 * strip_rows;
            const std::int32_t at_corner = corner(begin);
            walk_.through(above, top.h.data() + begin, top.f.data() + begin,
                          {begin, strip_rows, left, left + strip_rows, &at_corner, nullptr});
        }
    }

    const Pair& pair_;
    const Tiling& tiling_;
    Walk& walk_;
    const std::size_t memory_bytes_;
    const Threads& threads_;
    std::vector<std::int32_t> lefts_;
};

// The best end on the border of the matrix, for which no cell is computed.
Best border_end(const Pair& pair) {
    if (pair.boundary.local) return {};
    Best best{std::numeric_limits<std::int32_t>::min(), 0, 0};
    if (pair.columns == 0 || pair.boundary.free(kSubjectEnd)) best.take({pair.left_border(pair.rows), 0, pair.rows});
    if (pair.rows == 0 || pair.boundary.free(kQueryEnd)) best.take({pair.top_border(pair.columns), pair.columns, 0});
    if (pair.rows == 0 && pair.boundary.free(kSubjectEnd)) best.take({0, 0, 0});
    if (pair.columns == 0 && pair.boundary.free(kQueryEnd)) best.take({0, 0, 0});
    return best;
}

Best find_best_saving(const Pair& pair, const Tiling& tiling, Saved& saved, const Threads& threads) {
    Best best = border_end(pair);
    if (pair.rows == 0 || pair.columns == 0) return best;
    Row row = top_row(pair);
    sweep(pair, tiling, 0, tiling.strips(pair), pair.columns, row, saved, &best, threads);
    return best;
}

PairPath trace(const Pair& pair, const Tiling& tiling, const Best& end, Saved saved, std::size_t memory_bytes,
               const Threads& threads) {
    Walk walk(pair, end.row, end.column);
    if (pair.rows > 0 && pair.columns > 0) {
        PathFinder finder(pair, tiling, walk, memory_bytes, threads);
        finder.band(0, tiling.strips(pair), top_row(pair), std::move(saved));
    }
    walk.finish();
    return {end, walk.row(), walk.column(), walk.runs()};
}

}  // namespace

Best find_best(const Pair& pair, const Kernels& kernels, const Threads& threads) {
    Saved nothing;
    if (Tiling::bytes_fit(pair, kernels)) {
        const std::uint64_t before = threads.observer.cells_done();
        const Best best = find_best_saving(pair, Tiling::of_bytes(kernels), nothing, threads);
        if (best.score < kByteLimit) return best;
        threads.observer.set_cells(before);  // they are computed again
    }
    const Tiling tiling(pair, kernels);
    return find_best_saving(pair, tiling, nothing, threads);
}

PairPath find_path(const Pair& pair, const Kernels& kernels, std::size_t memory_bytes, const Threads& threads) {
    const Tiling tiling(pair, kernels);
    Saved saved;
    if (pair.rows > 0 && pair.columns > 0)
        saved = plan_saved(memory_bytes, tiling, 0, tiling.strips(pair), pair.columns);
    const Best end = find_best_saving(pair, tiling, saved, threads);
    return trace(pair, tiling, end, std::move(saved), memory_bytes, threads);
}

}  // namespace swsearch::pair
