// Bindings of simd/score.

#include <nanobind/nanobind.h>

namespace swsearch {
void bind_score(nanobind::module_& module);

void bind_score(nanobind::module_&) {}
}  // namespace swsearch
