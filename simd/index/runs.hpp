// An external merge sort of subjects by length. A run is the subjects of one block of FASTA, sorted by length, in spool
// files; a group is the subjects of one length in one run, which are neighbours in the spools. Stored order is
// ascending length, then the order of runs, then the order within the group, so a merge copies whole groups. Memory is
// used for one block and 8 bytes per group.

#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include "common/view.hpp"

namespace swsearch::index {

// Writes or reads `size` bytes at an offset of a file. Throws std::system_error; a file that ends early is an error.
void write_at(int fd, const void* from, std::size_t size, std::uint64_t offset);
void read_at(int fd, void* to, std::size_t size, std::uint64_t offset);

// The stable order of the lengths: the index of each subject, by ascending length.
std::vector<std::uint32_t> order_by_length(const std::uint32_t* lengths, std::size_t n);

// The groups of a run: their lengths, ascending, and their numbers of subjects.
struct Groups {
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint32_t> counts;
};

// Sorts the subjects of a block. Writes their residue codes to residues_fd from `offset` on, and their FASTA indices,
// which begin at `first`, to order_fd from subject `first` on.
Groups write_run(const std::uint8_t* codes, const std::uint32_t* lengths, std::size_t n, std::uint32_t first,
                 int residues_fd, std::uint64_t offset, int order_fd);

// The stored position of each subject of a run. `order` has the FASTA indices of the sorted run, minus that of its
// first subject. `next` has, for each of the `distinct` lengths, the stored position of the next subject, and is
// advanced. Throws std::invalid_argument if a length is not one of them, or if `order` has an index twice or outside
// the run.
std::vector<std::uint32_t> run_positions(const Groups& groups, const std::vector<std::uint32_t>& order,
                                         const View<const std::uint32_t>& distinct, const View<std::uint64_t>& next);

// What a merge has not yet copied: for each run, the next group and its offsets in the spools.
struct Cursors {
    View<const std::uint32_t> lengths;  // of all groups of all runs
    View<std::uint32_t> counts;         // subjects of these groups that are not copied yet
    View<std::uint64_t> next;           // for each run, the index of the next group
    View<const std::uint64_t> stops;    // for each run, the index after its last group
    View<std::uint64_t> residues;       // for each run, the offset of the next residue
    View<std::uint64_t> subjects;       // for each run, the offset of the next subject
};

// Groups, or parts of groups, that are copied to a block of stored order; those of a run are neighbours.
struct Pieces {
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint32_t> counts;
    std::vector<std::uint32_t> to;        // index in the block of the piece's first subject
    std::vector<std::uint64_t> residues;  // offset of the piece in its spool of residues, and the index of that
    std::vector<std::uint64_t> subjects;  // offset of the piece in the spools with a value per subject
};

// Takes all groups up to `last_length`, but at most `most` subjects, which must be a complete number of lengths or a
// part of a single one. `next_to` has, for each of the block's `distinct` lengths, the index in the block of its next
// subject.
Pieces take(const Cursors& cursors, const View<const std::uint32_t>& distinct, const View<std::uint32_t>& next_to,
            std::uint64_t most);

// A block of stored order.
struct StoredBlock {
    std::vector<std::uint8_t> residues;  // each subject at a multiple of kSubjectAlignment, gaps filled
    std::vector<std::uint64_t> starts;   // offsets of the subjects, from the given base on
    std::vector<std::uint32_t> lengths;
};

struct PieceViews {
    View<const std::uint32_t> lengths;
    View<const std::uint32_t> counts;
    View<const std::uint32_t> to;
    View<const std::uint64_t> residues;
    View<const std::uint64_t> subjects;
    std::uint64_t n_subjects() const;
};

constexpr std::size_t kSubjectAlignment = 16;

// The bytes of a subject and its padding.
inline std::uint64_t room(std::uint64_t length) {
    return (length + kSubjectAlignment - 1) / kSubjectAlignment * kSubjectAlignment;
}

// The highest bits of a piece's offset are the index of its spool of residues. Threads write to several spools, because
// the system lets one thread at a time write to a file.
constexpr unsigned kSpoolShift = 56;

StoredBlock gather_residues(const std::vector<int>& residues_fds, const PieceViews& pieces, std::uint64_t base,
                            std::uint8_t fill);

// The values of the block's subjects, in stored order, from a spool with one 32-bit value per subject.
std::vector<std::uint32_t> gather_values(int fd, const PieceViews& pieces);

// The residue codes of n subjects, concatenated. Subject i is that of lengths[i] codes at starts[i] of
// sources[which[i]].
std::vector<std::uint8_t> copy_subjects(const std::vector<View<const std::uint8_t>>& sources,
                                        const std::uint16_t* which, const std::uint64_t* starts,
                                        const std::uint32_t* lengths, std::size_t n);

}  // namespace swsearch::index
