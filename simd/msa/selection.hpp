// The selection of rows of a multiple alignment that are not too similar to each other, by the idea of HH-suite's
// hhfilter (Steinegger and others 2019, BMC Bioinformatics 20:473): its options -id and -diff.
//
// Rows are offered in a given order, and a row is taken unless a row before it that was taken is too similar. With
// `at_least`, this begins with a low limit on identity, which rises until every window of columns has enough rows; each
// row has the limit of those of its windows that have too few. swsearch/report/row_filter.py describes the definitions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "msa/rows.hpp"

namespace swsearch::msa {

struct Selection {
    int max_identity;       // percent, 0 to 100
    int min_identity;       // the lowest limit to begin with, at most max_identity
    std::int64_t at_least;  // rows of a window; 0 if there is no such condition
};

// The rows that are taken: 1 for each of them, in the order in which they are offered. The first is the query, which is
// taken always; each of the others has a residue. The alignment has n_rows rows, of which some may not be offered.
std::vector<std::uint8_t> select(const Rows& rows, std::size_t n_rows, const Selection& selection);

}  // namespace swsearch::msa
