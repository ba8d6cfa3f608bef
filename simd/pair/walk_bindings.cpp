// Bindings of simd/pair/walk.hpp: the path of a pair whose matrix another machine swept, block after block as that one
// hands them over.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <string>

#include "pair/arguments.hpp"
#include "pair/walk.hpp"

namespace swsearch {
void bind_pair_walk(nanobind::module_& module);

namespace {

namespace nb = nanobind;
using namespace nb::literals;

using pair::Letters;
using Scores = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Holds the arrays that the walk reads.
class PairWalk {
public:
    PairWalk(const Letters& query, const Letters& subject, const std::optional<pair::Table>& table, std::int32_t match,
             std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend, bool local, bool query_free,
             bool subject_free, std::size_t query_end, std::size_t subject_end)
        : query_(query),
          subject_(subject),
          table_(table),
          pair_(query.data(), query.size(), subject.data(), subject.size(),
                checked(query, subject, table, match, mismatch, gap_open, gap_extend, local),
                {local, query_free, subject_free}),
          walk_(pair_, query_end, subject_end) {
        if (query_end > query.size() || subject_end > subject.size()) throw nb::value_error("the end is beside the matrix");
    }

    std::size_t row() const { return walk_.row(); }
    std::size_t column() const { return walk_.column(); }
    bool done() const { return walk_.done(); }

    void through(std::size_t above, std::size_t column, std::size_t group_rows, const Scores& top_h, const Scores& top_f,
                 const Scores& left_h, const Scores& next_e, const Scores& corner, const Scores& next_f) {
        if (walk_.done() || above >= walk_.row() || column >= walk_.column() || group_rows == 0) {
            throw nb::value_error("the block has no cell that the path could be in");
        }
        const std::size_t rows = walk_.row() - above;
        const std::size_t groups = (rows - 1) / group_rows + 1;
        const std::size_t columns = walk_.column() - column;
        if (groups - 1 > column || top_h.size() < columns || top_f.size() < columns || left_h.size() < rows ||
            next_e.size() < rows || corner.size() < groups || next_f.size() + 1 < groups) {
            throw nb::value_error("the block's edges are shorter than the path may go");
        }
        const nb::gil_scoped_release release;
        walk_.through(above, top_h.data(), top_f.data(),
                      {column, group_rows, left_h.data(), next_e.data(), corner.data(), next_f.data()});
    }

    nb::tuple finish() {
        walk_.finish();
        nb::list runs;
        for (const auto& [operation, length] : walk_.runs()) runs.append(nb::make_tuple(std::string(1, operation), length));
        return nb::make_tuple(walk_.row(), walk_.column(), runs);
    }

private:
    static pair::Costs checked(const Letters& query, const Letters& subject, const std::optional<pair::Table>& table,
                               std::int32_t match, std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend,
                               bool local) {
        const pair::Costs costs = pair::checked_costs(table, match, mismatch, gap_open, gap_extend, local);
        pair::check_letters(query, costs.table != nullptr ? costs.table_rows : pair::most_letters);
        pair::check_letters(subject, costs.table != nullptr ? costs.table_columns : pair::most_letters);
        return costs;
    }

    Letters query_;
    Letters subject_;
    std::optional<pair::Table> table_;
    pair::Pair pair_;
    pair::Walk walk_;
};

}  // namespace

void bind_pair_walk(nb::module_& module) {
    nb::class_<PairWalk>(module, "PairWalk",
                         "The path of a pair from an end that a sweep elsewhere found, back through blocks of its matrix\n"
                         "(docs/design/diamond.md, \"Path\"). Letters and scores as for `align_pair`. Raises ValueError for\n"
                         "arguments that do not fit.")
        .def(nb::init<const Letters&, const Letters&, const std::optional<pair::Table>&, std::int32_t, std::int32_t,
                      std::int32_t, std::int32_t, bool, bool, bool, std::size_t, std::size_t>(),
             "query"_a, "subject"_a, "table"_a.none(), "match"_a, "mismatch"_a, "gap_open"_a, "gap_extend"_a, "local"_a,
             "query_free"_a, "subject_free"_a, "query_end"_a, "subject_end"_a)
        .def_prop_ro("row", &PairWalk::row, "Query letters before the node that the path has come to.")
        .def_prop_ro("column", &PairWalk::column, "Subject letters before it.")
        .def_prop_ro("done", &PairWalk::done, "Whether the path needs no more block.")
        .def("through", &PairWalk::through, "above"_a, "column"_a, "group_rows"_a, "top_h"_a, "top_f"_a, "left_h"_a,
             "next_e"_a, "corner"_a, "next_f"_a,
             "Goes on in the rows below row `above` of nodes. `top_h`, `top_f`: H of that row, and the F that the next may take,\n"
             "in columns column + 1, ... `left_h`, `next_e`: of each row, H at the left of the block and the E that the next\n"
             "column may take. The first `group_rows` rows have theirs in `column`, each further group one column further left;\n"
             "`corner` is, of each group, H above its first row there, `next_f` next F below its last row. All int32.")
        .def("finish", &PairWalk::finish,
             "query_start, subject_start and runs as `align_pair` returns them, once the path is done.");
}

}  // namespace swsearch
