// The forward pass, the first of the two steps of an alignment (docs/design/traceback.md). Inputs: a query and a
// subject. Outputs: the optimal local score, its end, and the columns of H through which the path is traced.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "align/alignment.hpp"
#include "common/aligned.hpp"

namespace swsearch::align {

// The subject's columns are computed in blocks, and H and E of the column before each block are saved. All columns of H
// are kept if they fit the memory; otherwise those that are asked for are computed again from what was saved.
//
// When pairs of residues are barred, columns are computed again from their first block on, until H and E before a block
// equal the saved ones. So the cost of a further alignment is about that of the columns that it spans.
class ForwardPass {
   public:
    // Computes all columns without the pairs of `used`, in 16-bit lanes, and again in 32-bit lanes if those are too
    // narrow. `several` alignments will be asked for. The pairs must outlive the pass, and `bar` follows a change.
    ForwardPass(const Query& query, const std::uint8_t* subject, std::size_t length, bool several,
                const UsedPairs& used, Workspace& workspace);

    // The end of the best alignment without the barred pairs; among several ends, the smallest subject end, then the
    // smallest query end.
    End end();

    // Bars the pairs that were added to the used ones, which are in columns first to last.
    void bar(std::size_t first, std::size_t last);

    // Makes the nodes of some columns up to `column`, which is above 0, available to h(), and returns the first of
    // these columns. A node's numbers are those of the query's and the subject's residues before it. Since the last
    // call of end(), `column` must not have increased.
    std::size_t load_up_to(std::size_t column);

    // H of an available node.
    std::int32_t h(std::size_t row, std::size_t column) const;

    // E of a node of the first available column.
    std::int32_t first_e(std::size_t row) const;

   private:
    struct Block {
        std::int32_t best;
        std::size_t best_column;
    };
    // H, then E, of the last one of the first `column` columns.
    struct Saved {
        std::size_t column;
        std::vector<std::uint8_t> values;
    };

    bool run_all(bool narrow);
    bool run_block(std::size_t block);
    void compute(std::size_t from, std::size_t to, std::size_t room);
    template <class Value>
    void run_columns(std::size_t from, std::size_t to);
    template <class Value>
    const UsedPair* barred_column(const UsedPair* first);
    std::uint8_t* column_of_h(std::size_t column) const {
        return static_cast<std::uint8_t*>(state_.h) + (column - state_.begin) * bytes_;
    }
    Saved saved(std::size_t column) const;
    void load(const Saved& saved);
    bool begins_as_before(std::size_t block) const;
    std::int32_t value(const std::uint8_t* values, std::size_t row) const;

    const Query& query_;
    const std::size_t length_;
    const bool several_;
    const UsedPairs& used_;
    Workspace& workspace_;
    bool narrow_ = false;
    std::size_t lanes_ = 0;
    std::size_t bytes_ = 0;         // of one column of H or E
    bool keeps_all_ = false;        // all columns of H
    std::size_t path_columns_ = 0;  // columns of H that are available at a time, beside the one before them
    std::size_t pass_columns_ = 0;  // the same while no path is traced
    std::size_t block_columns_ = 0;
    std::size_t counted_ = 0;  // columns that the observer has counted
    ForwardKernel kernel_ = nullptr;
    ForwardState state_{};
    AlignedVector<std::uint8_t> e_;
    AlignedVector<std::uint8_t> barred_;  // 0 but for the column that is computed
    std::vector<std::uint32_t> places_;   // of the rows in a striped column
    std::vector<Block> blocks_;
    std::vector<Saved> starts_;         // of the blocks
    std::vector<Saved> within_;         // of parts of the block through which a path is traced
    const Saved* available_ = nullptr;  // the column before those that are available
};

}  // namespace swsearch::align
