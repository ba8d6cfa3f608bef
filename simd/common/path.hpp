// The path of an alignment. Input: the decisions of cells. Outputs: runs of operations, and a CIGAR.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

// A path that is followed from its end to its start: the node that it has reached, and its runs from there on.
class ReversePath {
   public:
    // row, column: the path's end, as the numbers of query and subject residues before it.
    ReversePath(std::size_t row, std::size_t column) : row_(row), column_(column) {}

    std::size_t row() const { return row_; }
    std::size_t column() const { return column_; }

    // The runs from the start of the path to its end.
    std::vector<Run> runs() const { return {runs_.rbegin(), runs_.rend()}; }

    // Follow the path back over a pair, or over a gap.
    void pair() {
        append('M', 1);
        --row_;
        --column_;
    }
    void query_alone(std::size_t length) {
        append('I', length);
        row_ -= length;
    }
    void subject_alone(std::size_t length) {
        append('D', length);
        column_ -= length;
    }

   private:
    void append(char operation, std::size_t length) {
        if (runs_.empty() || runs_.back().operation != operation) runs_.push_back({operation, 0});
        runs_.back().length += length;
    }

    std::size_t row_;
    std::size_t column_;
    std::vector<Run> runs_;  // in reverse order
};

// The traceback by the decisions of cells.
class Traceback : public ReversePath {
   public:
    using ReversePath::ReversePath;

    // Follows the decision of the cell at (row, column). Returns false if the alignment starts at this node.
    bool follow(std::uint8_t decision) {
        if (state_ == kInH) {
            switch (decision & kHMask) {
                case kStop: return false;
                case kDiagonal: pair(); break;
                case kFromE: state_ = kInE; break;
                default: state_ = kInF; break;
            }
        } else if (state_ == kInE) {
            if (decision & kEOpened) state_ = kInH;
            subject_alone(1);
        } else {
            if (decision & kFOpened) state_ = kInH;
            query_alone(1);
        }
        return true;
    }

   private:
    enum State { kInH, kInE, kInF };

    State state_ = kInH;
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
