// The kernels for AVX-512BW with VBMI.

#include "score/isa_avx512.hpp"
#include "score/kernel_set.hpp"

namespace swsearch::score {
extern const Kernels kernels_avx512vbmi;
const Kernels kernels_avx512vbmi = kernel_set<Avx512Vbmi, 2>("avx512vbmi");
}  // namespace swsearch::score
