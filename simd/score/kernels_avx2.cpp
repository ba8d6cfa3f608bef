// The kernels for AVX2.

#include "score/isa_avx2.hpp"
#include "score/kernel_set.hpp"

namespace swsearch::score {
extern const Kernels kernels_avx2;
const Kernels kernels_avx2 = kernel_set<Avx2, 1>("avx2");
}  // namespace swsearch::score
