// Bindings of simd/align.

#include <nanobind/nanobind.h>

namespace swsearch {
void bind_align(nanobind::module_& module);

void bind_align(nanobind::module_&) {}
}  // namespace swsearch
