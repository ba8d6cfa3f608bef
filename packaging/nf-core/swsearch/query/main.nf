process SWSEARCH_QUERY {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container 'swsearch:0.1.0'

    input:
    tuple val(meta), path(queries, stageAs: 'queries/*')
    tuple val(meta2), path(db)
    val format

    output:
    tuple val(meta), path("${prefix}.${format}"), emit: hits
    tuple val("${task.process}"), val('swsearch'), eval("swsearch --version | sed 's/swsearch //'"), emit: versions_swsearch, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    swsearch query \\
        ${queries} \\
        ${db} \\
        --store none \\
        ${args} \\
        --threads ${task.cpus} \\
        --format ${format} \\
        --out ${prefix}.${format}
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.${format}
    """
}
