// The kernels for AVX-512BW.

#include "score/isa_avx512.hpp"
#include "score/kernel_set.hpp"

namespace swsearch::score {
extern const Kernels kernels_avx512bw;
const Kernels kernels_avx512bw = kernel_set<Avx512, 2>("avx512bw");
}  // namespace swsearch::score
