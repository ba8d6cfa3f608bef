// The interface of the kernels of contexts, of context columns and of the local Forward score: plain records that the
// drivers and the translation units of the instruction sets (common/vectors.hpp) exchange. docs/design/sensitivity.md
// has the formulas.
//
// Every value is the same for every instruction set: columns are computed with integers up to their exponentials, and
// so are odds; each sum of floating-point numbers has a fixed order, without fused multiply-add.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/profile.hpp"

namespace swsearch::context {

constexpr size_t kLetters = 21;      // the amino acids, and one code for all else and for places outside the sequence
constexpr size_t kRowMultiple = 32;  // n_first and n_second are multiples of it; units of a block of weights
constexpr size_t kResidues = 128;    // for which columns are computed at a time, at most
constexpr size_t kMostUnits = 1024;  // largest n_first and n_second
constexpr int16_t kClip = 1023;      // largest activation
constexpr int kSecondShift = 10;     // units of the second layer's sums by which they exceed those of activations
constexpr int kLogShift = 18;        // the last sums are logarithms to base 2 times 2^18
constexpr int kPowerBits = 10;       // of the fraction, for the table of powers
constexpr int kQueryBits = 15;       // columns of the query are in units of 2^-15, odds of subjects in units of 2^-8
constexpr int kOddsBits = 8;
constexpr int kCountBits = 6;      // of observations
constexpr size_t kBlockRows = 16;  // rows of the query whose values have one exponent
constexpr int32_t kStep = 50;      // by which exponents change

// The network that predicts a column from the residues around it. The sums of the first layer are in the range of 16
// bits, those of the others below 2^30, whatever the residues. The weights are in blocks of kRowMultiple = 32 units,
// so that those of a block of the first layer fit the L1 cache; the third layer has one block.
struct Network {
    size_t width;              // of the window; odd
    size_t n_first, n_second;  // units of the layers
    const int16_t* first;      // [n_first / 32][width][kLetters][32]
    const int16_t* first_bias;
    const int16_t* second;  // [n_second / 32][n_first / 2][32][2]
    const int32_t* second_bias;
    const int16_t* third;  // [n_second / 2][32][2], of which the first kAminoAcids units count
    const int32_t* third_bias;
    const float* powers;  // 2^(k / 2^kPowerBits)
};

// Writes the columns of n residues, at most kResidues, [n][kAminoAcids], each of sum 1. `letters` is the code of the
// first of them, below kLetters; width / 2 further codes are on either side of the n. `work` has kResidues * (n_first +
// n_second) elements.
using ColumnsKernel = void (*)(const Network& network, const uint8_t* letters, size_t n, int16_t* work, float* columns);

// The factors of a row's gaps (swsearch/query/profile.py).
struct GapFactors {
    float deletion, further_deletion, insertion, further_insertion;
};

// Forward of a query and as many subjects as the kernel has lanes, between calls that each compute some columns: the
// recurrence of docs/design/sensitivity.md, with the gap factors of each row, and `start` in place of 1. The total is
// the sum of all M. The rows are computed in blocks of kBlockRows. All values of a block and lane share a power of two,
// so none leaves the range of float: after a column, if the sum of its rows' M, and of the start + P + Y of the column
// before, is above 2^kStep or below 2^-kStep, the exponent changes by kStep; and a block that is entered by values of a
// larger exponent takes that one.
struct ForwardState {
    const int16_t* query;    // [n_blocks * kBlockRows][kAminoAcids]; rows past the last one are 0
    const GapFactors* gaps;  // [n_blocks * kBlockRows], likewise
    size_t n_blocks;
    float* p;           // [n_blocks * kBlockRows][lanes], of the last column; 0 at first, as are y, total and exponents
    float* y;           // [n_blocks * kBlockRows][lanes]
    float* total;       // [n_blocks][lanes]
    int32_t* exponent;  // [n_blocks][lanes] p and y are to be multiplied by 2^exponent
    int32_t* of_total;  // [n_blocks][lanes] the same for total
};

// Computes n columns of the subjects, [n][kAminoAcids / 2][lanes][2]; columns past a subject's end are 0.
using ForwardKernel = void (*)(ForwardState& state, const int16_t* subjects, size_t n);

// A library of contexts (swsearch/query/contexts.py).
struct Library {
    size_t n;               // of contexts; a multiple of kRowMultiple
    size_t width;           // of a window
    const int16_t* costs;   // [width][kAminoAcids][n], at least 0
    const int32_t* priors;  // [n]
    const double* weights;  // [n_weights] by the difference of a cost from the lowest; 0 from there on
    size_t n_weights;
    const double* central;  // [n][kAminoAcids]; as the weights whole numbers, whose sums are below 2^53
};

// An amino acid of a window: its costs, and how often it was observed, in units of 2^-kCountBits.
struct Observation {
    const int16_t* costs;  // [n]
    int32_t count;
};

// A context that has a weight, and how far its cost is above the lowest.
struct NearContext {
    uint32_t context, above;
};

// Writes the sums of the contexts' central columns for one window, each times its weight, [kAminoAcids]. A cost is a
// prior and the sum of observed costs, which is below 2^30 and is rounded to a multiple of 1, or to the even one of two
// neighbours; a larger sum gives other columns, but no access out of the arrays. `work` and `near` have library.n
// elements.
using ContextSumsKernel = void (*)(const Library& library, const Observation* observations, size_t n_observations,
                                   int32_t* work, NearContext* near, double* sums);

struct Kernels {
    ContextSumsKernel context_sums;
    ColumnsKernel columns;
    ForwardKernel forward;
    size_t lanes;
};

}  // namespace swsearch::context
