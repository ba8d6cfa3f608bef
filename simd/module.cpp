// The Python module swsearch._native, the interface of simd/ to Python. Each folder binds its own functions.

#include <nanobind/nanobind.h>

namespace swsearch {
void bind_align(nanobind::module_& module);
void bind_context(nanobind::module_& module);
void bind_domains(nanobind::module_& module);
void bind_index(nanobind::module_& module);
void bind_msa(nanobind::module_& module);
void bind_pack(nanobind::module_& module);
void bind_pair(nanobind::module_& module);
void bind_pssm(nanobind::module_& module);
void bind_score(nanobind::module_& module);
void bind_statistics(nanobind::module_& module);
}  // namespace swsearch

NB_MODULE(_native, module) {
    module.doc() =
        "Native kernels: scores of many subjects, alignments of single pairs and families, indexing, packing, "
        "profiles, context columns, domains, statistics.";
    swsearch::bind_align(module);
    swsearch::bind_context(module);
    swsearch::bind_domains(module);
    swsearch::bind_index(module);
    swsearch::bind_msa(module);
    swsearch::bind_pack(module);
    swsearch::bind_pair(module);
    swsearch::bind_pssm(module);
    swsearch::bind_score(module);
    swsearch::bind_statistics(module);
}
