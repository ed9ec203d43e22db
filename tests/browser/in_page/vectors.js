// Names of the vectors that this browser does not agree with.
(async () => {
    const { LocalClient } = await import('/client/client/client.js');
    const { Ledger } = await import('/client/client/ledger.js');
    const { verified } = await import('/client/client/manifest.js');
    const given = GIVEN, chains = new Map(given.chains), differ = [];
    for (const [name, rounds, point, words, , report, sendAt] of given.answers) {
        const left = words.map((word) => BigInt('0x' + word)), word = () => left.shift();
        const storage = { async change(step) { this.kept = step(this.kept) ?? this.kept; } };
        const ledger = await Ledger.open(storage, { day: '2030-01-05', word });
        const clock = () => Date.parse('2030-01-05T12:00:00Z');
        const terms = { nFeatures: point.length, key: given.key, cap: [10n, 1n], clock, word };
        const row = await new LocalClient(ledger, terms).answer(chains.get(name).slice(0, rounds), () => point.map(Number));
        if (row.report !== report || row.sendAt !== sendAt || left.length) differ.push(name);
    }
    for (const [name, chain, , expected] of given.manifests) {
        const told = await verified(chain, given.key).then(() => 'taken', (no) => (no.why ? 'refused' : 'crashed'));
        if (told !== expected) differ.push(name);
    }
    return differ;
})()
