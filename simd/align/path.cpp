// The second of the two steps of an alignment (docs/design/traceback.md): the path from its end to its start, through
// the values of H. Inputs: a query, a subject and their forward pass. Output: the path as a CIGAR with its counts.

#include <algorithm>
#include <stdexcept>

#include "align/forward_pass.hpp"

namespace swsearch::align {
namespace {

// The traceback in state H or D; state I is left at once, since a gap in the subject stays in its column.
class Walk : public ReversePath {
   public:
    Walk(const Query& query, const std::uint8_t* subject, const End& end, const UsedPairs& used, ForwardPass& forward)
        : ReversePath(end.query_end, end.subject_end),
          query_(query),
          subject_(subject),
          used_(used),
          forward_(forward),
          score_(end.score) {
        while (column() > 0 && !finished_) {
            first_ = forward.load_up_to(column());
            while (column() > first_ && !finished_) is_in_gap_ ? step_in_gap() : step();
        }
    }

   private:
    void step() {
        const std::int32_t h = forward_.h(row(), column());
        if (h == 0) {
            finished_ = true;
        } else if (is_pair(h)) {
            pair();
        } else if (is_e(h)) {
            is_in_gap_ = true;
            e_ = h;
        } else {
            query_alone(length_of_gap(h));
        }
    }

    void step_in_gap() {
        subject_alone(1);
        is_in_gap_ = e_ != forward_.h(row(), column()) - query_.first;
        e_ += query_.extend;
    }

    bool is_pair(std::int32_t h) const {
        return h == forward_.h(row() - 1, column() - 1) + query_.scores(subject_[column() - 1])[row() - 1] &&
               !used_.contains({row() - 1, column() - 1});
    }

    // Whether E of the node is h: whether a gap to it opens from an available node, or before these.
    bool is_e(std::int32_t h) const {
        std::int32_t opens_from = h + query_.first;
        for (std::size_t before = column(); before-- > first_; opens_from += query_.extend) {
            if (opens_from > score_) return false;
            if (forward_.h(row(), before) == opens_from) return true;
        }
        return forward_.first_e(row()) == opens_from - query_.first;
    }

    // The length of the shortest gap in the subject that ends here with h, as F does.
    std::size_t length_of_gap(std::int32_t h) const {
        std::int32_t opens_from = h + query_.first;
        for (std::size_t before = row(); before-- > 0; opens_from += query_.extend) {
            if (forward_.h(before, column()) == opens_from) return row() - before;
        }
        throw std::logic_error("no path leads to a value of the forward pass");
    }

    const Query& query_;
    const std::uint8_t* subject_;
    const UsedPairs& used_;
    ForwardPass& forward_;
    const std::int32_t score_;  // the largest H
    std::size_t first_ = 0;     // the first available column
    bool is_in_gap_ = false;
    std::int32_t e_ = 0;  // in a gap
    bool finished_ = false;
};

// The pairs of residues (row, column) that a path aligns.
std::vector<UsedPair> pairs_of(const Path& path, const std::vector<Run>& runs) {
    std::vector<UsedPair> pairs;
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

Path path_of(const Query& query, const std::uint8_t* subject, const End& end, std::size_t row, std::size_t column,
             const std::vector<Run>& runs) {
    Path path;
    path.end = end;
    path.query_start = row;
    path.subject_start = column;
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
    return path;
}

std::vector<Path> find_paths(const Query& query, const std::uint8_t* subject, std::size_t length, std::size_t most,
                             std::int32_t floor, Workspace& workspace, UsedPairs used) {
    std::vector<Path> paths;
    ForwardPass forward(query, subject, length, most > 1, used, workspace);
    while (paths.size() < most) {
        const End end = forward.end();
        if (end.score < std::max(floor, 1)) break;
        const Walk walk(query, subject, end, used, forward);
        const std::vector<Run> runs = walk.runs();
        paths.push_back(path_of(query, subject, end, walk.row(), walk.column(), runs));
        if (paths.size() < most) {
            used.add(pairs_of(paths.back(), runs));
            forward.bar(walk.column(), end.subject_end - 1);
        }
    }
    return paths;
}

std::vector<Path> find_path_to(const Query& query, const std::uint8_t* subject, const End& end, std::int32_t floor,
                               Workspace& workspace) {
    const std::uint64_t columns = std::min<std::uint64_t>(end.subject_end, query.max_columns(end));
    const std::size_t from = end.subject_end - static_cast<std::size_t>(columns);
    std::vector<Path> paths = find_paths(query, subject + from, columns, 1, floor, workspace);
    for (Path& path : paths) {
        path.subject_start += from;
        path.end.subject_end += from;
    }
    return paths;
}

}  // namespace swsearch::align
