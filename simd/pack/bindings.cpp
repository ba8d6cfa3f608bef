// Bindings of simd/pack.

#include <nanobind/nanobind.h>

namespace swsearch {
void bind_pack(nanobind::module_& module);

void bind_pack(nanobind::module_&) {}
}  // namespace swsearch
