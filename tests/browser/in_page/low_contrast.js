// Texts whose contrast with what is behind them is below 4.5.
(() => {
    const rgb = (text) => text.match(/[\d.]+/g).map(Number);
    const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] !== 0) return c; } return [255, 255, 255]; };
    const low = [];
    for (const e of document.querySelectorAll('main *')) {
        const isText = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.tagName === 'INPUT';
        if (!isText || !e.checkVisibility()) continue;
        const [x, y] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((p, q) => q - p);
        if ((x + 0.05) / (y + 0.05) < 4.5) low.push([e.tagName, e.id, (x + 0.05) / (y + 0.05)]);
    }
    return low;
})()
