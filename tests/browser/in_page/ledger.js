// The text of the ledger that this origin keeps.
new Promise((resolve) => {
    indexedDB.open('kveil').onsuccess = ({ target: { result: db } }) => {
        db.transaction('ledger').objectStore('ledger').get('device').onsuccess = ({ target }) => resolve(target.result.text);
    };
})
