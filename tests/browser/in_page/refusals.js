// Six devices that must refuse: why each did, how many rows it made meanwhile, and how often a point was read.
(async () => {
    const { IndexedStorage, Ledger, LocalClient, systemWord } = await import('/client/client/index.js');
    const given = GIVEN, noon = Date.parse('2030-01-05T12:00:00Z'), told = [];
    let reads = 0, n = 0;
    const device = async ({ isLost, ...terms } = {}) => {
        const storage = await IndexedStorage.open(`refusal-${n++}`);
        const ledger = await Ledger.open(storage, { day: '2030-01-05', word: systemWord, isLost });
        return new LocalClient(ledger, { nFeatures: 2, key: given.key, clock: () => noon, ...terms });
    };
    const ask = async (client, chain) => {
        const before = (await client.history()).length;
        const why = await client.answer(chain, () => { reads++; return [50, 10]; }).then(() => 'answered it', (no) => no.why);
        told.push([why, (await client.history()).length - before]);
    };
    await ask(await device(), given.unsigned);
    await ask(await device({ clock: () => noon + 30 * 86400e3 }), given.one);
    await ask(await device({ cap: [1n, 2n] }), given.one);
    await ask(await device({ isLost: true }), given.one);
    for (let i = 0; i < 99; i++) {  // one that is not asked in the first round
        const client = await device({ nFeatures: 4 });
        if (await client.look(given.rounds).then(() => false, () => true)) { await ask(client, given.rounds); break; }
    }
    const client = await device();
    await client.answer(given.one, () => [50, 10]);
    await ask(client, given.again);
    return { told, reads };
})()
