// Reading of the records of a block of FASTA or FASTQ text. A block consists of complete records, so that several
// threads can read the blocks of one file. Only regular text is read here: for any other text, the caller reads the
// file again (swsearch/sequences/fasta.py) and reports the problem with its line and column.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swsearch::index {

enum class Problem : std::uint8_t { none, no_residues, letter, header_byte, too_long };

// The records of a block that are not sequences of the alphabet.
struct InvalidRecords {
    std::vector<std::uint32_t> numbers;      // number of each record among all records of the block, from 0
    std::vector<std::uint8_t> problems;      // a Problem each
    std::vector<std::uint64_t> residues;     // for Problem::letter, number of residues before the letter
    std::vector<std::uint8_t> bytes;         // for Problem::letter and Problem::header_byte, the byte
    std::vector<std::uint8_t> headers;       // as in Records
    std::vector<std::uint64_t> header_ends;  // as in Records
};

// The records of a block. Their residue codes have replaced the beginning of the block's text.
struct Records {
    bool is_regular = false;                 // if false, the other members have no meaning
    std::size_t n_residues = 0;              // number of residue codes at the beginning of the block
    std::vector<std::uint32_t> lengths;      // number of residues of each record, at least 1
    std::vector<std::uint8_t> headers;       // headers without '>' or '@', concatenated
    std::vector<std::uint64_t> header_ends;  // offset of the end of each header in `headers`
    InvalidRecords refused;                  // records that are not among the others
};

// Reads FASTA and writes each letter's code, encode[letter], over the text. Lines end in LF, CRLF or CR; blanks at
// either end of a line and blank lines have no meaning. Irregular are text before the first '>', a record without
// residues, a comment line, a letter whose code is 128 or more, and a byte that no header may contain. If `skips`, each
// record with one of these is refused and the text stays regular, except for text before the first '>'.
Records read_fasta(std::uint8_t* text, std::size_t size, const std::uint8_t* encode, bool skips);

// Reads FASTQ in the same way: four lines of ASCII per record, which end in LF or CRLF. The third is '+', alone or with
// the header; there are as many qualities as letters. If `skips`, records with letters whose code is 128 or more, or
// with neither letters nor qualities, are refused.
Records read_fastq(std::uint8_t* text, std::size_t size, const std::uint8_t* encode, bool skips);

// The size of the longest beginning of the text that ends before a record of FASTA; 0 if no record but the first begins
// in the text.
std::size_t whole_fasta(const std::uint8_t* text, std::size_t size);

// The size of the longest beginning of the text that consists of records of FASTQ of four lines each.
std::size_t whole_fastq(const std::uint8_t* text, std::size_t size);

// Whether a range of residues.bin consists of n subjects and their padding: each of lengths[i] letters at `starts[i]`,
// which is relative to the range and ascending, followed by `fill` up to the next subject or the end.
bool residues_hold(const std::uint8_t* residues, std::size_t size, const std::uint64_t* starts,
                   const std::uint32_t* lengths, std::size_t n, const std::uint8_t* is_letter, std::uint8_t fill);

// Writes records as FASTA. `headers` and `codes` are concatenated, with the end of each header and the length of each
// record; decode[code] is the letter of a code. Lines have `width` letters, or the whole sequence if it is 0.
std::vector<std::uint8_t> write_fasta(const std::uint8_t* headers, const std::uint64_t* header_ends,
                                      const std::uint8_t* codes, const std::uint32_t* lengths, std::size_t n,
                                      const std::uint8_t* decode, std::size_t width);

}  // namespace swsearch::index
