// The selection of rows of a multiple alignment that are not too similar to each other, by the idea of HH-suite's hhfilter
// (Steinegger and others 2019, BMC Bioinformatics 20:473): its options -id and -diff.
//
// Rows are offered in a given order, and a row is taken unless a row before it that was taken is too similar. With
// `at_least`, this begins with a low limit on identity, which rises until every window of columns has enough rows; each
// row has the limit of those of its windows that have too few. swsearch/msa/selection.py describes the definitions.

#pragma once

#include <cstddef>
#include <cstdint>

#include "msa/rows.hpp"

namespace swsearch::msa {

struct Selection {
    int max_identity;   // percent, 0 to 100
    int min_identity;   // the lowest limit to begin with, at most max_identity
    std::int64_t at_least;  // rows of a window; 0 if there is no such condition
};

// Sets taken[order[i]] to 1 for the rows that are taken and leaves the others as they are. The first of the order is the
// query, which is taken always.
void select(const Rows& rows, const std::uint32_t* order, std::size_t n_offered, const Selection& selection,
            std::uint8_t* taken);

}  // namespace swsearch::msa
