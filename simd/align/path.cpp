// The second and third of the three steps of an alignment (docs/design/traceback.md): the band that contains all
// optimal paths to an end (reverse pass), and the path through it (banded traceback). Inputs: a query, a subject and
// the end. Output: the path as a CIGAR with its counts.

#include "common/path.hpp"

#include <algorithm>
#include <limits>

#include "align/forward_pass.hpp"

namespace swsearch::align {
namespace {

// Below every score, also after any gap cost is subtracted.
constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::min() / 2;
constexpr std::uint64_t kCellsBetweenChecks = 1'000'000;

// Rows low to high of one column of nodes; a node's row is 0 to the query's length.
struct Interval {
    std::int32_t low;
    std::int32_t high;
    std::size_t width() const { return static_cast<std::size_t>(high - low + 1); }
};

// Columns of nodes, from `first` on.
struct Band {
    std::size_t first = 0;
    std::vector<Interval> rows;
    const Interval& at(std::size_t column) const { return rows[column - first]; }
};

// Counts cells, and at intervals of kCellsBetweenChecks asks the observer whether to stop.
class Meter {
   public:
    explicit Meter(Observer& observer) : observer_(observer) {}
    void add(std::size_t cells) {
        cells_ += cells;
        if (cells_ >= kCellsBetweenChecks) {
            observer_.done(0);
            cells_ = 0;
        }
    }

   private:
    Observer& observer_;
    std::uint64_t cells_ = 0;
};

// Computes the columns backwards from the end. For the current column of nodes, h is the best value of a path from a
// node to the end, e that of a path whose first step is a gap in the query (it consumes the subject), and f that of a
// path whose first step is a gap in the subject. Values that cannot be on an optimal path are discarded: those of 0 or
// less, those that are below the score by more than any alignment up to that column reaches, and those before a node
// from which the complete score is reached.
Band find_band(const Query& query, const std::uint8_t* subject, const End& end, const ColumnBest& groups,
               const UsedPairs& used, Observer& observer) {
    Meter meter(observer);
    const std::int32_t open = query.first - query.extend;
    std::vector<std::int32_t> h(end.query_end + 2, kNever);
    std::vector<std::int32_t> e(end.query_end + 2, kNever);
    std::vector<Interval> columns;
    std::int32_t low = static_cast<std::int32_t>(end.query_end);  // low to high: rows with values in the next column
    std::int32_t high = low;
    for (std::size_t column = end.subject_end;; --column) {
        const bool at_end = column == end.subject_end;
        const std::int8_t* scores = at_end ? nullptr : query.scores(subject[column]);
        const Rows barred = used.rows(column);
        const std::int32_t reach = column == 0 ? 0 : groups.best[(column - 1) >> groups.shift];
        const std::int32_t needed = std::max(1, end.score - reach);
        const std::int32_t needed_in_gap = std::max(1, end.score - reach - open);
        std::int32_t f = kNever;
        std::int32_t below_h = kNever;        // h of the row below in this column
        std::int32_t below_h_after = kNever;  // h of the row below in the next column
        std::int32_t alive_low = 0;
        std::int32_t alive_high = -1;
        const std::int32_t start = high;
        std::int32_t row = start;
        for (; row >= 0 && (row >= low - 1 || f > kNever || below_h > kNever); --row) {
            const std::size_t i = static_cast<std::size_t>(row);
            const std::int32_t h_after = h[i];
            f = below_h == kNever && f == kNever ? kNever : std::max(below_h - query.first, f - query.extend);
            std::int32_t e_now = std::max(h_after - query.first, e[i] - query.extend);
            std::int32_t h_now = kNever;
            if (at_end) {
                h_now = row == start ? 0 : kNever;
                e_now = kNever;
            } else if (below_h_after != kNever && !barred.contains(i)) {
                h_now = below_h_after + scores[i];
            }
            h_now = std::max(h_now, std::max(e_now, f));
            below_h_after = h_after;
            const bool is_end = at_end && row == start;
            const bool whole = h_now == end.score;
            if (!is_end && h_now < needed) h_now = kNever;
            if (e_now < needed_in_gap) e_now = kNever;
            if (f < needed_in_gap) f = kNever;
            if (h_now != kNever || e_now != kNever || f != kNever) {
                if (alive_high < 0) alive_high = row;
                alive_low = row;
            }
            if (whole) h_now = kNever;
            h[i] = h_now;
            e[i] = e_now;
            below_h = h_now;
        }
        const std::int32_t touched = row + 1;
        meter.add(static_cast<std::size_t>(start - touched + 1));
        if (alive_high < 0) break;
        columns.push_back({alive_low, alive_high});
        low = alive_low;
        high = alive_high;
        if (column == 0) break;
    }
    std::reverse(columns.begin(), columns.end());
    Band band;
    band.first = end.subject_end + 1 - columns.size();
    band.rows = std::move(columns);
    return band;
}

// H and E of one column of nodes, inside its interval.
struct SavedColumn {
    std::size_t number = 0;
    std::vector<std::int32_t> h;
    std::vector<std::int32_t> e;
};

// The banded forward pass, which stores decisions, and the traceback through them.
class BandedTraceback {
   public:
    BandedTraceback(const Query& query, const std::uint8_t* subject, const End& end, const Band& band,
                    const UsedPairs& used, std::size_t memory_bytes, Observer& observer)
        : query_(query),
          subject_(subject),
          band_(band),
          used_(used),
          memory_bytes_(memory_bytes),
          meter_(observer),
          h_(end.query_end + 1, kNever),
          e_(end.query_end + 1, kNever),
          f_(end.query_end + 1),
          paired_(end.query_end + 1),
          without_f_(end.query_end + 1),
          walk_(end.query_end, end.subject_end) {}

