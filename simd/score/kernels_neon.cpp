// The kernels for NEON.

#include "score/isa_neon.hpp"
#include "score/kernel_set.hpp"

namespace swsearch::score {
extern const Kernels kernels_neon;
const Kernels kernels_neon = kernel_set<Neon, 2>("neon");
}  // namespace swsearch::score
