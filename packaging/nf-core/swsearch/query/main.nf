process SWSEARCH_QUERY {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container 'swsearch:0.1.0'

    input:
    tuple val(meta), path(queries, stageAs: 'queries/*')
    tuple val(meta2), path(dbs)
    path taxonomy
    path taxid_map
    val format

    output:
    tuple val(meta), path("${prefix}${suffix}"), emit: hits
    tuple val("${task.process}"), val('swsearch'), eval("swsearch --version | sed 's/swsearch //'"), emit: versions_swsearch, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def organisms = [taxonomy ? "--taxonomy ${taxonomy}" : '', taxid_map ? "--taxid-map ${taxid_map}" : ''].join(' ')
    prefix = task.ext.prefix ?: "${meta.id}"
    suffix = ['multiqc': '_mqc.tsv', 'taxa-html': '.html'][format] ?: ".${format}"
    """
    swsearch query \\
        ${queries} \\
        ${dbs} \\
        ${organisms} \\
        --store none \\
        ${args} \\
        --threads ${task.cpus} \\
        --format ${format} \\
        --out ${prefix}${suffix}
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    suffix = ['multiqc': '_mqc.tsv', 'taxa-html': '.html'][format] ?: ".${format}"
    """
    touch ${prefix}${suffix}
    """
}