    Traceback trace() {
        trace_columns(band_.first, walk_.column(), nullptr);
        return std::move(walk_);
    }

   private:
    // Restores H and E of a saved column; without a saved column, no node has a value.
    void restore(const SavedColumn* saved) {
        std::fill(h_.begin(), h_.end(), kNever);
        std::fill(e_.begin(), e_.end(), kNever);
        if (saved == nullptr) return;
        const std::size_t low = static_cast<std::size_t>(band_.at(saved->number).low);
        std::copy(saved->h.begin(), saved->h.end(), h_.begin() + static_cast<std::ptrdiff_t>(low));
        std::copy(saved->e.begin(), saved->e.end(), e_.begin() + static_cast<std::ptrdiff_t>(low));
    }

    SavedColumn save(std::size_t column) const {
        const Interval& rows = band_.at(column);
        return {column,
                {h_.begin() + rows.low, h_.begin() + rows.high + 1},
                {e_.begin() + rows.low, e_.begin() + rows.high + 1}};
    }

    // Computes one column of nodes from the previous one, and its decisions if `decisions` is not null.
    void advance(std::size_t column, std::uint8_t* decisions) {
        const Interval rows = band_.at(column);
        meter_.add(rows.width());
        if (column == band_.first) {  // no path enters the band from the left: its nodes are starts
            std::fill(h_.begin() + rows.low, h_.begin() + rows.high + 1, 0);
            if (decisions != nullptr) std::fill(decisions, decisions + rows.width(), std::uint8_t{kStop});
            return;
        }
        const Interval before = band_.at(column - 1);
        const std::size_t low = static_cast<std::size_t>(rows.low);
        const std::size_t n = rows.width();
        compute_without_f(low, n, query_.scores(subject_[column - 1]), used_.rows(column - 1));
        // This loop contains only the dependency chain from row to row. F opens from H without F, because if H is F, an
        // extension costs no more than an opening.
        std::int32_t f = kNever;
        for (std::size_t k = 0; k < n; ++k) {
            f_[k] = f;
            f = std::max(without_f_[k] - query_.first, f - query_.extend);
        }
        if (decisions != nullptr) decide(low, n, decisions);
        for (std::size_t k = 0; k < n; ++k) h_[low + k] = std::max(without_f_[k], f_[k]);
        for (std::int32_t gone = before.low; gone <= before.high;
             ++gone) {  // rows that are not in this column's interval
            if (gone >= rows.low && gone <= rows.high) {
                gone = rows.high;
                continue;
            }
            h_[static_cast<std::size_t>(gone)] = kNever;
            e_[static_cast<std::size_t>(gone)] = kNever;
        }
    }

