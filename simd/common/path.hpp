// The path of an alignment. Input: the decisions of cells. Outputs: runs of operations, and a CIGAR.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace swsearch {

// One byte per cell: the term that gave H, and whether E and F open there instead of extending a gap.
enum Decision : std::uint8_t { kStop, kDiagonal, kFromE, kFromF, kHMask = 3, kEOpened = 4, kFOpened = 8 };

// Consecutive columns of an alignment with the same operation: 'M' is a pair, 'I' a query residue alone, 'D' a subject
// residue alone.
struct Run {
    char operation;
    std::size_t length;
};

// The traceback from the end of an alignment to its start.
class Traceback {
   public:
    // row, column: the node at which the traceback begins, as the numbers of query and subject residues before it.
    Traceback(std::size_t row, std::size_t column) : row_(row), column_(column) {}

    std::size_t row() const { return row_; }
    std::size_t column() const { return column_; }

    // Follows the decision of the cell at (row, column). Returns false if the alignment starts at this node.
    bool follow(std::uint8_t decision) {
        if (state_ == kInH) {
            switch (decision & kHMask) {
                case kStop: return false;
                case kDiagonal:
                    append('M', 1);
                    --row_;
                    --column_;
                    break;
                case kFromE: state_ = kInE; break;
                default: state_ = kInF; break;
            }
        } else if (state_ == kInE) {
            append('D', 1);
            if (decision & kEOpened) state_ = kInH;
            --column_;
        } else {
            append('I', 1);
            if (decision & kFOpened) state_ = kInH;
            --row_;
        }
        return true;
    }

    // Appends a gap over all residues of one sequence that are left.
    void consume_query() { append('I', std::exchange(row_, 0)); }
    void consume_subject() { append('D', std::exchange(column_, 0)); }

    // The runs from the start of the alignment to its end.
    std::vector<Run> runs() const { return {runs_.rbegin(), runs_.rend()}; }

   private:
    enum State { kInH, kInE, kInF };

    void append(char operation, std::size_t length) {
        if (runs_.empty() || runs_.back().operation != operation) runs_.push_back({operation, 0});
        runs_.back().length += length;
    }

    std::size_t row_;
    std::size_t column_;
    State state_ = kInH;
    std::vector<Run> runs_;  // in reverse order
};

inline void append_to_cigar(std::string& cigar, std::size_t length, char operation) {
    char digits[24];
    char* const end = digits + sizeof digits;
    char* begin = end;
    *--begin = operation;
    for (; length > 0; length /= 10) *--begin = static_cast<char>('0' + length % 10);
    cigar.append(begin, end);
}

// Appends `length` pairs: pair k is '=' if equal(k) is true, that is, if its letters are equal, and 'X' otherwise.
// Calls equal once for each k, in order.
template <class Equal>
void append_pairs_to_cigar(std::string& cigar, std::size_t length, const Equal& equal) {
    std::size_t first = 0;
    bool same = length > 0 && equal(std::size_t{0});
    for (std::size_t k = 1; k < length; ++k) {
        const bool next = equal(k);
        if (next == same) continue;
        append_to_cigar(cigar, k - first, same ? '=' : 'X');
        first = k;
        same = next;
    }
    if (length > 0) append_to_cigar(cigar, length - first, same ? '=' : 'X');
}

}  // namespace swsearch
