// The kernels for any processor.

#include "score/isa_scalar.hpp"
#include "score/kernel_set.hpp"

namespace swsearch::score {
extern const Kernels kernels_scalar;
const Kernels kernels_scalar = kernel_set<Scalar, 1>("scalar");
}  // namespace swsearch::score
