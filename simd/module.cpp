// The Python module swsearch._native, the interface of simd/ to Python. Each folder binds its own functions.

#include "common/python.hpp"

NB_MODULE(_native, module) {
    module.doc() =
        "Native kernels: scores of many subjects, alignments of single pairs and families, indexing, packing, "
        "profiles, context columns, domains, statistics.";
    using namespace swsearch;
    for (const auto bind : {bind_align, bind_context, bind_domains, bind_index, bind_msa, bind_pack, bind_pair,
                            bind_pssm, bind_score, bind_statistics}) {
        bind(module);
    }
}
