// The path of a pair: rows kept by a sweep, then strip after strip from the end, each cut again where rows were missing.

#include <algorithm>
#include <limits>

#include "pair/pair.hpp"
#include "pair/strip.hpp"

namespace swsearch::pair {
namespace {

constexpr std::size_t block_columns = 96;  // of a strip, whose decisions are held at a time; of 256, half as many again are filled in vain

enum Decision : std::uint8_t { stop, diagonal, from_e, from_f, h_mask = 3, e_opened = 4, f_opened = 8 };
enum State { in_h, in_e, in_f };

class Tracer {
public:
    Tracer(const Pair& pair, const Cut& cut, const Best& end, std::size_t most_rows, int n_threads, Watch& watch)
        : pair_(pair),
          cut_(cut),
          most_rows_(most_rows),
          n_threads_(n_threads),
          watch_(watch),
          row_(end.row),
          column_(end.column) {}

    std::size_t row() const { return row_; }
    std::size_t column() const { return column_; }
    std::vector<std::pair<char, std::size_t>> runs() const { return {runs_.rbegin(), runs_.rend()}; }

    // Strips first … last - 1, `top` being the row above them; the path is in one of them, or above. `kept` are rows that
    // are known already.
    void band(std::size_t first, std::size_t last, const Row& top, std::vector<Kept> kept) {
        last = std::min(last, (row_ + cut_.width.strip() - 1) / cut_.width.strip());
        if (column_ == 0 || finished_ || last <= first) return;
        if (last - first == 1) {
            strip(first, top);
            return;
        }
        if (kept.empty()) {
            kept = rows_to_keep(first, last, most_rows_);
            Row row{{top.h.begin(), top.h.begin() + std::ptrdiff_t(column_)},
                    {top.f.begin(), top.f.begin() + std::ptrdiff_t(column_)}};
            sweep(pair_, cut_, first, kept.back().strip + 1, column_, row, kept, nullptr, n_threads_, watch_);
        }
        while (!kept.empty()) {
            const Kept lowest = std::move(kept.back());
            kept.pop_back();
            band(lowest.strip + 1, last, lowest.row, {});
            last = lowest.strip + 1;
        }
        band(first, last, top, {});
    }

    // What is left on the border of the matrix.
    void finish() {
        if (finished_) return;
        if (row_ == 0 && column_ > 0 && !pair_.ends.subject_free) push('D', column_), column_ = 0;
        if (column_ == 0 && row_ > 0 && !pair_.ends.query_free) push('I', row_), row_ = 0;
    }

    // Lowest rows of up to `most` strips of first … last - 2, evenly spread; at least one.
    static std::vector<Kept> rows_to_keep(std::size_t first, std::size_t last, std::size_t most) {
        std::vector<Kept> kept;
        if (last - first < 2) return kept;
        const std::size_t parts = std::min(last - first, most + 1);
        for (std::size_t part = 1; part < parts; ++part) {
            kept.push_back({first + (last - first) * part / parts - 1, {}});
        }
        return kept;
    }

private:
    void strip(std::size_t number, const Row& top) {
        if (cut_.lane_bytes == 2) {
            strip_of<std::int16_t>(number, top);
        } else {
            strip_of<std::int32_t>(number, top);
        }
    }

    // One strip: columns that decisions need at the left of each block, by the kernels, then block after block from the
    // right until the path leaves.
    template <class Lane>
    void strip_of(std::size_t number, const Row& top) {
        const std::size_t strip_rows = cut_.width.strip();
        const std::size_t above = number * strip_rows;
        const std::size_t n_blocks = (column_ + block_columns - 1) / block_columns;
        std::vector<std::int32_t> lefts(n_blocks * 2 * strip_rows);  // H and next E before each block
        StripRunner<Lane> runner(pair_, cut_.width);
        StripState<Lane> state;
        runner.begin_at_border(state, number);
        runner.column(state, lefts.data(), lefts.data() + strip_rows);
        for (std::size_t block = 0; block + 1 < n_blocks; ++block) {
            const std::size_t from = block * block_columns;
            const Part part{from, block_columns, 0, block_columns + cut_.width.behind()};
            runner.run(state, number, part, top.h.data() + from, top.f.data() + from, nullptr, nullptr);
            std::int32_t* const left = lefts.data() + (block + 1) * 2 * strip_rows;
            runner.column(state, left, left + strip_rows);
            runner.begin(state, top.h[from + block_columns - 1], left, left + strip_rows);
        }
        watch_.done(column_ * strip_rows);
        for (std::size_t block = n_blocks; block-- > 0 && !finished_ && row_ > above;) {
            const std::size_t from = block * block_columns;
            if (column_ <= from) continue;
            const std::int32_t* const left = lefts.data() + block * 2 * strip_rows;
            decide(above, from, top, left, left + strip_rows);
            walk(above, from);
        }
    }