    // Computes E, and the H that would result without F, of n rows from `low` on; h_ is still the previous column. The
    // loops over rows have no branch and no dependency between iterations, so that the compiler vectorizes them.
    void compute_without_f(std::size_t low, std::size_t n, const std::int8_t* scores, const Rows& barred) {
        const std::int32_t* const left = h_.data() + low;
        std::int32_t* const e = e_.data() + low;
        std::int32_t* const paired = paired_.data();
        std::int32_t* const without_f = without_f_.data();
        paired[0] = low > 0 ? never_or_sum(left[-1], scores[low - 1]) : kNever;
        for (std::size_t k = 1; k < n; ++k) paired[k] = never_or_sum(left[k - 1], scores[low + k - 1]);
        for (const std::uint32_t used : barred) {
            if (used + 1 >= low && used + 1 < low + n) paired[used + 1 - low] = kNever;
        }
        for (std::size_t k = 0; k < n; ++k) {
            e[k] = std::max(std::max(left[k] - query_.first, e[k] - query_.extend), kNever);
            without_f[k] = std::max(std::max(0, paired[k]), e[k]);
        }
    }

    static std::int32_t never_or_sum(std::int32_t before, std::int32_t score) {
        return before == kNever ? kNever : before + score;
    }

    // Writes the decision of each row, from the results of compute_without_f and of the chain; h_ is still the previous
    // column.
    void decide(std::size_t low, std::size_t n, std::uint8_t* decisions) const {
        const std::int32_t* const left = h_.data() + low;
        const std::int32_t* const e = e_.data() + low;
        const std::int32_t* const f = f_.data();
        const std::int32_t* const paired = paired_.data();
        const std::int32_t* const without_f = without_f_.data();
        const std::int32_t first = query_.first;
        for (std::size_t k = 0; k < n; ++k) {
            const std::int32_t h = std::max(without_f[k], f[k]);
            int made = h == e[k] ? kFromE : kFromF;
            made = h == paired[k] ? kDiagonal : made;
            made = h == 0 ? kStop : made;
            made |= e[k] == left[k] - first ? kEOpened : 0;
            decisions[k] = static_cast<std::uint8_t>(made);
        }
        for (std::size_t k = 1; k < n; ++k) {
            const std::int32_t above = std::max(without_f[k - 1], f[k - 1]);
            decisions[k] = static_cast<std::uint8_t>(decisions[k] | (f[k] == above - first ? kFOpened : 0));
        }
    }

    std::size_t cells(std::size_t from, std::size_t to) const {
        std::size_t sum = 0;
        for (std::size_t column = from; column <= to; ++column) sum += band_.at(column).width();
        return sum;
    }

    // Traces the path back through columns `to` to `from`, or to its start. `entry` is the column before `from`. If the
    // decisions of all columns take too much memory, the columns are divided into parts, and the column before each
    // part is saved; the path is then traced through the parts from the last to the first.
    void trace_columns(std::size_t from, std::size_t to, const SavedColumn* entry) {
        const std::size_t total = cells(from, to);
        restore(entry);
        if (total <= memory_bytes_ || from == to) {
            std::vector<std::uint8_t> decisions(total);
            std::vector<std::size_t> offsets(to - from + 1);
            std::size_t offset = 0;
            for (std::size_t column = from; column <= to; ++column) {
                offsets[column - from] = offset;
                advance(column, decisions.data() + offset);
                offset += band_.at(column).width();
            }
            walk(from, decisions, offsets);
            return;
        }
        // The parts have about equal sizes and are so few that the saved columns take no more memory than the decisions
        // may take.
        std::size_t widest = 1;
        for (std::size_t column = from; column <= to; ++column) widest = std::max(widest, band_.at(column).width());
        const std::size_t affordable = memory_bytes_ / (2 * sizeof(std::int32_t) * widest);
        const std::size_t wanted = total / std::max<std::size_t>(memory_bytes_, 1) + 1;
        const std::size_t parts = std::max<std::size_t>(2, std::min(affordable, wanted));
        std::vector<SavedColumn> saved;
        std::vector<std::size_t> starts{from};
        std::size_t sum = 0;
        for (std::size_t column = from; column < to; ++column) {
            advance(column, nullptr);
            sum += band_.at(column).width();
            if (sum >= total / parts + 1 || column + 1 == to) {
                if (sum < total / parts + 1 && starts.size() > 1) continue;  // the last column alone needs no part
                saved.push_back(save(column));
                starts.push_back(column + 1);
                sum = 0;
            }
        }
        std::size_t last = to;
        for (std::size_t part = starts.size(); part-- > 0 && !finished_;) {
            if (walk_.column() >= starts[part]) trace_columns(starts[part], last, part == 0 ? entry : &saved[part - 1]);
            last = starts[part] - 1;
            if (part > 0) saved.pop_back();
        }
    }

