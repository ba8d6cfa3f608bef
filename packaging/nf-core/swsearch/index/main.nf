process SWSEARCH_INDEX {
    tag "${meta.id}"
    label 'process_low'

    conda "${moduleDir}/environment.yml"
    container 'swsearch:0.1.0'

    input:
    tuple val(meta), path(fasta, stageAs: 'fasta/*')

    output:
    tuple val(meta), path("${prefix}.db"), emit: db
    tuple val("${task.process}"), val('swsearch'), eval("swsearch --version | sed 's/swsearch //'"), emit: versions_swsearch, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    swsearch index \\
        ${fasta} \\
        ${args} \\
        --threads ${task.cpus} \\
        --out ${prefix}.db
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}.db
    """
}
