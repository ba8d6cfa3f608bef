// A batch of swsearch in shares. Run it with `nextflow run main.nf --queries queries.fasta --database proteins.fasta.gz`.
nextflow.enable.dsl = 2

params.queries = null
params.database = null
params.shares = 8
params.options = '--top 100'
params.results = 'results'

process INDEX {
    input:
    path fasta

    output:
    path 'subjects.db'

    script:
    """
    swsearch index ${fasta} -o subjects.db --quiet
    """
}

process SEARCH {
    cpus 4
    errorStrategy 'retry'
    maxRetries 2

    input:
    val share
    path queries
    path database

    output:
    path 'hits-*.sqlite'

    script:
    """
    swsearch batch ${queries} ${database} ${params.options} --shard ${share}/${params.shares} \\
        --store 'hits-{shard}.sqlite' --threads ${task.cpus}
    """
}

process MERGE {
    publishDir params.results, mode: 'copy'

    input:
    path stores

    output:
    path 'hits.sqlite'
    path 'hits.tsv'

    script:
    """
    swsearch runs merge ${stores} --store hits.sqlite
    swsearch report latest --store hits.sqlite --format blast6 --out hits.tsv
    """
}

workflow {
    database = INDEX(Channel.fromPath(params.database, checkIfExists: true).collect())
    queries = Channel.fromPath(params.queries, checkIfExists: true).collect()
    stores = SEARCH(Channel.of(1..params.shares), queries, database.first())
    MERGE(stores.collect())
}
