# A search with BioPerl's RemoteBlast: prints subject, E-value, and places on query and subject of each alignment.
# Arguments: address, program, database, file of one query in FASTA.
use strict;
use warnings;
use Bio::Tools::Run::RemoteBlast;

my ($address, $program, $database, $path) = @ARGV;
my $factory = Bio::Tools::Run::RemoteBlast->new(
    -url_base       => $address,
    -prog           => $program,
    -data           => $database,
    -expect         => '0.001',
    -hitlist_size   => 5,
    -readmethod     => 'blasttable',
    -alignment_view => 'Tabular',
);
$factory->submit_blast($path);
for my $rid ($factory->each_rid) {
    my $report;
    until (ref($report = $factory->retrieve_blast($rid))) {
        die "retrieve_blast returned $report\n" if $report;
    }
    while (my $result = $report->next_result) {
        while (my $hit = $result->next_hit) {
            while (my $hsp = $hit->next_hsp) {
                my @places = map { $hsp->range($_) } 'query', 'hit';
                print join("\t", $hit->name, $hsp->evalue, @places), "\n";
            }
        }
    }
}