    void walk(std::size_t from, const std::vector<std::uint8_t>& decisions, const std::vector<std::size_t>& offsets) {
        while (walk_.column() >= from && !finished_) {
            const std::size_t column = walk_.column();
            const std::size_t low = static_cast<std::size_t>(band_.at(column).low);
            finished_ = !walk_.follow(decisions[offsets[column - from] + walk_.row() - low]);
        }
    }

    const Query& query_;
    const std::uint8_t* subject_;
    const Band& band_;
    const UsedPairs& used_;
    const std::size_t memory_bytes_;
    Meter meter_;
    std::vector<std::int32_t> h_;
    std::vector<std::int32_t> e_;
    // Values of the rows of one column's interval: F, H by a pair, and H without F.
    std::vector<std::int32_t> f_;
    std::vector<std::int32_t> paired_;
    std::vector<std::int32_t> without_f_;
    Traceback walk_;
    bool finished_ = false;
};

// Writes the CIGAR and counts its columns.
void describe(const Query& query, const std::uint8_t* subject, const std::vector<Run>& runs, Path& path) {
    std::size_t row = path.query_start;
    std::size_t column = path.subject_start;
    for (const auto& [operation, length] : runs) {
        path.columns += length;
        if (operation != 'M') {
            append_to_cigar(path.cigar, length, operation);
            path.gap_openings += 1;
            path.gap_residues += length;
            (operation == 'D' ? column : row) += length;
            continue;
        }
        append_pairs_to_cigar(path.cigar, length, [&](std::size_t k) {
            const bool identical = query.identical(row + k, subject[column + k]);
            path.identities += identical ? 1u : 0u;
            path.positives += query.scores(subject[column + k])[row + k] > 0 ? 1u : 0u;
            return identical;
        });
        row += length;
        column += length;
    }
}

// The pairs of residues (row, column) that a path aligns.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const Path& path, const std::vector<Run>& runs) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::size_t row = path.query_start;
    std::size_t column = path.subject_start;
    for (const auto& [operation, length] : runs) {
        for (std::size_t k = 0; k < length && operation == 'M'; ++k) pairs.emplace_back(row + k, column + k);
        if (operation != 'D') row += length;
        if (operation != 'I') column += length;
    }
    return pairs;
}

}  // namespace

std::vector<Path> find_paths(const Query& query, const std::uint8_t* subject, std::size_t length, std::size_t most,
                             std::int32_t floor, std::size_t memory_bytes, Observer& observer, UsedPairs used) {
    std::vector<Path> paths;
    ForwardPass forward(query, subject, length, most > 1, used, observer);
    while (paths.size() < most) {
        Path path;
        path.end = forward.end();
        if (path.end.score < std::max(floor, 1)) break;
        const Band band = find_band(query, subject, path.end, forward.groups(), used, observer);
        const Traceback walk = BandedTraceback(query, subject, path.end, band, used, memory_bytes, observer).trace();
        const std::vector<Run> runs = walk.runs();
        path.query_start = walk.row();
        path.subject_start = walk.column();
        describe(query, subject, runs, path);
        if (paths.size() + 1 < most) {
            used.add(pairs_of(path, runs));
            forward.bar(used, path.subject_start, path.end.subject_end - 1);
        }
        paths.push_back(std::move(path));
    }
    return paths;
}

std::vector<Path> find_path_to(const Query& query, const std::uint8_t* subject, const End& end, std::int32_t floor,
                               std::size_t memory_bytes, Observer& observer) {
    const std::uint64_t columns = std::min<std::uint64_t>(end.subject_end, query.max_columns(end));
    const std::size_t from = end.subject_end - static_cast<std::size_t>(columns);
    std::vector<Path> paths = find_paths(query, subject + from, columns, 1, floor, memory_bytes, observer);
    for (Path& path : paths) {
        path.subject_start += from;
        path.end.subject_end += from;
    }
    return paths;
}

}  // namespace swsearch::align
