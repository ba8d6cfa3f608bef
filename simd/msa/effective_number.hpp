// Neff, the effective number of sequences of a multiple alignment, as HH-suite defines it.

#pragma once

#include "msa/rows.hpp"

namespace swsearch::msa {

// The mean over columns i of Neff(i), which is 2 to the mean entropy, in bits, of the columns of the subalignment of i:
// the rows with a residue in column i. These rows are weighted by position (Henikoff and Henikoff 1994) in the columns
// that at most a tenth of them do not reach; if those are fewer than ten, by weights of the whole alignment. A column
// without residues counts as the column before it, and as 0 at the beginning.
double effective_number(const Rows& rows, int n_threads);

}  // namespace swsearch::msa
