// The forward pass over a whole subject, and over as little of it as changes when pairs of residues are barred.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "align/pair.hpp"

namespace swsearch::align {

// The subject's columns are done in blocks. Where several alignments are asked for, H and E at the beginning of each
// block are kept; when an alignment's pairs are barred, columns are done again from its first block on, until a block
// begins as it did before. So a further alignment costs about the columns that it lies in, not a whole pass.
class ForwardPass {
public:
    // Does all columns; in 16-bit lanes, and again in 32-bit ones where those are too narrow.
    ForwardPass(const Query& query, const std::uint8_t* subject, std::size_t length, bool several, Watch& watch);

    // The end of the best alignment without the barred pairs: smallest subject end, then smallest query end.
    End end();

    // Bars pairs that lie in columns first … last, among those that `used` has.
    void bar(const UsedPairs& used, std::size_t first, std::size_t last);

    const ColumnBest& groups() const { return groups_; }

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    using Memory = std::unique_ptr<void, Free>;
    struct Block {
        std::int32_t best = 0;
        Memory start;  // H, then E, of the column before the block; of none for the first block
    };

    static Memory zeroed(std::size_t bytes);
    bool run_all(bool narrow);
    bool run_block(std::size_t block, const UsedPairs& used);
    template <class Value>
    void run_columns(const UsedPairs& used, std::size_t from, std::size_t to);
    void load(std::size_t block);
    bool begins_as_before(std::size_t block) const;
    void save(std::size_t block);
    std::int32_t kept_value(std::size_t row) const;

    const Query& query_;
    const std::size_t length_;
    const bool several_;
    Watch& watch_;
    UsedPairs used_;
    bool narrow_ = false;
    std::size_t lanes_ = 0;
    std::size_t bytes_ = 0;          // of one column of H or E
    std::size_t block_columns_ = 0;
    std::size_t counted_ = 0;        // columns that the watch has been told of in the first pass
    ForwardKernel kernel_ = nullptr;
    ForwardState state_{};
    Memory h_[3];
    Memory e_;
    ColumnBest groups_;
    std::vector<Block> blocks_;
    std::size_t current_ = 0;        // the block that was run last
};

}  // namespace swsearch::align