    // Decisions of rows above + 1 … row_ and columns from + 1 … column_.
    void decide(std::size_t above, std::size_t from, const Row& top, const std::int32_t* left_h,
                const std::int32_t* left_e) {
        const std::size_t width = column_ - from;
        decisions_.resize((row_ - above) * width);
        h_.assign(top.h.begin() + std::ptrdiff_t(from), top.h.begin() + std::ptrdiff_t(column_));
        f_.assign(top.f.begin() + std::ptrdiff_t(from), top.f.begin() + std::ptrdiff_t(column_));
        std::int32_t corner = from == 0 ? pair_.left_border(above) : top.h[from - 1];
        for (std::size_t i = above; i < row_; ++i) {
            std::uint8_t* const out = decisions_.data() + (i - above) * width;
            std::int32_t across = corner;
            std::int32_t left = left_h[i - above];
            std::int32_t e = left_e[i - above];
            corner = left;
            for (std::size_t x = 0; x < width; ++x) {
                const std::int32_t f = f_[x];
                const std::int32_t matched = across + pair_.score(i, from + x);
                std::int32_t now = std::max(matched, std::max(e, f));
                if (pair_.ends.local) now = std::max(now, 0);
                int cell = now == matched ? diagonal : now == e ? from_e : from_f;
                if (pair_.ends.local && now == 0) cell = stop;
                if (e == left - pair_.first) cell |= e_opened;
                if (f == h_[x] - pair_.first) cell |= f_opened;
                out[x] = static_cast<std::uint8_t>(cell);
                across = h_[x];
                h_[x] = now;
                left = now;
                const std::int32_t opened = now - pair_.first;
                e = std::max(e - pair_.costs.gap_extend, opened);
                f_[x] = std::max(f - pair_.costs.gap_extend, opened);
            }
        }
    }

    void walk(std::size_t above, std::size_t from) {
        const std::size_t width = column_ - from;
        while (row_ > above && column_ > from) {
            const std::uint8_t cell = decisions_[(row_ - above - 1) * width + (column_ - from - 1)];
            if (state_ == in_h) {
                switch (cell & h_mask) {
                    case stop: finished_ = true; return;
                    case diagonal: push('M', 1); --row_; --column_; break;
                    case from_e: state_ = in_e; break;
                    default: state_ = in_f; break;
                }
            } else if (state_ == in_e) {
                push('D', 1);
                if (cell & e_opened) state_ = in_h;
                --column_;
            } else {
                push('I', 1);
                if (cell & f_opened) state_ = in_h;
                --row_;
            }
        }
    }

    void push(char operation, std::size_t length) {
        if (runs_.empty() || runs_.back().first != operation) runs_.emplace_back(operation, 0);
        runs_.back().second += length;
    }

    const Pair& pair_;
    const Cut& cut_;
    const std::size_t most_rows_;
    const int n_threads_;
    Watch& watch_;
    std::size_t row_;
    std::size_t column_;
    State state_ = in_h;
    bool finished_ = false;
    std::vector<std::pair<char, std::size_t>> runs_;
    std::vector<std::uint8_t> decisions_;
    std::vector<std::int32_t> h_;
    std::vector<std::int32_t> f_;
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

Best find_best_keeping(const Pair& pair, const Cut& cut, std::vector<Kept>& kept, int n_threads, Watch& watch) {
    Best best = border_ends(pair);
    if (pair.rows == 0 || pair.columns == 0) return best;
    Row row = top_row(pair);
    sweep(pair, cut, 0, cut.strips(pair), pair.columns, row, kept, &best, n_threads, watch);
    return best;
}

std::size_t rows_in(std::size_t memory_bytes, const Pair& pair) {
    const std::size_t row_bytes = 2 * sizeof(std::int32_t) * (pair.columns + 1);
    return std::max<std::size_t>(memory_bytes / row_bytes, 1);
}

PairPath trace(const Pair& pair, const Cut& cut, const Best& end, std::vector<Kept> kept, std::size_t most_rows,
               int n_threads, Watch& watch) {
    PairPath path;
    path.end = end;
    Tracer tracer(pair, cut, end, most_rows, n_threads, watch);
    if (pair.rows > 0 && pair.columns > 0) tracer.band(0, cut.strips(pair), top_row(pair), std::move(kept));
    tracer.finish();
    path.query_start = tracer.row();
    path.subject_start = tracer.column();
    path.runs = tracer.runs();
    return path;
}

}  // namespace

Best find_best(const Pair& pair, const Kernels& kernels, int n_threads, Watch& watch) {
    std::vector<Kept> none;
    if (Cut::bytes_fit(pair, kernels)) {
        const std::uint64_t before = watch.cells.load();
        const Best best = find_best_keeping(pair, Cut::of_bytes(kernels), none, n_threads, watch);
        if (best.score < byte_limit) return best;
        watch.cells = before;  // what was done is done again
    }
    const Cut cut(pair, kernels);
    return find_best_keeping(pair, cut, none, n_threads, watch);
}

PairPath find_path(const Pair& pair, const Kernels& kernels, std::size_t memory_bytes, int n_threads, Watch& watch) {
    const Cut cut(pair, kernels);
    const std::size_t most_rows = rows_in(memory_bytes, pair);
    std::vector<Kept> kept = Tracer::rows_to_keep(0, cut.strips(pair), most_rows);
    const Best end = find_best_keeping(pair, cut, kept, n_threads, watch);
    return trace(pair, cut, end, std::move(kept), most_rows, n_threads, watch);
}

PairPath find_path_from(const Pair& pair, const Kernels& kernels, const Best& end, std::vector<SweptRow> swept,
                        std::size_t memory_bytes, int n_threads, Watch& watch) {
    const Cut cut(pair, kernels);
    std::vector<Kept> kept;
    for (SweptRow& one : swept) {
        const std::size_t strips = one.query_rows / cut.width.strip();
        if (strips > 0 && one.query_rows == strips * cut.width.strip()) kept.push_back({strips - 1, std::move(one.row)});
    }
    return trace(pair, cut, end, std::move(kept), rows_in(memory_bytes, pair), n_threads, watch);
}

}  // namespace swsearch::pair
