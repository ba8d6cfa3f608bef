// The forward pass, the first of the three steps of an alignment (docs/design/traceback.md). Inputs: a query and a
// subject. Outputs: the optimal local score, its end, and the best score of each group of subject columns. When pairs
// of residues are barred, only the columns that change are computed again.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "align/alignment.hpp"

namespace swsearch::align {

// The subject's columns are computed in blocks. If several alignments are requested, H and E at the beginning of each
// block are saved. When an alignment's pairs are barred, columns are computed again from its first block on, until H
// and E at the beginning of a block equal the saved ones. Therefore the cost of a further alignment is about that of
// the columns that it spans, not that of a complete pass.
class ForwardPass {
   public:
    // Computes all columns without the pairs of `used`, in 16-bit lanes, and again in 32-bit lanes if those are too
    // narrow.
    ForwardPass(const Query& query, const std::uint8_t* subject, std::size_t length, bool several,
                const UsedPairs& used, Observer& observer);

    // The end of the best alignment without the barred pairs; among several ends, the smallest subject end, then the
    // smallest query end.
    End end();

    // Bars the pairs of `used`; the new ones among them are in columns first to last.
    void bar(const UsedPairs& used, std::size_t first, std::size_t last);

    const ColumnBest& groups() const { return groups_; }

   private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    using Memory = std::unique_ptr<void, Free>;
    struct Block {
        std::int32_t best = 0;
        Memory start;  // H, then E, of the column before the block; empty for the first block
    };

    static Memory zeroed(std::size_t bytes);
    bool run_all(bool narrow);
    bool run_block(std::size_t block);
    template <class Value>
    void run_columns(std::size_t from, std::size_t to);
    template <class Value>
    void barred_column(std::size_t column);
    void load(std::size_t block);
    bool begins_as_before(std::size_t block) const;
    void save(std::size_t block);
    std::int32_t best_column_h(std::size_t row) const;

    const Query& query_;
    const std::size_t length_;
    const bool several_;
    Observer& observer_;
    UsedPairs used_;
    std::vector<std::int8_t> profile_;  // a copy of the query's, for the columns with barred pairs
    bool narrow_ = false;
    std::size_t lanes_ = 0;
    std::size_t bytes_ = 0;  // bytes of one column of H or E
    std::size_t block_columns_ = 0;
    std::size_t counted_ = 0;  // columns that the observer has counted
    ForwardKernel kernel_ = nullptr;
    ForwardState state_{};
    Memory h_[3];
    Memory e_;
    ColumnBest groups_;
    std::vector<Block> blocks_;
    std::size_t current_ = 0;  // the block that was computed last
};

}  // namespace swsearch::align
