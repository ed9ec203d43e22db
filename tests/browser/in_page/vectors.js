// The vectors that this browser does not agree with, each as its file and its place there.
(async () => {
    const load = (name) => import(`/client/client/${name}.js`);
    const { blake2b } = await load('blake2b'), { check, fraction, left, written } = await load('book');
    const { fromHex, toHex } = await load('bytes'), canonical = await load('canonical');
    const { LocalClient, cohort } = await load('client'), { preferred } = await load('encoding');
    const { hashed } = await load('hashing'), { Ledger } = await load('ledger'), { verified } = await load('manifest');
    const { chosen, weights } = await load('randomiser'), { reportBytes } = await load('report');
    const { rotated } = await load('rotation');
    const given = GIVEN, chains = new Map(given.chains), differ = [];
    const big = (word) => BigInt('0x' + word);
    const verdict = async (act) => {
        try { await act(); return 'taken'; } catch (no) { return no.why ? 'refused' : 'crashed'; }
    };
    const agrees = {
        weights: ([epsilon, a, b]) => String(weights(epsilon)) === `${a},${b}`,
        blake2b: ([message, key, person, size, digest]) =>
            toHex(blake2b(fromHex(message), { key: fromHex(key), person, size })) === digest,
        hash: ([seed, tag, key, hash]) => hashed(big(seed), BigInt(tag), big(key)) === big(hash),
        canonical: async ([text, expected]) => (await verdict(() => canonical.read(text))) === expected
            && (expected !== 'taken' || canonical.write(canonical.read(text)) === text),
        chosen: ([epsilon, , kappa, shown, draw, value]) => {
            const subset = shown.length === kappa ? shown : Array.from({ length: kappa }, (_, i) => i);
            return chosen(BigInt(draw), subset, ...weights(epsilon)) === value;
        },
        manifests: async ([, chain, , expected]) => (await verdict(() => verified(chain, given.key))) === expected,
        preferred: ([query, , x, seed, values]) =>
            String(preferred(query, x.map(Number), big(seed)).sort((one, other) => one - other)) === String(values),
        answers: async ([name, rounds, point, words, own, report, sendAt]) => {
            const tape = words.map(big), word = () => tape.shift();
            const storage = { async change(step) { this.kept = step(this.kept) ?? this.kept; } };
            const ledger = await Ledger.open(storage, { day: '2030-01-05', word });
            const clock = () => Date.parse('2030-01-05T12:00:00Z');
            const terms = { nFeatures: point.length, key: given.key, cap: [10n, 1n], clock, word };
            const row = await new LocalClient(ledger, terms).answer(chains.get(name).slice(0, rounds), () => point.map(Number));
            const found = await cohort((await ledger.book()).secret, row.campaign);
            return row.report === report && row.sendAt === sendAt && found === own && !tape.length;
        },
        reports: ([text, told]) => told === 'refused' || toHex(reportBytes(told[0], fromHex(told[1]), told[2])) === text,
        ledger: async ([listed, clock, quietUntil, cap, rest, cost, expected]) => {
            const rows = listed.map(([campaign, epsilon, day, sendAt]) => ({ campaign, epsilon, day, sendAt }));
            const book = { rows, quietUntil };
            return written(left(book, fraction(cap), clock)) === rest
                && (await verdict(() => check(book, cost, fraction(cap), clock))) === expected;
        },
        rotations: async ([pinned, body, byOld, byNew, told]) => {
            if (told === 'refused') return (await verdict(() => rotated(body, byOld, byNew, pinned))) === 'refused';
            const { key, old, serial } = await rotated(body, byOld, byNew, pinned);
            return key === told[0] && old === pinned && serial === told[1];
        },
    };
    for (const [name, isRight] of Object.entries(agrees)) {
        for (const [place, one] of given[name].entries()) {
            if (!(await isRight(one))) differ.push(`${name} ${place}`);
        }
    }
    return differ;
})()
